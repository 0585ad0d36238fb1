package verify

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

// beside writes an item of table T into a row, whose guard sorts before or behind that of an item
// of S.
func (w *world) beside(row, of string, order int) {
	w.t.Helper()
	own := guardQualifier("p", "S", of)
	for i := 0; ; i++ {
		key := keyOf("p", fmt.Sprint("at", i))
		q := guardQualifier("p", "T", key)
		if bytes.Compare(q[:], own[:]) != order {
			continue
		}
		w.version++
		w.write(&transform.Write{Item: transform.Item{Guard: q, Table: "T", Pipeline: "p", Key: []byte(key)},
			Version: change.Version(w.version), Rows: []transform.Row{{Key: []byte(row), Class: transform.ClassK,
				Cells: []transform.Cell{{Family: "d", Qualifier: fmt.Appendf(nil, "at%d/x/S", i), Value: []byte("1")}}}}})
		return
	}
}

// These are mappings of rules that share rows: the columns of one show to which item they belong,
// those of the other do not.
const (
	plainRule = `
- name: plain
  match: {pk: "{p}", sk: "b{s}"}
  row: "{p}"
  segments: escape
  cells: [{attrs: all, except: [pk, sk], to: "d:b{s}/{attr}"}]
`
	typedRule = `
- name: typed
  match: {pk: "{p}", sk: "a{s}"}
  row: "{p}"
  segments: escape
  cells: [{attrs: all, except: [pk, sk], to: "d:a{s}/{attr}/{type}"}]
`
	oneFamily = `
mapping: 1
families: {d: {max_versions: 1}}
rules:`
)

// TestExtraCellBesideAGuardOfAnotherTable: an attribute of an item was removed in a gap. Its own
// guard shows that the cell is the item's. The guard of a table that is not compared, in the same
// row, must not hide that, wherever it sorts: one of a table that was retired and left its guards,
// or one that shares the target.
func TestExtraCellBesideAGuardOfAnotherTable(t *testing.T) {
	for _, name := range []string{"alone", "retired", "sharing"} {
		for _, order := range []int{-1, 1} {
			t.Run(fmt.Sprint(name, order), func(t *testing.T) {
				e := newEngine(t, oneFamily+plainRule)
				e.put("p", "b1", `"x":{"S":"1"},"y":{"S":"2"}`)
				if name != "alone" {
					e.beside("p", keyOf("p", "b1"), order)
				}
				if name == "sharing" {
					table := e.program.Table()
					table.Source = "T"
					table.Mapping, _ = transform.ParseMapping("t.yaml", []byte(oneFamily+typedRule))
					other, problems := transform.Compile(table)
					if other == nil {
						t.Fatal(problems)
					}
					e.tables = []Table{{Program: other, Outlives: other.Outlives}}
				}
				e.lose("p", "b1", `"x":{"S":"1"}`)
				r := Resyncer{Settler: e.settler()}
				res, err := r.Run(t.Context(), e.full(e.options()))
				if err != nil {
					t.Fatal(err)
				}
				if healed, _ := res.Healed(false); healed || res.Different != 1 || res.Foreign+res.Unproven != 0 {
					t.Errorf("%+v", res)
				}
				res = e.resync()
				if healed, why := res.Healed(false); !healed || res.Repaired != 1 {
					t.Errorf("%s: %+v", why, res)
				}
			})
		}
	}
}

