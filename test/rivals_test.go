package test

import (
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// unfenceRow takes the fence out of the row of Orders, as the last step of an undo does.
func (s *sides) unfenceRow() {
	s.w.t.Helper()
	for {
		row, err := s.sink.LoadState(s.w.t.Context(), "shop", "Orders")
		if err != nil {
			s.w.t.Fatal(err)
		}
		next := *row
		next.Fenced = nil
		if s.sink.CompareAndSet(s.w.t.Context(), row, &next) == nil {
			return
		}
	}
}

// fenceOf returns the fence in the row of Orders.
func (s *sides) fenceOf() *bigtable.Fenced {
	s.w.t.Helper()
	row, err := s.sink.LoadState(s.w.t.Context(), "shop", "Orders")
	if err != nil {
		s.w.t.Fatal(err)
	}
	return row.Fenced
}

// Two people cut one table over at the same moment: both end with the same fence, and one of them
// may be told to wait for the other. A certificate is refused when its fence is undone while it is
// being made.
func TestCutoversOfOneTableAtOnce(t *testing.T) {
	long(t, "10 s: three cutovers")
	w := newWorld(t, 714)
	w.prepare("Orders")
	w.Put("Orders", "hats", "fedora", `"n":{"N":"1"}`)
	d := w.run()
	d.settle("Orders")
	both := []*begun{
		w.begin(d, "cutover", "--table", "Orders", "--quiet", "1s", "--out", "a.json"),
		w.begin(d, "cutover", "--table", "Orders", "--quiet", "1s", "--out", "b.json"),
	}
	for _, c := range both {
		d.until("it waits for the writers", func() bool { return strings.Contains(c.out.String(), "Stop the writers now") })
	}
	certificates := 0
	for _, c := range both {
		switch code := c.ends(); code {
		case 0:
			certificates++
		case 3:
			if !strings.Contains(c.out.String(), "another verify works in") {
				t.Errorf("exit 3: %s", c.out)
			}
		default:
			t.Errorf("exit %d: %s", code, c.out)
		}
	}
	s := w.openPair()
	fence := s.fenceOf()
	if certificates == 0 || fence == nil || d.table("Orders").Fence == nil || fence.ID != d.table("Orders").Fence.ID {
		t.Fatalf("%d certificates, fences %+v and %+v\n%s\n%s", certificates, fence, d.table("Orders").Fence, both[0].out,
			both[1].out)
	}

	late := w.begin(d, "cutover", "--table", "Orders", "--out", "late.json")
	d.until("it has compared both sides", func() bool {
		if strings.Contains(late.out.String(), "1 item is equal") {
			return true
		}
		d.hasten(300 * time.Millisecond)
		return late.over()
	})
	s.unfenceRow()
	if code := late.ends(); code != 4 || !strings.Contains(late.out.String(), "was taken away meanwhile") {
		t.Errorf("the row's fence is gone: exit %d\n%s", code, late.out)
	}
	w.ok("cutover", "--undo", "--yes")
	d.until("the fence is gone", func() bool { return d.table("Orders").State == "running" })
	w.Put("Orders", "hats", "fedora", `"n":{"N":"2"}`)
	d.settle("Orders")
	w.Equal("Orders")
}
