package stream

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// stream is the shards of one stream ARN. The engine's lock guards its layout.
type stream struct {
	table, arn, label, view string
	keySchema               []byte
	created                 time.Time
	off                     bool        // whether the stream is disabled
	parts                   []partition // by rising upper bound; empty once the stream is disabled
	shards                  []*shard    // by id, which is the order of listings: parents come before children
	byID                    map[string]*shard
}

// partition has the key hashes from the end of the partition before it up to last, inclusive.
type partition struct {
	last  uint64
	shard *shard
}

func (s *stream) enabled() bool { return !s.off }

// newStream opens a stream with that many shards. Its label is the creation time, moved on by
// milliseconds until no other stream of the table has it.
func (e *Engine) newStream(table, view string, keySchema []byte, partitions int) *stream {
	now := e.now()
	s := &stream{table: table, view: view, keySchema: keySchema, created: now, byID: map[string]*shard{}}
	for at := now; ; at = at.Add(time.Millisecond) {
		s.label = at.Format("2006-01-02T15:04:05.000")
		s.arn = fmt.Sprintf("arn:aws:dynamodb:%s:%s:table/%s/stream/%s", e.o.Region, e.o.Account, table, s.label)
		if e.byARN[s.arn] == nil {
			break
		}
	}
	e.byARN[s.arn] = s
	e.streams = append(e.streams, s)
	s.parts = e.addShards(s, "", 0, math.MaxUint64, partitions)
	return s
}

// addShards opens n shards that divide the hashes first..last evenly; parent is "" or their
// parent's id. Their ids carry a time later than the ids of all shards before, so only they need
// sorting.
func (e *Engine) addShards(s *stream, parent string, first, last uint64, n int) []partition {
	ms, before := e.shardMs(), len(s.shards)
	parts := make([]partition, 0, n)
	step := (last - first) / uint64(n)
	for i := range n {
		upper := last
		if i < n-1 {
			upper = first + step*uint64(i+1) - 1
		}
		parts = append(parts, partition{last: upper, shard: e.newShard(s, parent, ms)})
	}
	sortByID(s.shards[before:])
	return parts
}

// sortByID sorts shards in the order of listings.
func sortByID(shards []*shard) {
	slices.SortFunc(shards, func(a, b *shard) int { return strings.Compare(a.id, b.id) })
}

// newShard opens a shard with a new id that carries the time ms.
func (e *Engine) newShard(s *stream, parent string, ms int64) *shard {
	sh := &shard{parent: parent, first: e.nextSeq(), created: e.now()}
	for salt := uint64(len(s.shards)); ; salt++ {
		sh.id = fmt.Sprintf("shardId-%020d-%08x", ms, uint32(mix(e.o.Seed^uint64(ms)^salt<<40)))
		if s.byID[sh.id] == nil {
			break
		}
	}
	s.byID[sh.id] = sh
	s.shards = append(s.shards, sh)
	return sh
}

// closeShard ends a shard. No record has its ending sequence number, as in the service.
func (e *Engine) closeShard(sh *shard) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.closed {
		return
	}
	sh.closed, sh.end, sh.closedAt = true, e.nextSeq(), e.now()
	sh.shrink()
}

// closeStream disables a stream: all its open shards end.
func (e *Engine) closeStream(s *stream) {
	s.off = true
	for _, p := range s.parts {
		e.closeShard(p.shard)
	}
	s.parts = nil
}

