package protocol

import (
	"testing"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

func partsOf(n int) *Parts {
	return NewParts(&checkpoint.CopyState{Copy: checkpoint.Copy{Parts: n}})
}

// read takes a part and adds the next page of it.
func read(t *testing.T, x *Part, after string, last bool) *CopyPage {
	t.Helper()
	if !x.Readable() {
		t.Fatalf("part %d is not readable", x.Number)
	}
	x.Take()
	from, rewinds := x.Position()
	pg := &CopyPage{From: from, After: after, Last: last, Items: 1, Letters: 2}
	if !x.Add(pg, rewinds) {
		t.Fatalf("the page up to %q is dropped", after)
	}
	x.GiveBack()
	return pg
}

// TestMarkOfAPartEndsAtTheFirstPageThatIsNotDurable: pages are written in any order (Rule 1).
func TestMarkOfAPartEndsAtTheFirstPageThatIsNotDurable(t *testing.T) {
	p := partsOf(1)
	x := p.All[0]
	a, b, c := read(t, x, "a", false), read(t, x, "b", false), read(t, x, "c", true)
	if x.Readable() {
		t.Error("a part is readable behind its last page")
	}
	for _, step := range []struct {
		page  *CopyPage
		after string
		items int64
	}{{b, "", 0}, {a, "b", 2}, {c, "c", 3}} {
		p.Complete(x, step.page)
		if sum := p.Total(); x.mark.After != step.after || sum.Items != step.items ||
			sum.Letters != 2*step.items {
			t.Errorf("the mark is at %q, %+v is copied; want %q, %d items", x.mark.After, sum, step.after, step.items)
		}
	}
	if !p.AllDone() || p.DoneCount() != 1 || !p.Total().Done {
		t.Error("the part is not done")
	}
	moved := p.TakeMoved()
	if len(moved) != 1 || !moved[0].Done || len(p.TakeMoved()) != 0 {
		t.Errorf("moved: %+v", moved)
	}
	p.PutBack(moved)
	if again := p.TakeMoved(); again[0] != moved[0] {
		t.Errorf("put back: %+v", again)
	}
}

// TestPageBehindOneThatIsReadAgainIsDropped: it was being read when the page before it became too
// old. With it, the mark would pass what is not written (Rule 1).
func TestPageBehindOneThatIsReadAgainIsDropped(t *testing.T) {
	p := partsOf(1)
	x := p.All[0]
	first := read(t, x, "a", false)
	x.Take()
	from, rewinds := x.Position()
	if !x.ReadAgain(first) || x.ReadAgain(first) {
		t.Error("the first page is not read again once")
	}
	second := &CopyPage{From: from, After: "b", Items: 1}
	if x.Add(second, rewinds) {
		p.Complete(x, second)
	}
	x.GiveBack()
	if from, _ := x.Position(); from != "" || x.mark.After != "" {
		t.Errorf("read on after %q, marked up to %q, and nothing is written", from, x.mark.After)
	}
}

// TestCopyGoesOnWithThePartsThatAreNotDone: an owner takes a copy over at its marks.
func TestCopyGoesOnWithThePartsThatAreNotDone(t *testing.T) {
	p := NewParts(&checkpoint.CopyState{Copy: checkpoint.Copy{Parts: 3}, Marks: map[int]checkpoint.CopyMark{
		0: {After: "x", Items: 5, Done: true}, 2: {After: "y", Items: 1},
	}})
	if p.All[0].Readable() || !p.All[1].Readable() || !p.All[2].Readable() || p.DoneCount() != 1 {
		t.Errorf("%d parts are done", p.DoneCount())
	}
	if from, _ := p.All[2].Position(); from != "y" {
		t.Errorf("read on after %q", from)
	}
	for _, x := range p.All[1:] {
		p.Complete(x, read(t, x, "z", true))
	}
	if sum := p.Total(); !p.AllDone() || sum.Items != 8 {
		t.Errorf("all done %v, %d items", p.AllDone(), sum.Items)
	}
}
