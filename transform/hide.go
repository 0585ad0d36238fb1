package transform

import (
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Hide takes out of an item's explanation all that neither its key nor the mapping tells: values, and captures, row
// keys, columns and cell times that are made of other attributes.
func (p *Program) Hide(s *Steps, img change.Image) {
	m := p.newMemory()
	v, err := m.exec.project(img, false)
	for name := range s.Captures {
		if v.rule == nil || !v.rule.keyed(name) {
			s.Captures[name] = hidden(len(s.Captures[name]))
		}
	}
	for i := range s.Rows {
		row := &s.Rows[i]
		known := err == nil && i < len(v.rows)
		if !known || !v.rows[i].plan.row.FromKey {
			row.Row = hidden(len(row.Row))
		}
		for j := range row.Cells {
			c := &row.Cells[j]
			c.Value = hidden(len(c.Value))
			if !known || v.rows[i].from+j >= v.rows[i].to {
				c.Qualifier, c.TS = hidden(len(c.Qualifier)), nil
				continue
			}
			e := m.exec.cells[v.rows[i].from+j].em
			if !e.nameFromKey() {
				c.Qualifier = hidden(len(c.Qualifier))
			}
			if e.ts != nil && !e.ts.FromKey {
				c.TS, c.Value = nil, c.Value+", at a time of its own"
			}
		}
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
func (e *emitter) nameFromKey() bool {
	vars := e.qualifier.Vars
	return e.qualifier.FromKey && e.other == nil && !vars[tmpl.VarKey] && !vars[tmpl.VarMember] && (!vars[tmpl.VarPath] || !e.flatten)
}
