package checkpoint

import (
	"errors"
	"testing"
)

// exportCopied returns a log with a copy of an export of two files that has begun.
func exportCopied(t *testing.T, by string) *writer {
	t.Helper()
	w := owned(t, ShardSeen{ID: "a"})
	w.must(t, &Marks{Sinks: map[string]Mark{SinkBigtable: {}}})
	w.must(t, &Copy{
		ID: "c1", Why: CopyBackfill, From: FromExport, By: by, Export: "e", Parts: 2, Began: w.s.Date + 2000, Version: 1000,
	})
	return w
}

// allMarked are marks of all files.
var allMarked = map[int]CopyMark{0: {Items: 7, Done: true}, 1: {Items: 7, Done: true}}

// TestCopyByWorkersEndsWhenItsOrderIsClosed, and not with its last file: workers may write until
// then. Nothing that needs the rows as they are goes on before.
func TestCopyByWorkersEndsWhenItsOrderIsClosed(t *testing.T) {
	w := exportCopied(t, ByWorkers)
	c := w.s.CopyRunning()
	if c.Delegated != w.s.Seq || !w.s.WorkersMayWrite() || c.Closes() {
		t.Fatalf("%+v", c)
	}
	w.must(t, &CopyMarks{ID: "c1", Parts: allMarked, Date: w.s.Date + 1})
	c = w.s.CopyRunning()
	if c == nil || !c.Closes() || !w.s.WorkersMayWrite() || w.s.Unfinished().Copy != CopyRuns {
		t.Fatalf("with its last file: %+v", w.s.Copy)
	}
	if err := w.s.CheckNext(&Control{Fence: &FenceOrder{ID: "f"}}); !errors.As(err, new(*FenceError)) {
		t.Errorf("fenced: %v", err)
	}
	if err := w.s.CheckNext(&Control{Accept: &Accept{From: "a", To: "b"}}); !errors.As(err, new(*DelegatedError)) {
		t.Errorf("accepted: %v", err)
	}
	sameState(t, "restored", w.l.fold(t), w.l.restored(t))
	w.must(t, &CopyMarks{ID: "c1", Closed: true, Date: w.s.Date + 2})
	if w.s.CopyRunning() != nil || !w.s.Copy.Done() || w.s.WorkersMayWrite() || w.s.Copy.Closed != w.s.Date {
		t.Errorf("closed: %+v", w.s.Copy)
	}
	if err := w.s.CheckNext(&CopyMarks{ID: "c1", Closed: true}); !errors.As(err, new(*CorruptError)) {
		t.Errorf("closed twice: %v", err)
	}
	sameState(t, "restored", w.l.fold(t), w.l.restored(t))
}

// TestCopyIsDelegatedAndTakenBack while it runs; the order of the second time is another one.
func TestCopyIsDelegatedAndTakenBack(t *testing.T) {
	w := exportCopied(t, "")
	do := func(what string) *CopyState {
		t.Helper()
		w.must(t, &Control{Copy: &CopyOrder{"c1", what}, At: w.s.Date + 5})
		return w.s.Copy
	}
	if c := do(CopyTakeback); c.TakenBack || w.s.WorkersMayWrite() {
		t.Errorf("taken back without workers: %+v", c)
	}
	if w.s.Delegates(w.s.CopyRunning()) != DelegateYes {
		t.Error("it may not be delegated")
	}
	c := do(CopyDelegate)
	first := c.Delegated
	if first != w.s.Seq || c.By != ByWorkers || w.s.Delegates(c) != DelegateAlready {
		t.Fatalf("delegated: %+v", c)
	}
	if do(CopyDelegate).Delegated != first {
		t.Error("delegated twice")
	}
	if c = do(CopyTakeback); !c.Closes() || !w.s.WorkersMayWrite() || c.By != ByWorkers {
		t.Errorf("taken back: %+v", c)
	}
	w.must(t, &CopyMarks{ID: "c1", Parts: map[int]CopyMark{1: {Items: 7, Done: true}}, Closed: true, Date: w.s.Date + 1})
	if c = w.s.CopyRunning(); c == nil || c.By != "" || c.Closes() || w.s.WorkersMayWrite() || c.TakenBack {
		t.Errorf("closed: %+v", c)
	}
	if c = do(CopyDelegate); c.Delegated <= first || c.Closes() {
		t.Errorf("delegated again: %+v", c)
	}
	sameState(t, "restored", w.l.fold(t), w.l.restored(t))
}

