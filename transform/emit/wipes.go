package emit

import (
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/ir"
)

// Wipes finds the rows of a change that a removal of another item may delete (`on_remove: row`). It
// is not safe for concurrent use.
type Wipes struct {
	p *ir.Program
	d change.Decoder
	x ir.Eval
}

// NewWipes returns the Wipes of a program; nil when no rule has `on_remove: row`.
func NewWipes(p *ir.Program) *Wipes {
	for _, r := range p.Rules {
		if slices.ContainsFunc(r.Plans, func(pl *ir.Plan) bool { return pl.WipesOnRemoval }) {
			return &Wipes{p: p, x: *p.NewEval()}
		}
	}
	return nil
}

// Rows calls f with each row that a removal of another item may delete, and that the changed item
// was in before the change or is in after it. f may get a row twice, and must not keep it after it
// returns. A change that cannot be read, or that the mapping refuses, has no rows.
func (w *Wipes) Rows(c *change.Change, f func(row []byte)) {
	w.d.Reset()
	w.x.Buf = w.x.Buf[:0]
	keys, err := w.d.Image(c.Keys)
	if err != nil {
		return
	}
	rule, err := ruleOfKey(w.p, &w.x, keys)
	if err != nil || w.p.KeyDecidesRule && rule == nil {
		return
	}
	if rule != nil && wipesByKey(rule) {
		w.ruleRows(rule, f)
		return
	}
	if c.Op == change.Remove && c.Old == nil && rule != nil {
		w.ruleRows(rule, f)
	}
	for _, raw := range [][]byte{c.Old, c.New} {
		if raw != nil {
			w.imageRows(raw, f)
		}
	}
}

// wipesByKey reports whether the key alone gives the rule's rows that may be deleted.
func wipesByKey(r *ir.Rule) bool {
	return !slices.ContainsFunc(r.Plans, func(pl *ir.Plan) bool {
		return pl.Wipeable && (!pl.Row.FromKey || len(pl.Conditions) > 0 || pl.When != nil)
	})
}

// imageRows calls f with the rows of one image that a removal of another item may delete.
func (w *Wipes) imageRows(raw []byte, f func(row []byte)) {
	img, err := w.d.PartialImage(raw, w.p.Wanted)
	if err != nil {
		return
	}
	w.x.Scope.Image = img
	if r, err := w.p.RuleOf(&w.x); err == nil && r != nil {
		w.ruleRows(r, f)
	}
}

// ruleRows calls f with the rows of a rule that a removal of another item may delete. The scope
// already has the image and the rule's captures.
func (w *Wipes) ruleRows(r *ir.Rule, f func(row []byte)) {
	x := &w.x
	for i, pl := range r.Plans {
		if !pl.Wipeable {
			continue
		}
		if i > 0 {
			if ok, err := ir.Matches(pl.Conditions, pl.When, x.Scope.Image, x.Captures); err != nil || !ok {
				continue
			}
		}
		key, err := pl.Row.Append(x.Buf[:0], &x.Scope)
		if x.Buf = key; err == nil {
			f(key)
		}
	}
}
