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

// An idle shard is taken to have nothing unread after that many empty pages over that time: DynamoDB may
// return an empty page although more follows.
const (
	idlePages = 10
	idleTime  = time.Minute
)

// progress is how far a reader has read its shard, for the retention fuse.
type progress struct {
	table string
	born  time.Time
	first int64 // unix ms: what the log says at the start, or when the shard was created; 0: neither is known

	through    atomic.Int64 // see readThrough
	empties    int          // pages without records in a row, and since when; of the reader's goroutine
	emptySince time.Time
}

// readThrough returns a time in unix ms before which everything of the shard is read, or 0. What is known at the start
// counts only after a minute without a better answer: an idle shard's last record may be of last week.
func (p *progress) readThrough() int64 {
	if t := p.through.Load(); t > 0 {
		return t
	}
	if time.Since(p.born) < idleTime {
		return 0
	}
	return p.first
}

// note records how far a page took the shard.
func (p *progress) note(page *change.Page) {
	if n := len(page.Records); n > 0 {
		p.through.Store(max(p.through.Load(), page.Records[n-1].Created))
		p.empties = 0
		return
	}
	if p.empties == 0 {
		p.emptySince = time.Now()
	}
	p.empties++
	if p.empties >= idlePages && time.Since(p.emptySince) >= idleTime {
		p.through.Store(max(p.through.Load(), page.Date))
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
// while no progress of the table is known.
func (w *watch) left(table string, now int64) (left time.Duration, ok bool) {
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
