package guarded

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
)

var outcomes = map[Outcome]string{
	IsEqual: "equal", IsMissing: "missing", IsOther: "other", IsAged: "aged", IsShared: "shared", IsOlder: "older",
	IsExtra: "extra", IsKept: "kept", IsKeptWhileAbsent: "kept while absent", IsTooOld: "too old",
}

// itemRow returns how a row compares with one item, as text. Items are as for wanted; "-a" is item
// a of which there is none, and "!a" item a which should not be in the row.
func (s *stage) itemRow(cells []string, item string) (text string, differs bool) {
	s.t.Helper()
	var row *Row
	g, c := NewGuards(target{stage: s}, s.tables), NewCells(s.families)
	if c.Now = noon; cells != nil {
		row = s.row(cells)
		g.Read(row)
	}
	want, of := ItemWant{Absent: item[0] == '-'}, Item{0, keyOf(strings.TrimLeft(item, "-!"))}
	if !want.Absent && item[0] != '!' {
		p, projected, named := s.projected(item)
		of, want.Wanted = named, true
		for i := range projected.Cells {
			want.Cells = append(want.Cells, p.Cell(&projected.Cells[i]).Clone())
		}
	}
	r, err := g.CompareItem(&c, row, of, want, change.Version(late))
	if err != nil {
		s.t.Fatal(err)
	}
	var found []string
	flags := map[string]bool{"future": r.Future > 0, "no guard": r.NoGuard, "stale": r.Stale, "kept": r.Kept}
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		if flags[flag] {
			found = append(found, flag)
		}
	}
	for _, x := range r.Cells {
		text := outcomes[x.State]
		if x.Have >= 0 {
			text += " " + place(&c.List[x.Have])
		}
		found = append(found, text)
	}
	if r.Others > 0 {
		found = append(found, fmt.Sprint("others ", r.Others))
	}
	return strings.Join(found, "; "), r.Differs()
}

// itemCase is a row, an item, and how they compare.
type itemCase struct {
	cells, item, want string
	differs           bool
}

func (s *stage) checkItems(cases map[string]itemCase) {
	s.t.Helper()
	for name, c := range cases {
		cells := list(c.cells)
		if c.cells == noRow {
			cells = nil
		}
		got, differs := s.itemRow(cells, c.item)
		if d := cmp.Diff(c.want, got); d != "" || differs != c.differs {
			s.t.Errorf("%s: differs %t, want %t (-want +got):\n%s", name, differs, c.differs, d)
		}
	}
}

// checkWithAll checks that the comparison of the whole table finds the same items that differ.
func (s *stage) checkWithAll(cases map[string]itemCase) {
	s.t.Helper()
	for name, c := range cases {
		cells, items := list(c.cells), []string{}
		if c.cells == noRow {
			cells = nil
		}
		if !strings.ContainsAny(c.item[:1], "-!") {
			items = append(items, c.item)
		}
		found, _ := s.compare(cells, items...)
		if slices.ContainsFunc(found, func(f string) bool { return strings.HasSuffix(f, " S0/a") }) != c.differs {
			s.t.Errorf("%s: item a differs: %t, but not in the comparison of the whole table: %q", name, c.differs, found)
		}
	}
}