// TestCellWhoseOwnerComesMeanwhileIsADifference: the owner of a cell cannot be told, so its row is
// looked at again. Meanwhile an item comes that owns the cell and should not have it, which its
// guard shows now.
func TestCellWhoseOwnerComesMeanwhileIsADifference(t *testing.T) {
	e := newEngine(t, oneFamily+typedRule+plainRule)
	e.put("p", "a1", `"x":{"S":"1"}`)
	e.foreign("p", "d", "b1/zip", "ghost") // what an old life of b1 has left, whose tombstone is collected
	f := e.full(e.options())
	e.beforeProof = func() {
		e.beforeProof = nil
		e.put("p", "b1", `"other":{"S":"2"}`)
	}
	r := Resyncer{Settler: e.settler()}
	res, err := r.Run(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	if healed, _ := res.Healed(true); healed || res.Different != 1 || res.Unproven+res.Unowned != 0 {
		t.Errorf("%+v", res)
	}
	var items []string
	if left := e.cellsOf(f, &items); len(left) > 0 || !slices.Equal(items, []string{keyOf("p", "b1") + " different"}) {
		t.Errorf("%q without an owner, items %q", left, items)
	}
}

// TestCellWhoseOwnerCannotBeToldIsLookedAtTwice: an item is changed between the reading of the
// items and the look at their row, which has a cell then that no item has that was read. After one
// look it would be unproven, and a cutover would be refused.
func TestCellWhoseOwnerCannotBeToldIsLookedAtTwice(t *testing.T) {
	e := newEngine(t, strings.Replace(sharedRows, "d:{s}/{attr}", "d:{s}/{attr}/{type}", 1))
	e.put("p", "a", `"x":{"S":"1"}`)
	e.foreign("p", "d", "a/ghost/S", "boo")
	var cells []Open
	for _, column := range []string{"a/y/S", "a/ghost/S"} {
		cells = append(cells, Open{Kind: Unowned, Row: []byte("p"), Family: "d", Qualifier: []byte(column)})
	}
	s, proofs := e.settler(), 0
	prove := s.Prove
	s.Prove = func(ctx context.Context, through change.Millis) error {
		if proofs++; proofs == 1 {
			e.put("p", "a", `"x":{"S":"1"},"y":{"S":"2"}`)
		}
		return prove(ctx, through)
	}
	open, owned, err := s.settleCells(t.Context(), cells)
	if err != nil || len(open) != 1 || string(open[0].Qualifier) != "a/ghost/S" || open[0].Kind != Unowned ||
		len(owned) > 0 {
		t.Errorf("%+v, owned %+v, %v", open, owned, err)
	}
}

// TestCellWhoseGuardsGoMeanwhileIsForeign: no guard can own it any more, so it must not vanish from
// the result.
func TestCellWhoseGuardsGoMeanwhileIsForeign(t *testing.T) {
	e := newEngine(t, oneFamily+typedRule)
	e.put("p", "a1", `"x":{"S":"1"}`)
	e.put("p", "a1", "")
	e.foreign("p", "d", "a2/zip/S", "ghost")
	f := e.full(e.options())
	e.beforeProof = func() {
		e.beforeProof = nil
		e.remove("p", func(r *Row) []bigtable.Cell { return r.Dead }) // the tombstone is collected
	}
	var items []string
	if left := e.cellsOf(f, &items); !slices.Equal(left, []string{"foreign p a2/zip/S"}) || len(items) > 0 {
		t.Errorf("%q without an owner, items %q", left, items)
	}
}

// TestItemWithTwoGuardsInARow: an earlier mapping gave the row to the item alone. Whichever guard
// sorts first, what both of them own is looked at when the item is settled.
func TestItemWithTwoGuardsInARow(t *testing.T) {
	for i := range 8 {
		e := newEngine(t, sharedRows)
		sk := fmt.Sprint("a", i)
		e.put("p", sk, `"x":{"S":"1"}`)
		e.guardAt("p", keyOf("p", sk), e.version)
		e.foreign("p", "d", "not its column", "?")
		s := e.settler()
		v, err := s.Settle(t.Context(), []Candidate{{Key: keyOf("p", sk), Rows: [][]byte{[]byte("p")}}})
		if err != nil || v[0].Status != Different || !slices.Equal(v[0].Kinds, []Kind{ExtraCell}) {
			t.Errorf("%s: %+v, %v", sk, v, err)
		}
	}
}
