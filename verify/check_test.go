package verify

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/source"
)

// TestCheckerTellsAllThatIsNotEqual: a wrong value, a ghost, a new item that is equal by now, and a
// foreign cell.
func TestCheckerTellsAllThatIsNotEqual(t *testing.T) {
	e := newEngine(t, "")
	for _, sk := range []string{"a", "b", "c"} {
		e.put("p", sk, `"x":{"S":"1"}`)
	}
	e.lose("p", "a", `"x":{"S":"2"}`)
	e.lose("p", "b", "")
	e.foreign("nobody's", "d", "x", "9")
	f := e.full(e.options())
	e.put("p", "c", `"x":{"S":"3"}`)
	found := map[string]Status{}
	cells, absent := 0, 0
	c := Checker{Settler: e.settler(), Batch: 1,
		Verdict: func(v *Verdict) error {
			found[v.Key] = v.Status
			if v.Absent {
				absent++
			}
			return nil
		},
		Cell: func(o *Open) error {
			if o.Kind == Foreign && string(o.Row) == "nobody's" {
				cells++
			}
			return nil
		},
	}
	if err := c.Findings(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	want := map[string]Status{keyOf("p", "a"): Different, keyOf("p", "b"): Different}
	if diff := cmp.Diff(want, found); diff != "" || cells != 1 || absent != 1 || len(e.repaired) > 0 {
		t.Errorf("%d foreign cells, %d absent items (-want +got):\n%s", cells, absent, diff)
	}
	if by := f.ByTable[0]; by.Items != 2 || by.Rows != 2 || by.Cells != f.Counts.Cells || by.Began != f.Counts.Began {
		t.Errorf("%+v, want the same as %+v", by, f.Counts)
	}
	clear(found)
	err := c.Items(t.Context(), []Candidate{{Key: keyOf("p", "c")}, {Key: keyOf("p", "a")}})
	want = map[string]Status{keyOf("p", "a"): Different, keyOf("p", "c"): Equal}
	if diff := cmp.Diff(want, found); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestCheckerProvesOnlyWhatALookDoesNotDecide: a comparison beside writers has thousands of items
// that were on their way to the target, and each batch of them would wait for a proof.
func TestCheckerProvesOnlyWhatALookDoesNotDecide(t *testing.T) {
	e := newEngine(t, "")
	var items []Candidate
	for i := range 40 {
		sk := fmt.Sprintf("s%02d", i)
		e.put("p", sk, `"x":{"S":"1"}`)
		items = append(items, Candidate{Key: keyOf("p", sk)})
	}
	found := map[Status]int{}
	c := Checker{Settler: e.settler(), Batch: 4,
		Verdict: func(v *Verdict) error { found[v.Status]++; return nil }}
	if err := c.Items(t.Context(), items); err != nil || found[Equal] != 40 || e.proofs != 0 {
		t.Errorf("equal items: %v, %d proofs, %v", found, e.proofs, err)
	}
	// One of each ten is late: one is equal behind the proof, two differ.
	for _, sk := range []string{"s00", "s10", "s20"} {
		e.lose("p", sk, `"x":{"S":"2"}`)
	}
	e.beforeProof = func() { e.put("p", "s10", `"x":{"S":"2"}`) }
	clear(found)
	err := c.Each(t.Context(), func(f func([]Candidate) error) error {
		for part := range slices.Chunk(items, 5) {
			if err := f(part); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || found[Equal] != 38 || found[Different] != 2 || e.proofs != 2 { // Different takes two settlings
		t.Errorf("beside writers: %v, %d proofs, %v", found, e.proofs, err)
	}
}

// TestLookDecidesAboutNothingThatChanges: an item that changes between the two readings is settled.
func TestLookDecidesAboutNothingThatChanges(t *testing.T) {
	e := newEngine(t, "")
	e.put("p", "a", `"x":{"S":"1"}`)
	s := e.settler()
	read, reads := s.ReadItems, 0
	s.ReadItems = func(ctx context.Context, table string, keys [][]byte) (*source.ItemBatch, error) {
		if reads++; reads == 2 {
			e.put("p", "a", `"x":{"S":"2"}`)
		}
		return read(ctx, table, keys)
	}
	v, err := s.Look(t.Context(), []Candidate{{Key: keyOf("p", "a")}})
	if err != nil || len(v) != 1 || v[0].Certain() || !v[0].Busy {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestDecideKeepsTheOrder: what a look decides and what is settled stand where their items did.
func TestDecideKeepsTheOrder(t *testing.T) {
	e := newEngine(t, "")
	var items []Candidate
	for _, sk := range []string{"a", "b", "c", "d"} {
		e.put("p", sk, `"x":{"S":"1"}`)
		items = append(items, Candidate{Key: keyOf("p", sk)})
	}
	for _, sk := range []string{"b", "d"} {
		e.lose("p", sk, `"x":{"S":"2"}`)
	}
	s := e.settler()
	v, err := s.Decide(t.Context(), items)
	if err != nil || len(v) != 4 {
		t.Fatal(v, err)
	}
	for i, want := range []Status{Equal, Different, Equal, Different} {
		if v[i].Status != want || v[i].Key != items[i].Key {
			t.Errorf("item %d: %+v, want %s", i, v[i], want)
		}
	}
}

// TestCheckerSettlesABatchAtOnce: the items that a look does not decide are in memory until then.
func TestCheckerSettlesABatchAtOnce(t *testing.T) {
	e := newEngine(t, "")
	var items []Candidate
	for i := range 40 {
		sk := fmt.Sprintf("s%02d", i)
		e.put("p", sk, `"x":{"S":"1"}`)
		e.lose("p", sk, `"x":{"S":"2"}`)
		items = append(items, Candidate{Key: keyOf("p", sk)})
	}
	found := map[Status]int{}
	c := Checker{Settler: e.settler(), Batch: 4, Verdict: func(v *Verdict) error { found[v.Status]++; return nil }}
	if err := c.Items(t.Context(), items); err != nil || found[Different] != 40 || e.proofs != 2*10 {
		t.Errorf("%v, %d proofs, %v", found, e.proofs, err)
	}
}
