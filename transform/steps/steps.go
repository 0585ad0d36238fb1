package steps

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/emit"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Steps is what the program does with an item or a change, step by step.
type Steps struct {
	Passed   []Passed          `json:"passed,omitempty"` // rules that did not match, in order, and why
	Rule     string            `json:"rule,omitempty"`   // the rule that matched
	Line     int               `json:"line,omitempty"`
	Drop     bool              `json:"drop,omitempty"`
	Captures map[string]string `json:"captures,omitempty"`
	Rows     []StepRow         `json:"rows,omitempty"`
	Coverage []Use             `json:"coverage,omitempty"`
	Code     string            `json:"code,omitempty"` // why the item is refused
	Refused  string            `json:"refused,omitempty"`
}

// Passed is a rule that did not match.
type Passed struct {
	Rule string `json:"rule"`
	Why  string `json:"why"`
}

// StepRow is one row of the explanation.
type StepRow struct {
	Name  string     `json:"name"` // rule or index
	Row   string     `json:"row"`
	Class string     `json:"class"`
	Why   string     `json:"why"`             // why it has that class
	Left  bool       `json:"left,omitempty"`  // the item leaves the row
	Wipes bool       `json:"wipes,omitempty"` // the row is deleted as a whole first
	Keeps []string   `json:"keeps,omitempty"` // families that the wipe spares
	Cells []StepCell `json:"cells"`
	// Unseen is set if the item's only cell in the row is its guard in _tr_live: readers of the
	// mapping's families do not see the item there.
	Unseen  bool         `json:"unseen,omitempty"`
	Deletes []StepDelete `json:"deletes,omitempty"`
}

// StepCell is a cell in readable form.
type StepCell struct {
	Family    string `json:"family"`
	Qualifier string `json:"qualifier"`
	TS        *int64 `json:"ts"` // ms; null: the version of the change that writes it
	Mapped    bool   `json:"-"`  // the mapping chooses the time
	Value     string `json:"value"`
	Merge     string `json:"merge,omitempty"` // max, min, hll: the value is merged with what is there
}

// StepDelete is a delete with its reason.
type StepDelete struct {
	Family    string `json:"family"`
	Qualifier string `json:"qualifier"`
	From      int64  `json:"from,omitempty"`
	To        int64  `json:"to,omitempty"` // half open; 0, 0: all versions
	Why       string `json:"why"`
}

// Use is the use of one attribute: key, mapped, ignored (left out on purpose) or lost.
type Use struct {
	Attr string `json:"attr"`
	Use  string `json:"use"`
	By   string `json:"by,omitempty"`
}

// Item explains the projection of an item.
func Item(p *ir.Program, img change.Image) *Steps {
	s := &Steps{}
	r := explainRule(p, img, s)
	if r == nil {
		return s
	}
	s.Coverage = Coverage(p, img)
	rows, err := emit.Project(p, img)
	s.refused(err)
	for i := range rows {
		s.Rows = append(s.Rows, stepRow(p, &rows[i], nil, img))
	}
	return s
}

// Change explains what one change does: rows, cells, deletes.
func Change(p *ir.Program, c *change.Change) (*Steps, error) {
	var d change.Decoder
	images := make([]change.Image, 0, 2) // the newest first
	for _, raw := range [][]byte{c.New, c.Old, c.Keys} {
		if raw == nil || len(images) == 2 {
			continue
		}
		img, err := d.Image(raw)
		if err != nil {
			return nil, err
		}
		images = append(images, img)
	}
	img := images[0]
	s := &Steps{}
	r := explainRule(p, img, s)
	if r == nil {
		return s, nil
	}
	if c.New != nil {
		s.Coverage = Coverage(p, img)
	}
	w := new(emit.Write)
	if err := emit.Change(p, &d, c, w); err != nil {
		if refused := (*tmpl.Refusal)(nil); !errors.As(err, &refused) {
			return nil, err
		}
		s.refused(err)
	}
	written := int64(w.Version)
	for i := range w.Rows {
		s.Rows = append(s.Rows, stepRow(p, &w.Rows[i], &written, images...))
	}
	return s, nil
}

