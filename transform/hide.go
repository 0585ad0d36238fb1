package transform

import (
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Hide takes out of an item's explanation all that neither its key nor the mapping tells: values, and captures, row
// keys, columns and cell times that are made of other attributes.
func (p *Program) Hide(s *Steps, img change.Image) {
	rows, err := p.Trace(img)
	if err != nil { // what refuses an item may be any of its attributes
		rows = nil
	}
	x := p.NewEval()
	x.Scope.Image = img
	r, err := p.pick(x) // also of an item that is refused: what its key tells is told anyway
	if err != nil {
		r = nil
	}
	for name := range s.Captures {
		if r == nil || !r.keyed(name) {
			s.Captures[name] = hidden(len(s.Captures[name]))
		}
	}
	for i := range s.Rows {
		row := &s.Rows[i]
		var cells []Emitted
		if i < len(rows) {
			cells = rows[i].Cells
		}
		if i >= len(rows) || !rows[i].Plan.row.FromKey {
			row.Row = hidden(len(row.Row))
		}
		for j := range row.Cells {
			if j < len(cells) {
				row.Cells[j].hide(&cells[j])
			} else {
				row.Cells[j].Qualifier, row.Cells[j].TS, row.Cells[j].Value = hidden(len(row.Cells[j].Qualifier)), nil, hidden(len(row.Cells[j].Value))
			}
		}
	}
}

// hide takes the content out of a cell that is told.
func (s *StepCell) hide(c *Emitted) {
	s.Value = hidden(len(c.Value))
	if !c.By.nameFromKey() {
		s.Qualifier = hidden(len(c.Qualifier))
	}
	if c.By.Time.Template != nil && !c.By.Time.Template.FromKey {
		s.TS, s.Value = nil, s.Value+", at a time of its own"
	}
}

func hidden(n int) string { return fmt.Sprintf("(%d bytes; --show-data prints them)", n) }

// keyed says whether a capture is of a key attribute. One of a rule that took no item may be of anything.
func (r *rule) keyed(capture string) bool {
	for _, c := range r.captures {
		if c.Name == capture {
			return c.Key
		}
	}
	return false
}

// nameFromKey says whether the names of the emitter's columns hold nothing but the item's key and attribute names.
func (e *Emitter) nameFromKey() bool {
	vars := e.Qualifier.Vars
	return e.Qualifier.FromKey && e.Otherwise() == nil && !vars[tmpl.VarKey] && !vars[tmpl.VarMember] &&
		(!vars[tmpl.VarPath] || e.Values.Flatten == nil)
}
