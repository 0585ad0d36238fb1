package lint

import (
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/ir"
)

// lintTwice refuses an attribute that two entries of one row write to the same column, because
// every item with that attribute would be refused.
func (c *linter) lintTwice(pl *ir.Plan) {
	for i, a := range pl.Emitters {
		for j, b := range pl.Emitters {
			attrs, several := b.Source.(*ir.Attrs)
			listed := !several || !attrs.Selected.All()
			if i == j || listed && j > i || a.Family != b.Family || (a.Values.Flatten == nil) != (b.Values.Flatten == nil) ||
				a.Entry.TS.S != b.Entry.TS.S || a.Aggregate() {
				continue
			}
			for _, name := range a.Source.Listed() {
				if mayName(b, name) && len(a.Qualifier.Uses)+len(b.Qualifier.Uses) > 0 && a.ColumnOf(name) == b.ColumnOf(name) {
					c.Problems.Errorf(a.Entry.To, "collision", c.writeOnceHint(b, name),
						"attribute %q is written twice to %s:%s, by `%s` and `%s`: every item that has it is refused", name,
						a.Family.Name, a.ColumnOf(name), b.Describe(), a.Describe())
				}
			}
		}
	}
}

// mayName reports whether the emitter may write a column that is named after the attribute. A
// document, a list, a wildcard, and an emitter with {attr} or {path} in its column can do so only
// for an attribute that it holds; any other emitter always can.
func mayName(e *ir.Emitter, attr string) bool {
	_, document := e.Source.(*ir.Document)
	_, several := e.Source.(*ir.Attrs)
	return !document && !several && !e.NamesColumns() || e.Holds(attr)
}

// writeOnceHint returns the hint how to stop an entry from writing an attribute that another entry
// writes too.
func (c *linter) writeOnceHint(e *ir.Emitter, name string) string {
	s, several := e.Source.(*ir.Attrs)
	switch {
	case !several:
		return "remove one of them"
	case !s.Selected.All():
		return "take " + name + " out of the list"
	}
	return "add it to the exceptions: {attrs: all, except: [" +
		strings.Join(append(sorted(s.Selected.Except), name), ", ") +
		"], …}"
}

func sorted(set map[string]bool) (names []string) {
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