// Key explains what follows from the key of an item alone: its rule and rows. If the rules test
// other attributes too, the result only reports that the whole item is needed.
func Key(p *ir.Program, keys change.Image) (*Steps, error) {
	canonical, err := p.Table.Schema.Canonical(nil, keys)
	if err != nil {
		return nil, err
	}
	if !p.KeyDecidesRule {
		return &Steps{Code: "no_image", Refused: "the rules look at more than the key: give the whole item"}, nil
	}
	return Change(p, &change.Change{Op: change.Remove, Keys: canonical, Old: canonical})
}

// refused notes why the item is refused.
func (s *Steps) refused(err error) {
	if r := (*tmpl.Refusal)(nil); errors.As(err, &r) {
		s.Code, s.Refused = r.Code, r.What
	}
}

// explainRule returns the rule that takes an item, and notes why the earlier ones do not; nil when
// none does.
func explainRule(p *ir.Program, img change.Image, s *Steps) *ir.Rule {
	x := p.NewEval()
	for _, r := range p.Rules {
		caps := x.Captures[:len(r.Captures)]
		why, err := whyPassed(r, img, caps)
		if err != nil {
			s.refused(err)
			return nil
		}
		if why != "" {
			s.Passed = append(s.Passed, Passed{Rule: r.Name, Why: why})
			continue
		}
		s.Rule, s.Line, s.Drop = r.Name, r.Src.At.Line, r.Drop
		s.Captures = map[string]string{}
		for i, c := range r.Captures {
			s.Captures[c.Name] = caps[i]
		}
		return r
	}
	s.Code, s.Refused = "no_rule", "no rule matches the item; add a rule, or one with `drop: true`"
	return nil
}

// whyPassed returns the first condition of a rule that an item does not meet, as text; "" if it
// meets all.
func whyPassed(r *ir.Rule, img change.Image, caps []string) (string, error) {
	for i := range r.Conditions {
		c := &r.Conditions[i]
		if c.Holds(img, caps) {
			continue
		}
		return whyUnmet(c, r, img), nil
	}
	if r.When == nil {
		return "", nil
	}
	ok, err := r.When.Holds(img)
	if ok || err != nil {
		return "", err
	}
	return "when: " + r.When.Source + " is false", nil
}

// whyUnmet returns the reason why an item does not meet a condition.
func whyUnmet(c *ir.Condition, r *ir.Rule, img change.Image) string {
	if img.Get(c.Attr) == nil {
		return c.Attr + " is missing"
	}
	for i := range r.Src.Match {
		if src := &r.Src.Match[i]; src.At.S == c.Attr {
			switch {
			case src.Pattern.Set():
				return fmt.Sprintf("%s does not match %q", c.Attr, src.Pattern.S)
			case src.Equals.Set():
				return fmt.Sprintf("%s is not %q", c.Attr, src.Equals.S)
			case src.Type.Set():
				return c.Attr + " is not of type " + src.Type.S
			}
		}
	}
	return c.Attr + " does not meet the rule's condition"
}

// stepRow explains a row. images are the item's images, the newest first; the plan of the row is
// the first that maps one of them to it.
func stepRow(p *ir.Program, row *emit.Row, version *int64, images ...change.Image) StepRow {
	out := StepRow{Row: string(row.Key), Class: row.Class.String(), Left: row.Left, Wipes: row.Exclusive,
		Keeps: row.KeepHistory}
	for i := range row.Cells {
		c := &row.Cells[i]
		cell := StepCell{Family: c.Family, Qualifier: Readable(c.Qualifier), TS: version, Value: Readable(c.Value)}
		if c.Mapped {
			cell.TS, cell.Mapped = &c.Time, true
		}
		if c.Aggregate {
			cell.Merge = familyOf(p, c.Family).Aggregate
		}
		out.Cells = append(out.Cells, cell)
	}
	out.Unseen = !row.Left && len(row.Cells) == 0
	for i := range row.Deletes {
		d := &row.Deletes[i]
		out.Deletes = append(out.Deletes, StepDelete{Family: d.Family, Qualifier: Readable(d.Qualifier), From: d.From,
			To: d.To, Why: whyDeleted(d)})
	}
	out.Name, out.Why = "a row of the old image", "the item was in this row before"
	for _, img := range images {
		if pl := planOf(p, img, row.Key); pl != nil {
			out.Name, out.Why = pl.Name, pl.Why
			break
		}
	}
	return out
}

