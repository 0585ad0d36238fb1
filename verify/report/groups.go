package report

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/tailrace-cdc/replicator/verify"
)

// Group counts what is not equal in the rows of one rule of the mapping, or in the rows below one
// prefix. Of each item the listed cells are counted: see verify.Settler.Cells.
type Group struct {
	Rule   string                `json:"rule,omitempty"`   // or index; several are separated by " | "; "": none is known
	Rows   string                `json:"rows,omitempty"`   // the rule's template of row keys
	Prefix string                `json:"prefix,omitempty"` // of the rows' keys, up to the first separator
	Items  int64                 `json:"items"`
	Kinds  map[verify.Kind]int64 `json:"kinds"` // rows, cells, guards, or refused items
}

const (
	maxPrefixes   = 10_000 // that are counted; the rows of all others are in one group
	shownPrefixes = 20
	prefixBytes   = 32 // of a row in which a separator is looked for

	separators = "#/|:.,;@~!$ "

	otherRows = "(others)"
)

// groups counts what is not equal by rule and by prefix.
type groups struct {
	templates map[string]string // of row keys, by rule
	prefixes  bool
	byRule    map[string]*Group
	byPrefix  map[string]*Group
}

// CountGroups has ByRule counted, and ByPrefix where prefixes is set: a prefix of a row key is a
// part of the users' data. templates are the templates of row keys, by rule.
func (t *Table) CountGroups(templates map[string]string, prefixes bool) {
	t.groups = &groups{templates, prefixes, map[string]*Group{}, map[string]*Group{}}
}

// place is where something differs.
type place struct {
	rule string
	row  []byte
	kind verify.Kind
}

// add counts an item that is not equal.
func (g *groups) add(v *verify.Verdict) {
	if v.Status == verify.Refused {
		g.addRefused(v)
		return
	}
	var places []place
	rows := map[string]bool{}
	for i := range v.Cells {
		c := &v.Cells[i]
		if c.Kind == verify.MissingRow { // listed with each of its cells
			if rows[string(c.Row)] {
				continue
			}
			rows[string(c.Row)] = true
		}
		places = append(places, place{c.Rule, c.Row, c.Kind})
	}
	g.count(places, 1)
}

// addRefused counts a refused item once in each group in which it has rows, or in its rule's group.
// What its rows hold is as the last change left it that the mapping took: no cells too many.
func (g *groups) addRefused(v *verify.Verdict) {
	in := map[*Group]bool{}
	for i := range v.Cells {
		in[g.rule(v.Cells[i].Rule)] = true
		if g.prefixes {
			in[g.prefix(v.Cells[i].Row)] = true
		}
	}
	if len(in) == 0 {
		in[g.rule(v.Rule)] = true
	}
	for x := range in {
		x.Items++
		x.Kinds[verify.Refusal]++
	}
}

// addCell counts a cell without a known owner.
func (g *groups) addCell(o *verify.Open) { g.count([]place{{row: o.Row, kind: o.Kind}}, 0) }

// count counts what differs of some items, once in each group.
func (g *groups) count(places []place, items int64) {
	counted := map[*Group]bool{}
	for _, p := range places {
		in := []*Group{g.rule(p.rule)}
		if g.prefixes && p.row != nil {
			in = append(in, g.prefix(p.row))
		}
		for _, x := range in {
			x.Kinds[p.kind]++
			if !counted[x] {
				counted[x], x.Items = true, x.Items+items
			}
		}
	}
}

func (g *groups) rule(name string) *Group {
	x := g.byRule[name]
	if x == nil {
		x = &Group{Rule: name, Rows: g.templates[name], Kinds: map[verify.Kind]int64{}}
		g.byRule[name] = x
	}
	return x
}

func (g *groups) prefix(row []byte) *Group {
	name := prefixOf(row)
	x := g.byPrefix[name]
	if x == nil && len(g.byPrefix) >= maxPrefixes {
		name = otherRows
		x = g.byPrefix[name]
	}
	if x == nil {
		x = &Group{Prefix: name, Kinds: map[verify.Kind]int64{}}
		g.byPrefix[name] = x
	}
	return x
}

// prefixOf returns the begin of a row key up to its first separator; otherRows where it has none.
func prefixOf(row []byte) string {
	at := bytes.IndexAny(row[:min(len(row), prefixBytes)], separators)
	if at < 0 {
		return otherRows
	}
	return string(row[:at+1])
}

// sorted returns the groups, those with most differences first, as many as are shown.
func sorted(all map[string]*Group, shown int) (list []Group) {
	for _, x := range all {
		list = append(list, *x)
	}
	slices.SortFunc(list, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Sum(), a.Sum()), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Prefix, b.Prefix))
	})
	return list[:min(len(list), shown)]
}

// Sum returns how many rows, cells, guards and refused items are counted.
func (x *Group) Sum() (n int64) {
	for _, some := range x.Kinds {
		n += some
	}
	return n
}

// kindNames are the kinds in words, in the order in which they are shown.
var kindNames = []struct {
	kind verify.Kind
	name string
}{
	{verify.MissingRow, "missing rows"}, {verify.Stale, "stale rows"}, {verify.Value, "wrong cells"},
	{verify.MissingCell, "missing cells"}, {verify.ExtraCell, "extra cells"}, {verify.FutureGuard, "future guards"},
	{verify.NoGuard, "missing guards"},
	{verify.Foreign, "foreign cells"}, {verify.Unowned, "unowned cells"}, {verify.Sealed, "sealed cells"},
	{verify.Refusal, "refused items"},
}

// KindName returns a kind in words, in the plural.
func KindName(kind verify.Kind) string {
	for _, k := range kindNames {
		if k.kind == kind {
			return k.name
		}
	}
	return string(kind)
}

// KindsIn returns the kinds that occur in some groups, in the order in which they are shown.
func KindsIn(list []Group) (kinds []verify.Kind) {
	seen := map[verify.Kind]int64{}
	for i := range list {
		maps.Copy(seen, list[i].Kinds)
	}
	for _, k := range kindNames {
		if seen[k.kind] > 0 {
			kinds = append(kinds, k.kind)
		}
	}
	return kinds
}
