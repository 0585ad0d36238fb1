package archiving

import (
	"testing"

	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
)

// beside returns a world of another pipeline that archives the table into the same place.
func (w *world) beside() *world {
	w.t.Helper()
	other := newWorld(w.t)
	other.files, other.records, other.next = w.files, w.records, w.next
	other.edit = func(o *Options) { o.Pipeline, o.Form.Pipeline, o.FromStart = "other", "other", false }
	return other
}

// TestTwoPipelinesArchiveIntoOnePlace: the second to close an hour finds the manifest of the first,
// and halts.
func TestTwoPipelinesArchiveIntoOnePlace(t *testing.T) {
	w := newWorld(t)
	r := w.start()
	other := w.beside()
	theirs := other.start()
	other.claimed()
	both := w.deleted(0, 6)
	theirs.store(both)
	other.until("objects of the other", func(s *ledger.State) bool { return len(s.Objects) > 0 && len(s.Parts) == 0 })
	r.store(both)
	r.closed(0)
	theirs.over(0)
	other.await("the other halts", func() bool { return other.halted(SinkObjects) == "archive_conflict" })
	r.store(w.deleted(1, 6))
	w.until("the first goes on", func(s *ledger.State) bool { return len(s.Parts)+len(s.Intents) == 0 })
}

// TestPipelineGoesOnUnderAnotherName: the first has ended.
func TestPipelineGoesOnUnderAnotherName(t *testing.T) {
	w := newWorld(t)
	r := w.start()
	first := w.deleted(0, 6)
	r.store(first)
	r.closed(0)
	r.end()
	other := w.beside()
	other.deleted(2, 0)
	r = other.start()
	other.claimed()
	r.store(first)
	r.store(other.deleted(2, 6))
	other.check(r.closed(2))
}
