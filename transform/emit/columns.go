package emit

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// NamedColumn is a column whose name is the same for every item.
type NamedColumn struct {
	Family    string
	Qualifier []byte
	As        string // the encoding of its values, as `as:` names it; "" where several entries write it differently
}

// NamedColumns returns the columns of all rows of a program that have fixed names, in order. Columns
// that are named after attributes which the mapping does not list, or after values, are not among
// them.
func NamedColumns(p *ir.Program) (all []NamedColumn) {
	for _, r := range p.Rules {
		for _, pl := range r.Plans {
			for _, e := range pl.Emitters {
				for _, t := range qualifiersOf(e) {
					if name, fixed := fixedText(t); fixed {
						all = addColumn(all, NamedColumn{e.Family.Name, []byte(name), encodingOf(e)})
					}
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b NamedColumn) int {
		return cmp.Or(strings.Compare(a.Family, b.Family), bytes.Compare(a.Qualifier, b.Qualifier))
	})
	return all
}

// qualifiersOf returns the templates of an emitter's columns, one for each attribute where they are
// listed.
func qualifiersOf(e *ir.Emitter) []*tmpl.Template {
	if len(e.PerName) > 0 {
		return e.PerName
	}
	return []*tmpl.Template{e.Qualifier}
}

// fixedText returns the text of a template without references.
func fixedText(t *tmpl.Template) (text string, fixed bool) {
	pieces := t.Pieces()
	for i := range pieces {
		if pieces[i].Name != "" || pieces[i].Salt {
			return "", false
		}
		text += pieces[i].Literal
	}
	return text, true
}

// encodingOf returns how an emitter writes values.
func encodingOf(e *ir.Emitter) string {
	if _, document := e.Source.(*ir.Document); document {
		return cmp.Or(e.Entry.Format.S, "json")
	}
	return cmp.Or(e.Entry.As.S, "natural")
}

func addColumn(all []NamedColumn, c NamedColumn) []NamedColumn {
	i := slices.IndexFunc(all, func(o NamedColumn) bool {
		return o.Family == c.Family && bytes.Equal(o.Qualifier, c.Qualifier)
	})
	if i < 0 {
		return append(all, c)
	}
	if all[i].As != c.As {
		all[i].As = ""
	}
	return all
}
