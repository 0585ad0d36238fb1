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

// A shard is taken for idle, with nothing left to read, after idlePages empty pages in a row over at least idleTime.
// One empty page is not enough, because DynamoDB may return one although more records follow.
const (
	idlePages = 10
	idleTime  = time.Minute
)

// progress is how far a reader has read its shard, for the retention fuse.
type progress struct {
	table string
	born  time.Time
	first change.Millis // the clock in the log at the start, or when the shard was created; 0: neither is known

	through    atomic.Int64 // change.Millis, see readThrough
	empties    int          // pages without records in a row, and since when; only the reader's goroutine uses these
	emptySince time.Time
}

// readThrough returns a time before which everything of the shard is read, or 0. The time that is known at the start
// counts only after a minute of reading, because the last record of an idle shard may be a week old.
func (p *progress) readThrough() change.Millis {
	if t := p.through.Load(); t > 0 {
		return change.Millis(t)
	}
	if time.Since(p.born) < idleTime {
		return 0
	}
	return p.first
}

// note records a page that was read.
func (p *progress) note(page *change.Page) {
	if n := len(page.Records); n > 0 {
		p.through.Store(max(p.through.Load(), int64(page.Records[n-1].Created)))
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

// watch holds the progress of all live readers, by table: the retention fuse.
type watch struct {
	mu      sync.Mutex
	readers map[string]map[*progress]struct{}
}

func (w *watch) add(p *progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.readers == nil {
		w.readers = map[string]map[*progress]struct{}{}
	}
	if w.readers[p.table] == nil {
		w.readers[p.table] = map[*progress]struct{}{}
	}
	w.readers[p.table][p] = struct{}{}
}

func (w *watch) remove(p *progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.readers[p.table], p)
}

// left returns Retention less the age of the oldest record that a live reader of the table has not read. It is false
// while the progress of no reader of the table is known.
func (w *watch) left(table string, now change.Millis) (left time.Duration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left = Retention
	for p := range w.readers[table] {
		if through := p.readThrough(); through > 0 {
			ok = true
			age := time.Duration(max(now-through, 0)) * time.Millisecond
			left = min(left, max(Retention-age, 0))
		}
	}
	return left, ok
}