// Split closes an open shard and opens n children that divide its keys; n = 1 is a rotation. It
// returns the children's ids in the order of their keys.
func (e *Engine) Split(shardID string, n int) ([]string, error) {
	if n < 1 || n > 1000 {
		return nil, fmt.Errorf("split %s: %d children, want 1 to 1000", shardID, n)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.streams {
		at := slices.IndexFunc(s.parts, func(p partition) bool { return p.shard.id == shardID })
		if at >= 0 {
			return e.split(s, at, n)
		}
	}
	return nil, fmt.Errorf("split %s: no such open shard", shardID)
}

// split is Split for the partition at an index. The caller holds the engine's lock.
func (e *Engine) split(s *stream, at, n int) ([]string, error) {
	first := uint64(0)
	if at > 0 {
		first = s.parts[at-1].last + 1
	}
	last, parent := s.parts[at].last, s.parts[at].shard
	if last-first < uint64(n) {
		return nil, fmt.Errorf("split %s: it has %d key hashes, fewer than children", parent.id, last-first+1)
	}
	e.closeShard(parent)
	children := e.addShards(s, parent.id, first, last, n)
	s.parts = slices.Replace(s.parts, at, at+1, children...)
	e.faults.parentClosed(parent.id)
	ids := make([]string, n)
	for i, c := range children {
		ids[i] = c.shard.id
	}
	return ids, nil
}

// Rotate closes every open shard of a table's stream and opens one child for each. An empty table
// name means all tables. It returns how many shards were rotated.
func (e *Engine) Rotate(table string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, s := range e.streams {
		if table != "" && s.table != table {
			continue
		}
		for at := range s.parts {
			if _, err := e.split(s, at, 1); err == nil {
				n++
			}
		}
	}
	return n
}

// RotateEvery makes RotateDue rotate a table's open shards each time d has passed on the sandbox's
// clock. An empty table name means all tables; d = 0 ends it.
func (e *Engine) RotateEvery(table string, d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.rotations, table)
	if d > 0 {
		e.rotations[table] = &rotation{every: d, next: e.now().Add(d)}
	}
}

// RotateNever ends the rotations that RotateEvery began.
func (e *Engine) RotateNever() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.rotations)
}

// rotation is a rotation that repeats.
type rotation struct {
	every time.Duration
	next  time.Time
}

// RotateDue does the rotations that are due, each once however late it is.
func (e *Engine) RotateDue() {
	now := e.now()
	var due []string
	e.mu.Lock()
	for table, r := range e.rotations {
		if !now.Before(r.next) {
			due, r.next = append(due, table), now.Add(r.every)
		}
	}
	e.mu.Unlock()
	for _, table := range due {
		e.Rotate(table)
	}
}

// OpenShards returns the ids of a table's open shards, in the order of their keys.
func (e *Engine) OpenShards(table string) []string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	t := e.tables[table]
	if t == nil || t.current == nil {
		return nil
	}
	ids := make([]string, 0, len(t.current.parts))
	for _, p := range t.current.parts {
		ids = append(ids, p.shard.id)
	}
	return ids
}

// Trim removes every record that was created before t, whatever its age. It returns
// how many were removed.
func (e *Engine) Trim(t time.Time) int {
	e.mu.RLock()
	defer e.mu.RUnlock()
	n := 0
	for _, s := range e.streams {
		for _, sh := range s.shards {
			n += sh.trim(t)
		}
	}
	return n
}

// Sweep removes records past their retention, and shards and streams without anything to read. It
// frees memory only: reads check the retention themselves.
func (e *Engine) Sweep() {
	e.Trim(e.horizon())
	e.mu.Lock()
	defer e.mu.Unlock()
	gone := e.horizon().Add(-e.o.Linger)
	for _, s := range e.streams {
		s.shards = slices.DeleteFunc(s.shards, func(sh *shard) bool {
			if sh.closed && sh.closedAt.Before(gone) {
				delete(s.byID, sh.id)
				return true
			}
			return false
		})
	}
	e.streams = slices.DeleteFunc(e.streams, func(s *stream) bool {
		if !s.off || len(s.shards) > 0 {
			return false
		}
		delete(e.byARN, s.arn)
		if t := e.tables[s.table]; t != nil && t.current == s {
			t.current = nil
		}
		return true
	})
}

// find returns the stream of an ARN, or the service's error. The caller holds the engine's lock.
func (e *Engine) find(arn string) (*stream, *serviceError) {
	if bad := checkARN("streamArn", arn); bad != nil {
		return nil, bad
	}
	s := e.byARN[arn]
	if s == nil {
		return nil, notFound("Stream: %s not found", arn)
	}
	return s, nil
}
