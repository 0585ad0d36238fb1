package archiving

import (
	"slices"
	"testing"

	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
	"github.com/tailrace-cdc/replicator/transform"
)

// retried returns a dead letter of the archive as a retry of it stores it.
func (w *world) retried(id string) []ledger.Record {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	at := slices.IndexFunc(w.records, func(r ledger.Record) bool { return r.ID() == id })
	w.records[at].Verdict = ledger.Late
	return []ledger.Record{w.records[at]}
}

// TestLetterIsArchivedAfterWeeks: what was counted in its hour is forgotten by then, and so is what
// objects covered. A retry may be made again.
func TestLetterIsArchivedAfterWeeks(t *testing.T) {
	const later = 15 * 24
	w := newWorld(t)
	r := w.start()
	r.store(w.deleted(0, 5))
	letters := w.deletedAs(ledger.Letter, transform.ClassTTL, 0, 2)
	for _, letter := range letters {
		letter.Shard = "closed since"
	}
	r.store(letters)
	r.closed(0)
	r.store(w.deleted(later, 5))
	r.closed(later)
	for n, letter := range letters { // each in a manifest of its own
		r.store(w.retried(letter.ID()))
		w.until("an object of it", func(s *ledger.State) bool { return len(s.Parts)+len(s.Intents) == 0 })
		r.store(w.deleted(later+1+n, 5))
		r.store(w.retried(letter.ID()))
		w.proven(r.closed(later + 1 + n))
	}
}

// TestLateDeletionsSupplementTheirHour: they come when it is closed, and the next manifest names
// them.
func TestLateDeletionsSupplementTheirHour(t *testing.T) {
	w := newWorld(t)
	r := w.start()
	r.store(w.deleted(0, 5))
	r.closed(0)
	r.store(w.deleted(0, 4))
	r.store(w.deleted(1, 3))
	s := r.closed(1)
	w.proven(s)
	rep, err := manifest.Verify(t.Context(), w.files, table, manifest.Options{
		Head: &s.Head, Depth: manifest.Full, Read: content, From: hour0, To: hour0 + 1,
	})
	if err != nil || rep.Events != 9 || rep.Late+rep.Open != 0 {
		t.Errorf("the first hour: %+v, %v", rep, err)
	}
}
