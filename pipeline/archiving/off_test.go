package archiving

import (
	"errors"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
)

// TestObjectsAreTurnedOffAndOnAgain: nothing waits for them meanwhile.
func TestObjectsAreTurnedOffAndOnAgain(t *testing.T) {
	w := newWorld(t)
	w.edit = func(o *Options) { o.Subject = publisher{w} }
	r := w.start()
	r.store(w.deleted(0, 6))
	r.closed(0)
	w.files.hook(func(string) error { return errors.New("away") }, nil)
	left := w.deleted(1, 6)
	r.store(left)
	w.await("the objects are in trouble", func() bool { return r.Status().ObjectsTrouble != "" })
	r.end()
	w.edit = func(o *Options) { o.Objects, o.Subject = nil, publisher{w} }
	r = w.start()
	r.store(w.deleted(2, 6))
	w.until("nothing waits for objects", func(s *ledger.State) bool { return len(s.Parts) == 0 && *s.Subject >= s.Seq-1 })
	w.await("no halt is left", func() bool { return w.halted(SinkObjects) == "" })
	r.end()
	w.files.hook(nil, nil)
	w.edit = nil
	r = w.start()
	w.until("the claim", func(s *ledger.State) bool { return s.Claim.Epoch == w.epoch })
	r.store(w.deleted(3, 6))
	s := r.closed(3)
	if s.ObjectsSince != hour0+2 {
		t.Errorf("the objects have everything since %v", s.ObjectsSince)
	}
	rep, err := manifest.Verify(t.Context(), w.files, table, manifest.Options{
		Head: &s.Head, Depth: manifest.Full, Read: content,
	})
	if err != nil || rep.Verdict != manifest.Unproven || rep.Counts[manifest.HourIncomplete] != 1 || rep.Events != 12 {
		t.Errorf("archive verify: %+v, %v", rep, err)
	}
	objects, _ := w.names()
	for _, name := range objects {
		if strings.Contains(name, "tr_hr=10/") {
			t.Errorf("%s was made while there were no objects", name)
		}
	}
}

// TestSubjectAloneHasLostNothing, whoever owns it: only objects that begin later lack what was
// before.
func TestSubjectAloneHasLostNothing(t *testing.T) {
	w := newWorld(t)
	w.edit = func(o *Options) { o.Objects, o.Subject = nil, publisher{w} }
	for n := range 3 {
		r := w.start()
		w.claimed()
		r.store(w.deleted(n, 2))
		s := w.until("its progress", func(s *ledger.State) bool { return *s.Subject >= s.Seq-1 })
		if len(s.Lost) > 0 || len(r.Status().Lost) > 0 {
			t.Errorf("owner %d: %+v", n, s.Lost)
		}
		r.end()
	}
	w.edit = func(o *Options) { o.Subject = publisher{w} }
	for range 2 {
		r := w.start()
		w.claimed()
		r.end()
	}
	if s, err := w.state(); err != nil || len(s.Lost) != 1 || s.Lost[0].ID != "archive-objects-off-4" {
		t.Errorf("the objects begin: %+v, %v", s.Lost, err)
	}
}
