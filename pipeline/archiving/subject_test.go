package archiving

import (
	"errors"
	"testing"

	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/transform"
)

// TestSubjectsProgressIsStoredBehindItsLastEvents: entries of others may follow at once, and nothing comes after them.
func TestSubjectsProgressIsStoredBehindItsLastEvents(t *testing.T) {
	w := newWorld(t)
	w.edit = func(o *Options) { o.Objects, o.Subject = nil, publisher{w} }
	w.refusing(errors.New("the subject is away"))
	r := w.start()
	r.store(w.deleted(0, 1))
	r.store(w.deletedAs(ledger.Skip, transform.ClassTTL, 0, 1))
	w.await("the subject was tried", func() bool { return r.Status().SubjectTrouble != "" })
	w.refusing(nil)
	w.until("its progress", func(s *ledger.State) bool { return *s.Subject >= s.Seq-1 })
}

// TestStreamOfSkippedDeletionsIsTrimmed: the subject need not have events for that.
func TestStreamOfSkippedDeletionsIsTrimmed(t *testing.T) {
	w := newWorld(t)
	w.edit = func(o *Options) { o.Objects, o.Subject = nil, publisher{w} }
	r := w.start()
	for range progressEntries + 1 {
		r.store(w.deletedAs(ledger.Skip, transform.ClassTTL, 0, 1))
	}
	w.until("progress", func(s *ledger.State) bool { return s.Seq-*s.Subject < progressEntries })
}

// TestSubjectAddedLater begins with what comes then, and says so.
func TestSubjectAddedLater(t *testing.T) {
	w := newWorld(t)
	r := w.start()
	r.store(w.deleted(0, 5))
	r.end()
	later := w.deleted(2, 5)
	w.edit = func(o *Options) { o.Subject = publisher{w} }
	r = w.start()
	r.store(later)
	w.await("the later ones are published", func() bool { return w.published() == 5 })
	s := r.closed(2)
	if s.SubjectSince != hour0+2 {
		t.Errorf("the subject has everything since %v", s.SubjectSince)
	}
	w.proven(s)
	for _, e := range later {
		if w.sent[e.ID()] == 0 {
			t.Errorf("%s is not published", e.ID())
		}
	}
}
