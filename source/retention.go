package source

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// Retention is how long DynamoDB Streams keeps a record at least.
// Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html
const Retention = 24 * time.Hour

// A shard is taken for idle, with nothing left to read, after idlePages empty pages in a row over
// at least idleTime. One empty page is not enough, because DynamoDB may return one although more
// records follow.
const (
	idlePages = 10
	idleTime  = time.Minute
)

// progress is how far a reader has read its shard, for the retention fuse.
type progress struct {
	table   string
	began   time.Time     // when the reader was made
	initial change.Millis // the clock in the log at the start, or when the shard was created; 0: neither is known

	through    atomic.Int64 // change.Millis, see readThrough
	empties    int          // pages without records in a row, and since when; only the reader's goroutine uses these
	emptySince time.Time
}

// readThrough returns a time before which everything of the shard is read, or 0. The time that is
// known at the start counts only after a minute of reading, because the last record of an idle
// shard may be a week old.
func (p *progress) readThrough() change.Millis {
	if t := p.through.Load(); t > 0 {
		return change.Millis(t)
	}
	if time.Since(p.began) < idleTime {
		return 0
	}
	return p.initial
}

// note records a page that was read.
func (p *progress) note(page *change.Page) {
	if newest := page.Newest(); newest > 0 {
		p.through.Store(max(p.through.Load(), int64(newest)))
		p.empties = 0
		return
	}
	if p.empties == 0 {
		p.emptySince = time.Now()
	}
	p.empties++
	if p.empties >= idlePages && time.Since(p.emptySince) >= idleTime {
		p.through.Store(max(p.through.Load(), int64(page.Date)))
	}
}

// retentionFuse holds the progress of all live readers, by table, for Source.Retention.
type retentionFuse struct {
	mu      sync.Mutex
	readers map[string]map[*progress]struct{}
}

func (f *retentionFuse) add(p *progress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readers == nil {
		f.readers = map[string]map[*progress]struct{}{}
	}
	if f.readers[p.table] == nil {
		f.readers[p.table] = map[*progress]struct{}{}
	}
	f.readers[p.table][p] = struct{}{}
}

func (f *retentionFuse) remove(p *progress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.readers[p.table], p)
}

// remaining returns Retention less the age of the oldest record that a live reader of the table has
// not read. It is false while the progress of no reader of the table is known.
func (f *retentionFuse) remaining(table string, now change.Millis) (left time.Duration, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	left = Retention
	for p := range f.readers[table] {
		if through := p.readThrough(); through > 0 {
			ok = true
			age := time.Duration(max(now-through, 0)) * time.Millisecond
			left = min(left, max(Retention-age, 0))
		}
	}
	return left, ok
}
