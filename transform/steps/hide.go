package steps

import (
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/emit"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Hide removes from an item's explanation all data except key attributes and attribute names. It
// replaces cell values, and those captures, row keys, columns and cell times that are made of other
// attributes.
func Hide(p *ir.Program, s *Steps, img change.Image) {
	rows, err := emit.Trace(p, img)
	if err != nil { // the item is refused, and no row can be traced to its attributes: hide all rows
		rows = nil
	}
	x := p.NewEval()
	x.Scope.Image = img
	r, err := p.RuleOf(x) // for captures, also if the item is refused
	if err != nil {
		r = nil
	}
	for name := range s.Captures {
		if r == nil || !isKeyCapture(r, name) {
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

// hide removes the data from one cell of the explanation; c is the cell as the emitter gave it.
func (s *StepCell) hide(c *ir.Emitted) {
	s.Value = hidden(len(c.Value))
	if !nameFromKey(c.By) {
		s.Qualifier = hidden(len(c.Qualifier))
	}
	if c.By.Time.Template != nil && !c.By.Time.Template.FromKey {
		s.TS, s.Value = nil, s.Value+", at a time of its own"
	}
}

// hidden returns the text that replaces n bytes of data.
func hidden(n int) string {
	if n == 1 {
		return "(1 byte; --show-data prints it)"
	}
	return fmt.Sprintf("(%d bytes; --show-data prints them)", n)
}

// isKeyCapture reports whether the rule takes the capture of that name from an attribute of the
// primary key.
func isKeyCapture(r *ir.Rule, capture string) bool {
	for _, c := range r.Captures {
		if c.Name == capture {
			return c.Key
		}
	}
	return false
}

// nameFromKey reports whether the emitter's columns show nothing but the item's key and attribute
// names.
func nameFromKey(e *ir.Emitter) bool {
	vars := e.Qualifier.Vars
	return e.Qualifier.FromKey && e.Otherwise() == nil && !vars[tmpl.VarKey] && !vars[tmpl.VarMember] &&
		(!vars[tmpl.VarPath] || e.Values.Flatten == nil)
}
