package stream

import (
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/sequence"
)

// Numbers returns the sequence numbers that an engine with this seed uses by default. Its ledger
// must use the same.
func Numbers(seed uint64) sequence.Numbers { return sequence.New(21, 2000+mix(seed)%20000) }

// now returns the time of the sandbox's clock, from which records and shards get theirs.
func (e *Engine) now() time.Time { return e.o.Clock.Now() }

// nextSeq returns the next sequence position. The gaps between positions vary and repeat with the
// seed.
func (e *Engine) nextSeq() uint64 {
	for {
		last := e.last.Load()
		next := last + 1 + mix(e.o.Seed^last)%9
		if e.last.CompareAndSwap(last, next) {
			return next
		}
	}
}

// mix scrambles a number (the finaliser of splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// shardMs returns the time in the ids of the next shards. It never returns a time twice, so that
// ids sort by generation even on a clock that stands still.
func (e *Engine) shardMs() int64 {
	ms := max(e.now().UnixMilli(), e.lastMs.Load()+1)
	e.lastMs.Store(ms)
	return ms
}

// horizon returns the time before which records are past their retention.
func (e *Engine) horizon() time.Time { return e.now().Add(-e.o.Retention) }
