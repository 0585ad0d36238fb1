package emit

import (
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Change fills w with what one change does. The error is a *tmpl.Refusal when the mapping does not
// take the item (the change becomes a dead letter), else the change is malformed. A Write without
// rows is no error: the mapping drops the item, or its deletion is ignored, or it never had rows.
func Change(p *ir.Program, d *change.Decoder, c *change.Change, w *Write) error {
	return Coalesce(p, d, []*change.Change{c}, w)
}

// Coalesce fills w with what several changes of one item do, given in version order: the rows of
// the last image at the last version. Every row that any of the images had is in the Write, so that
// moves A→B→C leave nothing in A or B. After a *tmpl.Refusal, which is about one of the changes,
// apply them one by one.
//
// Rule 5, Rule 6: all rows get one version, the last change's; the sink compares it in every row.
func Coalesce(p *ir.Program, d *change.Decoder, cs []*change.Change, w *Write) error {
	keys, err := w.begin(p, d, cs[0].Keys)
	if err != nil {
		return err
	}
	m := w.mem
	newest := cs[len(cs)-1]
	w.Version = newest.Version
	cs = withoutKeptExpiries(p, m, keys, cs)
	x := projector{p: p, m: m, d: d, keys: keys}
	if len(cs) == 0 {
		return x.leaveBareRows(w, newest)
	}
	last := cs[len(cs)-1]
	w.Version = last.Version
	now, err := x.projectAll(cs)
	if err != nil {
		return err
	}
	b := builder{m: m, w: w, now: now, last: last, wipe: true}
	if err := b.build(); err != nil {
		return err
	}
	if last != newest && last.Op != change.Remove {
		b.leaveBare(newest)
	}
	return nil
}

// begin empties the Write for the next item, and names the item. It returns the item's decoded
// keys.
func (w *Write) begin(p *ir.Program, d *change.Decoder, rawKeys []byte) (change.Image, error) {
	if w.mem == nil || w.mem.eval.p != p {
		w.mem = newMemory(p)
	}
	m := w.mem
	m.reset()
	w.Rows, w.Heals = w.Rows[:0], false
	keys, err := d.Image(rawKeys)
	if err != nil {
		return nil, err
	}
	if m.key, err = p.Table.Schema.Canonical(m.key[:0], keys); err != nil {
		return nil, err
	}
	w.Item = Item{Pipeline: p.Table.Pipeline, Table: p.Table.Source, Key: m.key, Sealed: p.SealsKeys}
	w.Item.Guard, m.guard = guard(m.guard, p.Table.Pipeline, p.Table.Source, m.key)
	return keys, nil
}

// withoutKeptExpiries leaves out deletions by TTL that the mapping ignores (on_ttl_expiry: keep).
func withoutKeptExpiries(p *ir.Program, m *memory, keys change.Image, cs []*change.Change) []*change.Change {
	ignored := func(c *change.Change) bool {
		return c.TTL && c.Op == change.Remove && expiryPolicy(p, &m.eval.Eval, keys, c) == "keep"
	}
	if !slices.ContainsFunc(cs, ignored) {
		return cs
	}
	out := make([]*change.Change, 0, len(cs))
	for _, c := range cs {
		if !ignored(c) {
			out = append(out, c)
		}
	}
	return out
}

// projector projects the images of one item's changes.
type projector struct {
	p    *ir.Program
	m    *memory // collects the projections of images before the last
	d    *change.Decoder
	keys change.Image
	rule *ir.Rule // the item's rule where its key decides it; else nil, and each image has its own
}

// projectAll projects the images of the changes, those before the last one without values. It
// returns the projection of the last image, empty when the item is gone.
func (x *projector) projectAll(cs []*change.Change) (now projection, err error) {
	if x.rule, err = ruleOfKey(x.p, &x.m.eval.Eval, x.keys); err != nil {
		return now, err
	}
	needsOld := x.rule == nil || x.rule.NeedOld
	for i, c := range cs {
		if needsOld {
			if err := x.projectOld(c); err != nil {
				return now, err
			}
		}
		last := i == len(cs)-1
		switch {
		case c.Op == change.Remove:
			if err := x.projectKeys(c); err != nil {
				return now, err
			}
		case last:
			return x.projectNew(c, true)
		case needsOld:
			if err := x.keepEarlier(x.projectNew(c, false)); err != nil {
				return now, err
			}
		}
	}
	return projection{}, nil
}

// projectNew projects the new image of a change.
func (x *projector) projectNew(c *change.Change, values bool) (projection, error) {
	if c.New == nil {
		return projection{}, tmpl.Refuse("no_image",
			"the stream record has no new image; the stream's view type must be NEW_AND_OLD_IMAGES")
	}
	if x.p.KeyDecidesRule && x.rule == nil {
		return projection{}, refuseNoRule()
	}
	e := &x.m.eval
	if x.rule != nil && !x.rule.WantsAll && len(x.rule.WantedNames) == 0 {
		e.Scope.Image, e.Raw = x.keys, c.New // nothing but the keys is read: the image need not be decoded
		return e.evaluateRule(x.rule, values)
	}
	img, err := x.d.PartialImage(c.New, x.wanted())
	if err != nil {
		return projection{}, err
	}
	e.Raw = c.New
	return x.project(img, values)
}

// projectOld projects the old image of a change without values. An old image that the mapping
// refuses was never written: it has no rows.
func (x *projector) projectOld(c *change.Change) error {
	if c.Op == change.Insert {
		return nil
	}
	if c.Old == nil {
		return tmpl.Refuse("no_image",
			"the stream record has no old image; the stream's view type must be NEW_AND_OLD_IMAGES")
	}
	img, err := x.d.PartialImage(c.Old, x.wanted())
	if err != nil {
		return err
	}
	x.m.eval.Raw = nil
	return x.keepEarlier(x.project(img, false))
}

// projectKeys projects, for a removed item, the rows and columns that its key alone gives.
func (x *projector) projectKeys(c *change.Change) error {
	if x.rule == nil || (x.rule.NeedOld && c.Old != nil) {
		return nil
	}
	e := &x.m.eval
	e.Scope.Image, e.keysOnly = x.keys, true
	pr, err := e.evaluateRule(x.rule, false)
	e.keysOnly = false
	return x.keepEarlier(pr, err)
}

// wanted returns which attributes must be decoded; nil = all.
func (x *projector) wanted() func(string) bool {
	if x.rule != nil {
		return x.rule.Wanted
	}
	return x.p.Wanted
}

func (x *projector) project(img change.Image, values bool) (projection, error) {
	if x.rule == nil {
		return x.m.eval.project(img, values)
	}
	x.m.eval.Scope.Image = img
	return x.m.eval.evaluateRule(x.rule, values)
}

// keepEarlier stores the projection of an image before the last. An image that the mapping refuses
// is ignored: it has no rows in the target.
func (x *projector) keepEarlier(pr projection, err error) error {
	if err == nil {
		x.m.earlier = append(x.m.earlier, pr)
	}
	return ignoreRefusal(err)
}

// leaveBareRows fills w with the bare rows of an item that TTL deleted and that the mapping keeps,
// as its old image shows them. Without one there are none: a later comparison finds them.
func (x *projector) leaveBareRows(w *Write, c *change.Change) (err error) {
	if c.Op != change.Remove || c.Old == nil {
		return nil
	}
	if x.rule, err = ruleOfKey(x.p, &x.m.eval.Eval, x.keys); err != nil {
		return err
	}
	if err := x.projectOld(c); err != nil {
		return err
	}
	for _, pr := range x.m.earlier {
		for i := range pr.rows {
			row := &pr.rows[i]
			if bare(x.m.eval.Cells[row.from:row.to], int64(c.Created)) {
				w.Rows = append(w.Rows, Row{Key: row.key, Class: row.plan.Class, Left: true})
			}
		}
	}
	return nil
}