// planOf returns the plan that maps an image to the row with this key; nil if none does.
func planOf(p *ir.Program, img change.Image, key []byte) *ir.Plan {
	x := p.NewEval()
	x.Scope.Image = img
	r, err := p.RuleOf(x)
	if err != nil || r == nil {
		return nil
	}
	for i, pl := range r.Plans {
		if i > 0 {
			if ok, err := ir.Matches(pl.Conditions, pl.When, img, x.Captures); !ok || err != nil {
				continue
			}
		}
		if got, err := pl.Row.Append(nil, &x.Scope); err == nil && string(got) == string(key) {
			return pl
		}
	}
	return nil
}

// familyOf returns the program's family with a name that must exist.
func familyOf(p *ir.Program, name string) ir.Family {
	return p.Families[slices.IndexFunc(p.Families, func(f ir.Family) bool { return f.Name == name })]
}

// whyDeleted returns the reason of a delete. A delete with an end is of one cell in a column with
// `cell_id: ts`, which items share and where each has a cell at its own time; the message calls the
// other items siblings.
func whyDeleted(d *emit.Delete) string {
	switch {
	case d.To > 0:
		return "exactly this cell: its time determines the item, siblings share the column"
	case d.Versioned:
		return "an earlier version of the item may have left it; deleted before the new cells are set"
	}
	return "the column is this item's, and its cell times are the mapping's own"
}

// Readable returns a name or value as text if it is printable, else as hex; eight bytes also as a
// 64-bit integer.
func Readable(b []byte) string {
	if utf8.Valid(b) && !bytes.ContainsFunc(b, func(r rune) bool {
		return !unicode.IsPrint(r) && r != '\n' && r != '\t'
	}) {
		return string(b)
	}
	if len(b) == 8 {
		return fmt.Sprintf("0x%x (int64 %d)", b, int64(binary.BigEndian.Uint64(b)))
	}
	return fmt.Sprintf("0x%x", b)
}

// Coverage returns for every attribute of an item what becomes of it.
func Coverage(p *ir.Program, img change.Image) []Use {
	x := p.NewEval()
	x.Scope.Image = img
	r, err := p.RuleOf(x)
	if err != nil || r == nil {
		return nil
	}
	out := make([]Use, 0, len(img))
	for i := range img {
		out = append(out, useOf(p, r, img[i].Name))
	}
	return out
}

// useOf returns what becomes of one attribute by a rule.
func useOf(p *ir.Program, r *ir.Rule, name string) Use {
	u := Use{Attr: name, By: r.Name}
	switch {
	case r.Drop:
		u.Use = "ignored"
	case p.KeyType(name) != 0:
		u.Use = "key"
	case writes(r, name) || r.Mentions(name):
		u.Use = "mapped"
	case r.Ignores(name) || excepts(r, name) || p.Table.StripGlobal && ir.GlobalAttribute(name):
		u.Use = "ignored"
	default:
		u.Use = "lost"
	}
	return u
}

// writes reports whether one of a rule's rows holds the attribute's value.
func writes(r *ir.Rule, name string) bool {
	for _, pl := range r.Plans {
		if slices.ContainsFunc(pl.Emitters, func(e *ir.Emitter) bool { return e.Holds(name) }) {
			return true
		}
	}
	return false
}

// excepts reports whether an `except` of the rule names the attribute.
func excepts(r *ir.Rule, name string) bool {
	for _, pl := range r.Plans {
		if slices.ContainsFunc(pl.Emitters, func(e *ir.Emitter) bool { return e.Source.Attributes().Except[name] }) {
			return true
		}
	}
	return false
}
