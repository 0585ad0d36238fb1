package verify

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
