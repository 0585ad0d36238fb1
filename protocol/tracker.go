package protocol

import (
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// MarkTracker turns entries that finish in any order into a mark: the last entry of the contiguous
// run of entries with all changes durable.
//
// Rule 1: the mark never passes an entry with a change that is not durable.
type MarkTracker struct {
	mu          sync.Mutex      // covers the fields up to the next blank line
	open        []*TrackedEntry // in the order of the log
	marked      checkpoint.Mark
	lastChanges uint64 // the newest entry with changes that the mark has passed
	base        known  // of the log at the entry to which the state of the life was folded
	read        known  // changes of the log up to the newest entry that was added
	applied     known  // up to the mark

	pending atomic.Int64 // changes that are not durable

	progress chan struct{} // capacity 1: the mark moved
}

// TrackedEntry is an entry with changes that are not durable yet.
type TrackedEntry struct {
	At   checkpoint.Mark
	Span trace.Span // until all changes are durable; nil: the entry is not traced

	tracker    *MarkTracker
	since      time.Time
	hasChanges bool
	through    known        // changes of the log up to this entry
	pending    atomic.Int64 // changes that are not durable, plus one while the entry is being handed out
	release    func()       // gives the entry's memory back; may be nil
}

// known is how many changes the log holds up to an entry. The fold with which a life begins returns
// it for its last entry only, so it is unknown for the entries before.
type known struct {
	seq     uint64
	changes uint64
	ok      bool
}

// and returns what is known at the next entry that is read. base is what is known of one entry of
// the log.
func (k known) and(seq, changes uint64, base known) known {
	switch {
	case k.ok, seq < base.seq:
		k.changes += changes
	case seq == base.seq:
		return base
	case base.ok:
		k = known{changes: base.changes + changes, ok: true}
	}
	k.seq = seq
	return k
}

// NewMarkTracker returns the tracker of a pass that begins at a mark.
func NewMarkTracker(at checkpoint.Mark) *MarkTracker {
	return &MarkTracker{marked: at, progress: make(chan struct{}, 1)}
}

// CountFrom lets the tracker count changes from what the log held when the life began.
func (t *MarkTracker) CountFrom(s *checkpoint.State) *MarkTracker {
	t.base = known{seq: s.Seq, changes: s.Changes, ok: true}
	if t.marked.Seq >= s.LastFrame {
		t.applied = t.base
	}
	t.read = t.applied
	return t
}

// Add begins to track an entry; entries are added in the order of the log. An entry stays open
// until ack has counted each of its changes, and the entry itself once all of them are handed out.
func (t *MarkTracker) Add(at checkpoint.Mark, changes int, release func()) *TrackedEntry {
	e := &TrackedEntry{tracker: t, At: at, since: time.Now(), hasChanges: changes > 0, release: release}
	t.pending.Add(int64(changes) + 1)
	e.pending.Store(int64(changes) + 1)
	t.mu.Lock()
	t.read = t.read.and(at.Seq, uint64(changes), t.base)
	e.through = t.read
	t.open = append(t.open, e)
	t.mu.Unlock()
	return e
}

// Ack notes that n changes of the entry are durable.
func (e *TrackedEntry) Ack(n int) {
	e.tracker.pending.Add(-int64(n))
	if e.pending.Add(-int64(n)) > 0 {
		return
	}
	if e.release != nil {
		e.release()
	}
	if e.Span != nil {
		e.Span.End()
	}
	e.tracker.advance()
}

// advance moves the mark past the entries at the front that are completely durable.
func (t *MarkTracker) advance() {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for n < len(t.open) && t.open[n].pending.Load() <= 0 {
		t.marked, t.applied = t.open[n].At, t.open[n].through
		if t.open[n].hasChanges {
			t.lastChanges = t.marked.Seq
		}
		n++
	}
	if n == 0 {
		return
	}
	clear(t.open[:n])
	t.open = t.open[n:]
	signal(t.progress)
}

// Progress receives when the mark has moved.
func (t *MarkTracker) Progress() <-chan struct{} { return t.progress }

// Acked returns the mark, and the newest entry with changes that it has passed; 0 while it has
// passed none.
func (t *MarkTracker) Acked() (m checkpoint.Mark, lastChanges uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.marked, t.lastChanges
}

// Mark returns the mark.
func (t *MarkTracker) Mark() checkpoint.Mark {
	m, _ := t.Acked()
	return m
}

// Backlog returns how many changes are not durable, about, and since when the oldest of them is
// there.
func (t *MarkTracker) Backlog(now time.Time) (changes int, oldest time.Duration) {
	if changes = int(t.pending.Load()); changes == 0 {
		return 0, 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.open) > 0 {
		oldest = now.Sub(t.open[0].since)
	}
	return changes, oldest
}

// Behind returns how many of the changes that the log holds lie behind the mark; false while that
// is unknown.
func (t *MarkTracker) Behind(changes uint64) (n uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return changes - min(changes, t.applied.changes), t.applied.ok
}

// Next returns the tracker of the following pass: it begins at this one's mark.
func (t *MarkTracker) Next() *MarkTracker {
	m, lastChanges := t.Acked()
	next := NewMarkTracker(m)
	next.lastChanges = lastChanges
	t.mu.Lock()
	defer t.mu.Unlock()
	next.base, next.read, next.applied = t.base, t.applied, t.applied
	return next
}

// Abandon gives back the memory of the entries that are still open after a pass has ended: the next
// pass reads them again.
func (t *MarkTracker) Abandon() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.open {
		if e.pending.Load() > 0 && e.release != nil {
			e.release()
		}
	}
	t.open = nil
}

// signal fills a channel of capacity 1.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
