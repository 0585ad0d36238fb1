package archiving

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/transform"
)

// TestSubjectsProgressIsStoredBehindItsLastEvents: entries of others may follow at once, and
// nothing comes after them.
func TestSubjectsProgressIsStoredBehindItsLastEvents(t *testing.T) {
	w := newWorld(t)
	w.edit = func(o *Options) { o.Objects, o.Subject = nil, publisher{w} }
	w.refusing(errors.New("the subject is away"))
	r := w.start()
	r.store(w.deleted(0, 1))
	r.store(w.deletedAs(ledger.Skip, transform.ClassTTL, 0, 1))
	w.await("the subject was tried", func() bool { return r.Status().SubjectTrouble != "" })
	w.await("the status says that it is behind", func() bool { return r.Status().Unpublished > 0 })
	w.refusing(nil)
	w.until("its progress", func(s *ledger.State) bool { return *s.Subject >= s.Seq-1 })
	w.await("the status says that it is not behind", func() bool { return r.Status().Unpublished == 0 })
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

// TestEventThatIsTooLargeForTheSubjectIsALetter, before the progress passes it; the others go on.
func TestEventThatIsTooLargeForTheSubjectIsALetter(t *testing.T) {
	w := newWorld(t)
	w.edit = func(o *Options) { o.Objects, o.Subject = nil, publisher{w} }
	w.largest, w.noRoom = 2000, errors.New("the dead letters are full")
	records := w.deleted(0, 5)
	records[2].Item = noise(3000)
	r := w.start()
	r.store(records)
	w.await("the subject is halted", func() bool { return w.halted(SinkSubject) != "" })
	if s, err := w.state(); err != nil || *s.Subject >= s.Seq {
		t.Errorf("the progress passes an event that is nowhere: %+v, %v", s, err)
	}
	w.lettersTake()
	w.await("the halt is over", func() bool { return w.halted(SinkSubject) == "" })
	w.until("its progress", func(s *ledger.State) bool { return *s.Subject >= s.Seq-1 })
	w.mu.Lock()
	defer w.mu.Unlock()
	want := map[string]string{records[2].ID(): CodeTooLarge}
	if diff := cmp.Diff(want, w.letters); diff != "" || len(w.sent) != 4 {
		t.Errorf("published %v; letters (-want +got):\n%s", w.sent, diff)
	}
}

func (w *world) lettersTake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noRoom = nil
}
