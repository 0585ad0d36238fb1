package explain

import (
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/emit"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Hide removes from an item's explanation what neither its key nor the mapping shows: values, and captures, row keys,
// columns and cell times that are made of other attributes.
func Hide(p *ir.Program, s *Steps, img change.Image) {
	rows, err := emit.Trace(p, img)
	if err != nil { // what refuses an item may be any of its attributes
		rows = nil
	}
	x := p.NewEval()
	x.Scope.Image = img
	r, err := p.RuleOf(x) // also of an item that is refused: what its key shows is known anyway
	if err != nil {
		r = nil
	}
	for name := range s.Captures {
		if r == nil || !keyed(r, name) {
			s.Captures[name] = hidden(len(s.Captures[name]))
		}
	}
	for i := range s.Rows {
		row := &s.Rows[i]
		var cells []ir.Emitted
		if i < len(rows) {
			cells = rows[i].Cells
		}
		if i >= len(rows) || !rows[i].Plan.Row.FromKey {
			row.Row = hidden(len(row.Row))
		}
		for j := range row.Cells {
			if j < len(cells) {
				row.Cells[j].hide(&cells[j])
			} else {
				row.Cells[j].Qualifier, row.Cells[j].TS, row.Cells[j].Value = hidden(len(row.Cells[j].Qualifier)), nil,
					hidden(len(row.Cells[j].Value))
			}
		}
	}
}

// hide removes the content from a cell of the explanation.
func (s *StepCell) hide(c *ir.Emitted) {
	s.Value = hidden(len(c.Value))
	if !nameFromKey(c.By) {
		s.Qualifier = hidden(len(c.Qualifier))
	}
	if c.By.Time.Template != nil && !c.By.Time.Template.FromKey {
		s.TS, s.Value = nil, s.Value+", at a time of its own"
	}
}

// hidden stands where content was.
func hidden(n int) string { return fmt.Sprintf("(%d bytes; --show-data prints them)", n) }

// keyed reports whether a capture of the rule is of a key attribute.
func keyed(r *ir.Rule, capture string) bool {
	for _, c := range r.Captures {
		if c.Name == capture {
			return c.Key
		}
	}
	return false
}

// nameFromKey reports whether the emitter's columns show nothing but the item's key and attribute names.
func nameFromKey(e *ir.Emitter) bool {
	vars := e.Qualifier.Vars
	return e.Qualifier.FromKey && e.Otherwise() == nil && !vars[tmpl.VarKey] && !vars[tmpl.VarMember] &&
		(!vars[tmpl.VarPath] || e.Values.Flatten == nil)
}
