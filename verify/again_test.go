package verify

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// cellsOf settles findings twice, as a cutover does, and returns what is left without an owner.
func (e *engine) cellsOf(f *Findings, items *[]string) (left []string) {
	e.t.Helper()
	for range 2 {
		left, *items = nil, nil
		c := Checker{Settler: e.settler(), Verdict: func(v *Verdict) error {
			*items = append(*items, v.Key+" "+string(v.Status))
			return nil
		}, Cell: func(o *Open) error {
			left = append(left, string(o.Kind)+" "+string(o.Row)+" "+string(o.Qualifier))
			return nil
		}}
		if err := c.Findings(e.t.Context(), f); err != nil {
			e.t.Fatal(err)
		}
	}
	slices.Sort(left)
	return left
}

// TestForeignCellsAreLookedAtAgain: a cell without an owner that is gone once everything is applied
// was on its way, as a row is that its item is just leaving; one that an item has taken over is
// settled with its item.
func TestForeignCellsAreLookedAtAgain(t *testing.T) {
	e := newEngine(t, sharedRows)
	e.put("p", "a", `"x":{"S":"1"}`)
	for _, column := range []string{"stays", "goes", "b/x"} {
		e.foreignCell("p", column)
	}
	e.foreignCell("gone", "x")
	for i := range 250 { // rows of several lookups
		e.foreignCell(fmt.Sprint("many", i), "x")
	}
	f := e.full(e.options())
	first := f.Counts.Foreign
	proofs := 0
	e.beforeProof = func() {
		if proofs++; proofs > 1 {
			return
		}
		e.foreign("p", "d", "goes", "")
		e.wipe("gone")
		e.put("p", "b", `"x":{"S":"1"},"y":{"S":"2"}`) // owns b/x by now, and has replaced it
	}
	var items []string
	left := e.cellsOf(f, &items)
	want := []string{"foreign p stays"}
	for i := range 250 {
		want = append(want, fmt.Sprintf("foreign many%d x", i))
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if f.Counts.Foreign != first-3 || first != 254 {
		t.Errorf("%d foreign cells after %d", f.Counts.Foreign, first)
	}
	if diff := cmp.Diff([]string{keyOf("p", "b") + " equal"}, items); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}

// TestTakenCellThatIsWrongIsADifference: the owner of a cell that was foreign is known by now, and
// should not have it.
func TestTakenCellThatIsWrongIsADifference(t *testing.T) {
	e := newEngine(t, sharedRows)
	e.foreignCell("p", "b/x")
	f := e.full(e.options())
	e.beforeProof = func() {
		e.beforeProof = nil
		key := keyOf("p", "b")
		e.items[key] = `{"pk":{"S":"p"},"sk":{"S":"b"},"y":{"S":"2"}}`
		e.version++
		e.write(&transform.Write{Item: transform.Item{Guard: guardQualifier("p", "S", key), Table: "S", Pipeline: "p",
			Key: []byte(key)}, Version: change.Version(e.version), Rows: []transform.Row{{Key: []byte("p"),
			Class: transform.ClassK, Cells: []transform.Cell{{Family: "d", Qualifier: []byte("b/y"), Value: []byte("2")}}}}})
	}
	var items []string
	if left := e.cellsOf(f, &items); len(left) > 0 || !slices.Equal(items, []string{keyOf("p", "b") + " different"}) {
		t.Errorf("%q without an owner, items %q", left, items)
	}
}

// TestResyncLooksAtForeignCellsAgain: what is gone does not keep a table from being healed, however
// often it runs.
func TestResyncLooksAtForeignCellsAgain(t *testing.T) {
	e := newEngine(t, sharedRows)
	e.put("p", "a", `"x":{"S":"1"}`)
	e.foreignCell("p", "goes")
	e.foreignCell("q", "later")
	f := e.full(e.options())
	r := Resyncer{Settler: e.settler(), Repair: e.repair}
	run := func(gone string) *Resynced {
		r.Prove = func(context.Context, change.Millis) error {
			if gone != "" {
				e.wipe(gone)
				gone = ""
			}
			return nil
		}
		res, err := r.Run(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	e.foreign("p", "d", "goes", "")
	if res := run(""); res.Foreign != 1 || res.OpenCount != 1 || string(res.Open[0].Row) != "q" {
		t.Errorf("%+v", res)
	}
	res := run("q")
	if healed, why := res.Healed(false); !healed || res.OpenCount != 0 {
		t.Errorf("%s: %+v", why, res)
	}
}