// TestCancelOfWorkersIsAGapOnceTheirOrderIsClosed: what a resync makes right before that, a worker
// may make wrong again.
func TestCancelOfWorkersIsAGapOnceTheirOrderIsClosed(t *testing.T) {
	for name, complete := range map[string]bool{"half": false, "complete": true} {
		w := exportCopied(t, ByWorkers)
		if complete {
			w.must(t, &CopyMarks{ID: "c1", Parts: allMarked, Date: w.s.Date + 1})
		}
		w.must(t, &Control{Copy: &CopyOrder{"c1", CopyCancel}, At: w.s.Date + 5})
		if c := w.s.CopyRunning(); c == nil || !c.Closes() || c.Canceled || len(w.s.Gaps) > 0 || !w.s.WorkersMayWrite() {
			t.Fatalf("%s: cancelled: %+v, gaps %+v", name, w.s.Copy, w.s.Gaps)
		}
		w.must(t, &CopyMarks{ID: "c1", Closed: true, Date: w.s.Date + 2})
		c := w.s.Copy
		if w.s.CopyRunning() != nil || c.Canceled == complete || c.Done() != complete || (len(w.s.Gaps) == 0) != complete {
			t.Errorf("%s: closed: %+v, gaps %+v", name, c, w.s.Gaps)
		}
		sameState(t, "restored", w.l.fold(t), w.l.restored(t))
	}
}

// TestMappingIsNotSwitchedWhileWorkersWrite with the one before: such an entry has no effect.
func TestMappingIsNotSwitchedWhileWorkersWrite(t *testing.T) {
	w := exportCopied(t, ByWorkers)
	id := Identity{Mapping: "a"}
	w.s.Identity, w.s.Accepting = &id, &Accept{From: "a", To: "b"}
	w.s.applyAccept(w.s.Seq+1, &Accept{From: "a", To: "b", Done: true})
	if w.s.Identity.Mapping != "a" || w.s.Copy.Canceled {
		t.Errorf("%+v", w.s.Copy)
	}
	if w.s.applyAccept(w.s.Seq+1, &Accept{From: "a", To: "a", Done: true}); w.s.Accepting != nil {
		t.Error("it is not given up either")
	}
}

// TestWhoCopies: workers read the files of an export, and no other part of a log names them.
func TestWhoCopies(t *testing.T) {
	w := copied(t)
	if got := w.s.Delegates(w.s.CopyRunning()); got != DelegateScan {
		t.Errorf("of a scan: %s", got)
	}
	w.must(t, &Control{Copy: &CopyOrder{"c1", CopyDelegate}})
	if w.s.WorkersMayWrite() || w.s.Delegates(nil) != DelegateNoCopy {
		t.Error("a scan is delegated")
	}
	w.must(t, &Control{Copy: &CopyOrder{"c1", CopyCancel}})
	for _, b := range []*Copy{{ID: "c2", From: FromScan, By: ByWorkers}, {ID: "c2", From: FromExport, By: "others"}} {
		if err := w.s.CheckNext(b); !errors.As(err, new(*CorruptError)) {
			t.Errorf("%+v: %v", b, err)
		}
	}
	w = exportCopied(t, "")
	w.must(t, &CopyMarks{ID: "c1", Paused: "too old"})
	if got := w.s.Delegates(w.s.CopyRunning()); got != DelegatePaused {
		t.Errorf("paused: %s", got)
	}
	w.must(t, &Control{Copy: &CopyOrder{"c1", CopyDelegate}})
	if w.s.WorkersMayWrite() {
		t.Error("a copy that has paused itself is delegated")
	}
}

// TestExportThatWasRequestedIsCopiedByWorkers: the entry that names the export holds
// the order, and what was ordered before still holds.
func TestExportThatWasRequestedIsCopiedByWorkers(t *testing.T) {
	w := owned(t, ShardSeen{ID: "a"})
	b := Copy{ID: "c1", Why: CopyBackfill, From: FromExport, By: ByWorkers, Began: w.s.Date + 2000}
	w.must(t, &b, &Control{Copy: &CopyOrder{"c1", CopyTakeback}})
	if b.Export, b.Parts, b.Version = "e", 3, 1000; !w.s.Copy.Closes() {
		t.Error("not taken back")
	}
	w.must(t, &b)
	if c := w.s.CopyRunning(); c.Delegated != w.s.Seq || !c.Closes() {
		t.Errorf("%+v", c)
	}
}
