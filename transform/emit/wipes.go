package emit

import (
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/ir"
)

// Wipes finds the rows of a change that a removal of another item may delete (`on_remove: row`). It belongs to one
// goroutine.
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

// Rows calls f with each of these rows that the item was in before the change or is in after it. Rows may come
// twice; they are valid during the call. A change that cannot be read, or that the mapping refuses, has none.
func (w *Wipes) Rows(c *change.Change, f func(row []byte)) {
	w.d.Reset()
	w.x.Buf = w.x.Buf[:0]
	keys, err := w.d.Image(c.Keys)
	if err != nil {
		return
	}
	known, err := ruleOfKey(w.p, &w.x, keys)
	if err != nil || w.p.KeyDecidesRule && known == nil {
		return
	}
	if known != nil && wipesByKey(known) {
		w.rows(known, f)
		return
	}
	if c.Op == change.Remove && c.Old == nil && known != nil {
		w.rows(known, f)
	}
	for _, raw := range [][]byte{c.Old, c.New} {
		if raw != nil {
			w.image(raw, f)
		}
	}
}

// wipesByKey reports whether the key alone gives the rule's rows that may be deleted.
func wipesByKey(r *ir.Rule) bool {
	return !slices.ContainsFunc(r.Plans, func(pl *ir.Plan) bool {
		return pl.Wipeable && (!pl.Row.FromKey || len(pl.Conditions) > 0 || pl.When != nil)
	})
}

// image calls f with the rows of one image.
func (w *Wipes) image(raw []byte, f func(row []byte)) {
	img, err := w.d.PartialImage(raw, w.p.Wanted)
	if err != nil {
		return
	}
	w.x.Scope.Image = img
	if r, err := w.p.RuleOf(&w.x); err == nil && r != nil {
		w.rows(r, f)
	}
}

// rows calls f with the rows of the rule whose captures stand in the scope.
func (w *Wipes) rows(r *ir.Rule, f func(row []byte)) {
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
