package archiving

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
)

// in lets the objects go to a directory from now on.
func (w *world) in(dir string) {
	w.t.Helper()
	b, err := bucket.Open(w.t.Context(), "file://"+dir, bucket.Options{})
	must(w.t, err)
	w.t.Cleanup(func() { _ = b.Close() })
	w.dir, w.files = dir, &flaky{Bucket: b}
	w.edit = func(o *Options) { o.URL = bucket.Place("file://" + dir) }
}

// leftWithAnOpenHour archives an hour and a part of the next one, and stops between an object and
// its mark.
func (w *world) leftWithAnOpenHour() {
	w.t.Helper()
	w.in(w.dir)
	r := w.start()
	r.store(w.deleted(0, 6))
	r.closed(0)
	r.store(w.deleted(1, 6))
	w.until("objects of an open hour", func(s *ledger.State) bool { return len(s.Objects) > 0 && len(s.Parts) == 0 })
	w.files.hook(nil, func(string) error { r.crash(); return errors.New("away") })
	r.store(w.deleted(1, 3))
	<-r.done
	r.end()
	w.files.hook(nil, nil)
}

// TestArchiveIsCopiedToAnotherPlace: the chain goes on there.
func TestArchiveIsCopiedToAnotherPlace(t *testing.T) {
	w := newWorld(t)
	w.leftWithAnOpenHour()
	dir := t.TempDir() + "/copy"
	must(t, os.CopyFS(dir, os.DirFS(w.dir)))
	w.in(dir)
	r := w.start()
	r.store(w.deleted(2, 6))
	w.proven(r.closed(2))
}

// TestArchiveGoesToAnotherPlaceAndBack: each place has a chain of its own, and each event is in one
// of them, save those of an object that was created and not marked.
func TestArchiveGoesToAnotherPlaceAndBack(t *testing.T) {
	w := newWorld(t)
	first, second := w.dir, t.TempDir()
	w.leftWithAnOpenHour()
	w.in(second)
	r := w.start()
	r.store(w.records) // the mark was lost
	r.store(w.deleted(2, 6))
	s := r.closed(2)
	w.movedOnce(s, first, second, hour0+1)
	r.end()

	w.in(first)
	r = w.start()
	r.store(w.deleted(3, 6))
	w.movedOnce(r.closed(3), first, second, hour0+1)
}

// movedOnce checks the archive in the present place, and that each event is in one of two; twice
// only in an hour.
func (w *world) movedOnce(s *ledger.State, first, second string, but layout.Hour) {
	w.t.Helper()
	rep, err := manifest.Verify(w.t.Context(), w.files, table, manifest.Options{
		Head: &s.Head, Depth: manifest.Full, Read: content,
	})
	if err != nil || rep.Verdict != manifest.Unproven || rep.Counts[manifest.HourIncomplete] == 0 {
		w.t.Errorf("archive verify: %+v, %v", rep, err)
	}
	got := map[string]int{}
	files := w.files
	for _, dir := range []string{first, second} {
		b, err := bucket.Open(w.t.Context(), "file://"+dir, bucket.Options{})
		must(w.t, err)
		w.files = &flaky{Bucket: b}
		objects, _ := w.names()
		for _, name := range objects {
			for _, e := range w.read(name) {
				got[e.ID()]++
			}
		}
		must(w.t, b.Close())
	}
	w.files = files
	twice := 0
	for _, r := range w.records {
		switch n := got[r.ID()]; {
		case n == 2 && layout.HourOf(r.Time()) == but:
			twice++
		case n != 1:
			w.t.Errorf("event %s is archived %d times", r.ID(), n)
		}
	}
	if twice > 3 || len(got) != len(w.records) {
		w.t.Errorf("%d events are archived twice; %v", twice, slices.Sorted(maps.Keys(got)))
	}
}

// TestEmptyDirectoryIsNotTheArchive: the volume is not mounted at a start, and the directory below
// shows nothing.
//
// Rule 13.
func TestEmptyDirectoryIsNotTheArchive(t *testing.T) {
	w := newWorld(t)
	w.in(t.TempDir() + "/archive")
	r := w.start()
	r.store(w.deleted(0, 6))
	r.closed(0)
	r.end()
	dir := w.dir
	must(t, os.Rename(dir, dir+".away"))
	w.in(dir) // makes it
	r = w.start()
	r.store(w.deleted(1, 6))
	w.await("the objects are halted", func() bool { return w.halted(SinkObjects) == "archive_missing" })
	if why := r.Status().ObjectsTrouble; !strings.Contains(why, "mount or restore") {
		t.Errorf("status says %q", why)
	}
	r.end()
	must(t, errors.Join(os.RemoveAll(dir), os.Rename(dir+".away", dir)))
	w.in(dir)
	r = w.start()
	r.store(w.deleted(1, 6))
	w.proven(r.closed(1))
}