// TestRowComparedWithOneItem: Rule 14. Each thing that a row may show of an item, and whether it is
// a difference.
func TestRowComparedWithOneItem(t *testing.T) {
	const guard, ax, aged = "live i@new=S0/a", "a x=1", "a aged=1"
	s := newStage(t, own)
	cases := map[string]itemCase{
		"equal":                     {"d:x@new=1; " + guard, ax, "equal d:x", false},
		"an older version":          {"d:x@new=1; d:x@old=0; " + guard, ax, "equal d:x; older d:x", false},
		"another value":             {"d:x@new=2; d:x@old=1; " + guard, ax, "other d:x; older d:x", true},
		"no row":                    {noRow, ax, "missing", true},
		"no row, and none is due":   {noRow, "-a", "", false},
		"no cells, no row":          {noRow, "a", "", false},
		"no cells, no guard":        {"", "a", "", false},
		"a cell less":               {guard, ax, "missing", true},
		"a cell more":               {"d:x@new=1; d:y@new=1; " + guard, ax, "equal d:x; extra d:y", true},
		"no guard":                  {"d:x@new=1", ax, "no guard; equal d:x", true},
		"a guard that may be it":    {"d:x@new=1; live i@new=sealed", ax, "equal d:x", false},
		"a tombstone":               {"dead i@new=S0/a", "-a", "", false},
		"a ghost":                   {"d:x@new=1; dead i@new=S0/a", "-a", "extra d:x", true},
		"there is no such item":     {guard, "-a", "stale", true},
		"the item has left the row": {"d:x@new=1; " + guard, "!a", "stale; extra d:x", true},
		"a guard in the future":     {"d:x@new=1; live i@future=S0/a", ax, "future; equal d:x", true},
		"another's in the future":   {"d:x@new=1; " + guard + "; live q@future=S0/b", ax, "equal d:x", false},
		"aged away":                 {"live i@old=S0/a", aged, "aged", false},
		"left over, too old":        {"a:v@old=1; d:x@new=1; " + guard, ax, "equal d:x; too old a:v", false},
	}
	s.checkItems(cases)
	s.checkWithAll(cases)
	s = newStage(t, shared)
	s.key = "p"
	cases = map[string]itemCase{
		"a neighbour's cells": {"d:a/x@new=1; d:b/x@new=9; live q@new=S0/a; live r@new=S0/b", ax,
			"equal d:a/x; others 1", false},
		"a neighbour, no item": {"d:b/x@new=9; live r@new=S0/b", "-a", "others 1", false},
	}
	s.checkItems(cases)
	s.checkWithAll(cases)
}

// TestKeptRowComparedWithOneItem: what TTL leaves may remain while there is no such item, as long
// as a guard shows that it was there.
func TestKeptRowComparedWithOneItem(t *testing.T) {
	s := newStage(t, own+"  on_ttl_expiry: keep\n")
	s.tables[0].Outlives = s.tables[0].Program.Outlives
	const cells, guard = "d:x@new=1; d:y@new=1; ", "live i@new=S0/a"
	s.checkItems(map[string]itemCase{
		"the item expired":   {cells + guard, "-a", "kept; kept while absent d:x; kept while absent d:y", false},
		"its guard alone":    {guard, "-a", "kept", false},
		"it is there":        {cells + guard, "a x=1", "equal d:x; kept while absent d:y", true},
		"it has left":        {"d:x@new=1; " + guard, "!a", "stale; kept while absent d:x", true},
		"a user deleted it":  {"d:x@new=1; dead i@new=S0/a", "-a", "extra d:x", true},
		"nothing is left":    {"dead i@new=S0/a", "-a", "", false},
		"there was none yet": {noRow, "-a", "", false},
	})
}

// TestCellsOfOneColumnComparedWithOneItem: what newer cells have pushed out is not one of these,
// and a value that other items may write, too, is no difference.
func TestCellsOfOneColumnComparedWithOneItem(t *testing.T) {
	s := newStage(t, `families: {c: {max_versions: 2, max_age: 1h}}
rules:
- name: comment
  match: {pk: "{p}", sk: "c{at:d}"}
  row: "{p}"
  cells: [{attr: t, to: "c:t", ts: "{at|s_ms}", cell_id: ts}]
`)
	s.key = "p"
	const guards = "; live 1@new=S0/c7001; live 2@new=S0/c7002; live 3@new=S0/c7003"
	s.checkItems(map[string]itemCase{
		"equal":      {"c:t@7002000=2; c:t@7001000=1" + guards, "c7001 t=1", "equal c:t; others 1", false},
		"pushed out": {"c:t@7003000=3; c:t@7002000=2" + guards, "c7001 t=1", "aged; others 2", false},
		"missing":    {"c:t@7003000=3" + guards, "c7001 t=1", "missing; others 1", true},
	})
	s = newStage(t, `families: {d: {max_versions: 1}}
rules:
- {name: one, match: {pk: "{p}", sk: "a{s}"}, row: "{p}", cells: [{attr: x, to: "d:x"}]}
- {name: two, match: {pk: "{p}", sk: "b{s}"}, row: "{p}", cells: [{attr: x, to: "d:x"}], may_share_cells_with: [one]}
`)
	s.key = "p"
	s.checkItems(map[string]itemCase{
		"another may have written it": {"d:x@new=2; live q@new=S0/a1; live r@new=S0/b1", "a1 x=1", "shared d:x", false},
		"no other could":              {"d:x@new=2; live q@new=S0/a1", "a1 x=1", "other d:x", true},
	})
}
