package ingest

import (
	"slices"
	"sync"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/source/heartbeat"
)

// HeartbeatPlanner decides which heartbeats a table needs now. Which shard a partition key falls
// into is in no reply of the service: it shows only when the key's record comes out of a shard. So
// keys are tried until each open shard has one, and again after shards have split. Any goroutine
// may use it.
type HeartbeatPlanner struct {
	keys heartbeat.Keys

	mu      sync.Mutex // covers what follows
	open    map[string]bool
	place   map[string]string // by key: the shard of its newest record
	taken   map[string]bool   // keys under which there is an item of the user
	tried   int               // candidates from 0 on
	changed chan struct{}     // capacity 1: other shards are open
}

// NewHeartbeatPlanner returns a planner without any record.
func NewHeartbeatPlanner(keys heartbeat.Keys) *HeartbeatPlanner {
	return &HeartbeatPlanner{
		keys: keys, place: map[string]string{}, taken: map[string]bool{}, changed: make(chan struct{}, 1),
	}
}

// Open takes the shards that take writes now.
func (p *HeartbeatPlanner) Open(shards []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	same := len(shards) == len(p.open)
	open := make(map[string]bool, len(shards))
	for _, s := range shards {
		open[s], same = true, same && p.open[s]
	}
	if p.open = open; same {
		return
	}
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// Seen notes heartbeats that came out of a shard.
func (p *HeartbeatPlanner) Seen(shard string, beats []change.Heartbeat) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range beats {
		p.place[b.Key] = shard
	}
}

// skip notes that a key is not to be written: the user has an item there.
func (p *HeartbeatPlanner) skip(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken[key] = true
}

const (
	triesPerShard = 50 // keys for each open shard: one of a tenth of the others' size is found by all but 7 in 1,000
	triesAtLeast  = 100
	triesAtOnce   = 200
)

// due returns the keys to write now: one for each open shard. While a shard has none, it adds keys
// with an unknown shard, or new keys.
func (p *HeartbeatPlanner) due() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var write, unknown []string
	covered := map[string]bool{}
	for i := range p.tried {
		key, _ := p.keys.Nth(i)
		shard, seen := p.place[key]
		switch {
		case p.taken[key]:
		case !seen || !p.open[shard]:
			unknown = append(unknown, key)
		case !covered[shard]:
			covered[shard] = true
			write = append(write, key)
		}
	}
	missing := len(p.open) - len(covered)
	if missing == 0 {
		return write
	}
	if len(unknown) == 0 {
		unknown = p.next(max(2*missing, p.tried/4)) // the fewer the shards without, the smaller they may be
	}
	return append(write, unknown[:min(len(unknown), triesAtOnce)]...)
}

// next returns candidates that were never tried, about n.
func (p *HeartbeatPlanner) next(n int) (keys []string) {
	most := triesAtLeast + triesPerShard*len(p.open)
	for len(keys) < min(n, triesAtOnce) && p.tried < most {
		key, ok := p.keys.Nth(p.tried)
		if !ok {
			break
		}
		p.tried++
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}
