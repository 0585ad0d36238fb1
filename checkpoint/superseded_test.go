package checkpoint

import (
	"testing"
)

// A mapping that is switched cancels the copy that runs: it writes cells of the older mapping, and
// the copy that follows covers what it did not reach. Else two copies would run, and the older one
// could write last.
func TestAcceptedMappingCancelsTheOlderCopy(t *testing.T) {
	w := owned(t, seen("a")...)
	from := w.s.Identity.Mapping
	w.must(t, marksOf(SinkBigtable), &Copy{ID: "c1", Why: CopyBackfill, From: FromScan, Parts: 2, Began: 1},
		&CopyMarks{ID: "c1", Parts: map[int]CopyMark{0: {After: "k", Items: 3}}},
		&Control{Accept: &Accept{From: from, To: "new"}})
	if w.s.CopyRunning() == nil {
		t.Error("the copy is cancelled before the mapping is switched")
	}
	w.must(t, &Control{Accept: &Accept{From: from, To: "new", Done: true}})
	if c := w.s.CopyRunning(); c != nil || !w.s.Copy.Canceled || w.s.Switched == nil || len(w.s.Gaps) > 0 {
		t.Errorf("%+v, switched %+v, gaps %+v", w.s.Copy, w.s.Switched, w.s.Gaps)
	}
	w.must(t, &CopyMarks{ID: "c1", Parts: map[int]CopyMark{0: {Done: true, Items: 9}, 1: {Done: true}}})
	if w.s.Copy.Done() || w.s.Copy.Marks[0].Items != 3 {
		t.Errorf("marks of the cancelled copy count: %+v", w.s.Copy)
	}
	w.must(t, &Copy{ID: "c2", Why: CopyMapping, From: FromScan, Parts: 1, Began: 2})
	if c := w.s.CopyRunning(); c == nil || c.ID != "c2" || w.s.Switched != nil {
		t.Errorf("the next copy: %+v, switched %+v", c, w.s.Switched)
	}
	sameState(t, "restored", w.l.fold(t), w.l.restored(t))
}

// An owner that was replaced, or that had not read the newer order, stores the end of the older
// resync: that began before the newer order, and what differs since is still to be found.
func TestEndOfAReplacedResyncEndsNothing(t *testing.T) {
	w := owned(t, seen("a", "b")...)
	w.must(t, marksOf(SinkBigtable), gapIn("a", 10), gapIn("b", 20))
	first, second := w.s.Gaps[0].ID(), w.s.Gaps[1].ID()
	w.must(t, &Control{Resync: &ResyncOrder{ID: "r1", Gaps: []string{first}}},
		&Control{Resync: &ResyncOrder{ID: "r2", Gaps: []string{second}}})
	healed := func(id string) *Healed {
		return &Healed{ID: id, Gaps: []string{first, second}, Sinks: map[string]string{SinkBigtable: ""}, Date: 30}
	}
	for _, stale := range []string{"r1", ""} {
		w.must(t, healed(stale))
		if p := w.s.Resync; p == nil || p.ID != "r2" || !p.Heals(first) || !p.Heals(second) || w.s.LastResync != nil {
			t.Fatalf("after the end of %q: %+v, last %+v", stale, p, w.s.LastResync)
		}
		for i := range w.s.Gaps {
			if !w.s.BigtableDiffers(&w.s.Gaps[i]) {
				t.Errorf("the end of %q heals gap %s", stale, w.s.Gaps[i].ID())
			}
		}
	}
	w.must(t, healed("r2"), healed("r2"))
	if w.s.Resync != nil || w.s.DiffersSince() != 0 || w.s.LastResync.ID != "r2" {
		t.Errorf("after its own end: %+v, differs since %d", w.s.Resync, w.s.DiffersSince())
	}
	sameState(t, "restored", w.l.fold(t), w.l.restored(t))
}
