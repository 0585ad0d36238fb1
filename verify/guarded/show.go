package guarded

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

// CellDifference is one cell in which the target differs from an item, or one guard of the item
// that should not be there. It holds keys and values, so it must be in files of mode 0600 only,
// unless the user asks to see data.
type CellDifference struct {
	Kind    Kind   `json:"kind"`
	Row     []byte `json:"row"`
	Rule    string `json:"rule,omitempty"`    // of the mapping, or an index; several are separated by " | "
	Entry   string `json:"entry,omitempty"`   // of the rule, for people, as in `attrs: all → d:{attr}`
	Columns string `json:"columns,omitempty"` // the entry's template of columns, as in `d:{attr}`
	// ByAttributes is true when names of attributes alone make the column's name, so that it shows
	// no data.
	ByAttributes bool           `json:"by_attributes,omitempty"`
	Family       string         `json:"family,omitempty"`
	Qualifier    []byte         `json:"qualifier,omitempty"`
	Time         change.Millis  `json:"ts,omitempty"`    // where the mapping sets the cell's time
	Want         *Content       `json:"want,omitempty"`  // nil: there should be no such cell
	Have         *Content       `json:"have,omitempty"`  // nil: there is none
	Guard        change.Version `json:"guard,omitempty"` // of the item in the row, for Stale and FutureGuard
}

// Content is a value: how long it is, and as much of it as verify.Settler keeps.
type Content struct {
	Bytes int    `json:"bytes"`
	Value []byte `json:"value,omitempty"`
}

// ContentOf returns a value with its first bytes, most of them.
func ContentOf(value []byte, most int) *Content {
	return &Content{Bytes: len(value), Value: bytes.Clone(value[:min(len(value), most)])}
}

// Place returns the column of the cell, and its time where the mapping sets that, else 0.
func (w *WantedCell) Place(f *Families) (family string, qualifier []byte, at change.Millis) {
	if w.time != unmapped {
		at = change.Millis(w.time)
	}
	return f.List[w.family].Name, w.qualifier, at
}

// Size returns how many cells the item should have in the row.
func (w *Wanted) Size() int { return w.n + len(w.Cells) }

// Names returns which rules of the mapping may give the row that was read to the item, and which
// entry writes a column of it there; "" where that is not known.
func (g *Guards) Names(
	of Item, row []byte, family string, qualifier []byte,
) (rules []string, entry transform.Entry, err error) {
	if of.Table == OtherTable {
		return nil, entry, nil
	}
	var d change.Decoder
	keys, err := d.Image([]byte(of.Key))
	if err != nil {
		return nil, entry, err
	}
	owned, err := g.tables[of.Table].Program.Owned(keys, row)
	if err != nil {
		return nil, entry, err
	}
	return owned.Rules(), owned.Entry(family, qualifier), nil
}

// RulesOf returns the rules that may have written a cell of the row if its owner cannot be
// determined: as a text for people, with their indexes, and by their names in the mapping.
func (g *Guards) RulesOf(cell *bigtable.Cell) (text string, rules []string) {
	var plans []string
	for i := range g.List {
		x := &g.List[i]
		if owned, err := g.Owns(x, cell); err == nil && owned == OwnedMaybe && x.owned != nil {
			plans, rules = append(plans, x.owned.Rules()...), append(rules, x.owned.RuleNames()...)
		}
	}
	slices.Sort(plans)
	slices.Sort(rules)
	return strings.Join(slices.Compact(plans), " | "), slices.Compact(rules)
}
