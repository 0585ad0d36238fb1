package verify

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/test/oracle"
	"github.com/tailrace-cdc/replicator/transform"
)

// moves is a mapping in which items share rows, and one row of an item depends on an attribute.
var moves = histories[4].mapping

// planted is one kind of damage, alone in its table.
type planted struct {
	name  string
	do    func(e *engine)
	want  string // "KEY: KINDS", or "foreign ROW COLUMN"
	rows  string // of the verdict
	other bool   // no repair of an item removes it
}

var plants = []planted{
	{name: "a missing row", do: func(e *engine) { e.wipe("by#t#p#a") },
		want: keyOf("p", "a") + ": missing_row", rows: "by#t#p#a"},
	{name: "a row too many", do: func(e *engine) { e.put("q", "b", someText); e.lose("q", "b", "") },
		want: keyOf("q", "b") + ": extra_cell stale", rows: "by#t#q#b q"},
	{name: "a missing cell", do: func(e *engine) { e.foreign("p", "d", "a/x", "") },
		want: keyOf("p", "a") + ": missing_cell", rows: "p"},
	{name: "a cell too many", do: func(e *engine) { e.lose("p", "b", `"text":{"S":"t"},"x":{"S":"1"}`) },
		want: keyOf("p", "b") + ": extra_cell", rows: "p"},
	{name: "a wrong cell", do: func(e *engine) { e.foreign("p", "d", "a/x", "wrong") },
		want: keyOf("p", "a") + ": value", rows: "p"},
	{name: "an old version on top", do: func(e *engine) {
		e.put("p", "a", `"text":{"S":"t"},"x":{"S":"newer"},"y":{"S":"1"}`)
		e.foreign("p", "d", "a/x", "1")
		e.foreign("by#t#p#a", "d", "x", "1")
	}, want: keyOf("p", "a") + ": value", rows: "by#t#p#a p"},
	{name: "the ghost of a row that its item has left", do: func(e *engine) {
		e.put("p", "a", `"text":{"S":"old"},"x":{"S":"1"},"y":{"S":"1"}`)
		c := e.change(keyOf("p", "a"), `{"pk":{"S":"p"},"sk":{"S":"a"},`+someText+`}`)
		c.Old = []byte(strings.Replace(string(c.Old), "old", "another", 1)) // so that the row of old stays
		e.apply(c)
	}, want: keyOf("p", "a") + ": extra_cell stale", rows: "by#old#p#a"},
	{name: "a missing guard", do: func(e *engine) { e.unguard("by#t#p#a") },
		want: keyOf("p", "a") + ": no_guard", rows: "by#t#p#a"},
	{name: "a foreign row", do: func(e *engine) { e.foreign("nobody's", "d", "x", "1") },
		want: "foreign nobody's d:x", other: true},
	{name: "a foreign cell", do: func(e *engine) { e.foreign("p", "d", "nobody/x", "1") },
		want: "foreign p d:nobody/x", other: true},
	{name: "a guard in the future", do: func(e *engine) {
		key := keyOf("p", "a")
		e.write(&transform.Write{Item: transform.Item{Guard: guardQualifier("p", "S", key), Table: "S", Pipeline: "p",
			Key: []byte(key)}, Version: change.Version(e.now() + 7_200_000),
			Rows: []transform.Row{{Key: []byte("p"), Class: transform.ClassK}}})
	}, want: keyOf("p", "a") + ": future", rows: "p", other: true},
}

const someText = `"text":{"S":"t"},"x":{"S":"1"},"y":{"S":"1"}`

// TestEachPlantedDifferenceIsNamedAloneAndRepaired: never equal with one of them, each attributed
// to its item while a neighbour in the same row changes all the time, nothing else named, and equal
// after its repair, cell by cell.
func TestEachPlantedDifferenceIsNamedAloneAndRepaired(t *testing.T) {
	for _, p := range plants {
		e := newEngine(t, moves)
		for _, sk := range []string{"a", "b"} {
			e.put("p", sk, someText)
		}
		n := 0
		busy := func() { n++; e.put("p", "busy", fmt.Sprintf(`"text":{"S":"t"},"x":{"S":"%d"}`, n)) }
		busy()
		if got := e.judged(e.full(e.options()), ""); len(got) > 0 {
			t.Fatalf("%s: before: %v", p.name, got)
		}
		p.do(e)
		f := e.full(e.options())
		e.beforeProof = busy
		if diff := cmp.Diff([]string{p.want}, e.judged(f, p.rows)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", p.name, diff)
		}
		e.beforeProof = nil
		if p.other {
			continue
		}
		res := e.resync()
		if healed, why := res.Healed(false); !healed || res.Different != 1 || res.Repaired != 1 {
			t.Errorf("%s: %s: %+v", p.name, why, res)
		}
		e.version += 120_000 // the repair's versions lie above those so far
		if got := e.judged(e.full(e.options()), ""); len(got) > 0 {
			t.Errorf("%s: after its repair: %v", p.name, got)
		}
		if c := e.compare(oracle.Options{}); !c.Equal() {
			t.Errorf("%s: cell by cell: %+v", p.name, c)
		}
	}
}

// judged returns what is not proven equal when the findings are settled. Items must differ in these
// rows.
func (e *engine) judged(f *Findings, rows string) (all []string) {
	e.t.Helper()
	c := Checker{Settler: e.settler(), Verdict: func(v *Verdict) error {
		if v.Status == Equal || v.Status == EqualByLog || v.Status == Kept {
			return nil
		}
		var kinds, in []string
		for _, k := range v.Kinds {
			kinds = append(kinds, string(k))
		}
		for _, r := range v.Rows {
			in = append(in, string(r))
		}
		slices.Sort(kinds)
		all = append(all, v.Key+": "+strings.Join(kinds, " "))
		if got := strings.Join(in, " "); got != rows || v.Status != Different {
			e.t.Errorf("%s is %s in %q, want different in %q", v.Key, v.Status, got, rows)
		}
		return nil
	}, Cell: func(o *Open) error {
		all = append(all, fmt.Sprintf("%s %s %s:%s", o.Kind, o.Row, o.Family, o.Qualifier))
		return nil
	}}
	if err := errors.Join(c.Findings(e.t.Context(), f), f.Remove()); err != nil {
		e.t.Fatal(err)
	}
	return all
}

// unguard deletes the guards of a row, and leaves its cells.
func (e *engine) unguard(row string) {
	e.t.Helper()
	e.remove(row, func(r *Row) []bigtable.Cell { return r.Live })
}

// wipe deletes a row with its guards behind the replicator's back.
func (e *engine) wipe(row string) {
	e.t.Helper()
	e.remove(row, func(r *Row) []bigtable.Cell { return slices.Concat(r.Cells, r.Live, r.Dead) })
}

// remove deletes cells of a row.
func (e *engine) remove(row string, which func(*Row) []bigtable.Cell) {
	e.t.Helper()
	var cells []bigtable.Cell
	err := e.bigtable().Lookup(e.t.Context(), []string{row}, func(r *Row) error {
		cells = which(r.Clone())
		return nil
	})
	if err == nil && len(cells) > 0 {
		err = e.client.DeleteCells(e.t.Context(), target, []byte(row), cells)
	}
	if err != nil || len(cells) == 0 {
		e.t.Fatalf("delete of %s: %d cells, %v", row, len(cells), err)
	}
}
