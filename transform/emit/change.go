package emit

import (
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Change fills w with what one change does. The error is a *Refusal when the mapping will not take the
// item (the change becomes a dead letter), else the change is malformed. A Write without rows is right: the
// item is dropped, or was never there.
func Change(p *ir.Program, d *change.Decoder, c *change.Change, w *Write) error {
	return Coalesce(p, d, []*change.Change{c}, w)
}

// Coalesce fills w with what several changes of one item do, given in version order: the rows of the last
// image at the last version. Every row that any of the images had is in the Write, so that moves A→B→C
// leave nothing in A or B. A *Refusal is about one of the changes: apply them one by one then.
//
// Rule 5, Rule 6: one version for all rows, that of the last change; the sink compares it in every row.
func Coalesce(p *ir.Program, d *change.Decoder, cs []*change.Change, w *Write) error {
	if w.mem == nil || w.mem.exec.p != p {
		w.mem = newMemory(p)
	}
	m := w.mem
	m.reset()
	w.Rows, w.Heals = w.Rows[:0], false
	keys, err := d.Image(cs[0].Keys)
	if err != nil {
		return err
	}
	if m.key, err = p.Table.Schema.Canonical(m.key[:0], keys); err != nil {
		return err
	}
	w.Item = Item{Table: p.Table.Source, Key: m.key}
	w.Item.Guard, m.guard = guard(m.guard, p.Table.Pipeline, p.Table.Source, m.key)
	last := cs[len(cs)-1]
	w.Version = last.Version
	cs = withoutKeptExpiries(p, m, keys, cs)
	if len(cs) == 0 {
		return nil
	}
	last = cs[len(cs)-1]
	w.Version = last.Version
	now, err := projectAll(p, m, d, keys, cs)
	if err != nil {
		return err
	}
	b := builder{m: m, w: w, now: now, last: last}
	return b.build()
}

// withoutKeptExpiries leaves out deletions by TTL that the mapping wants ignored (on_ttl_expiry: keep).
func withoutKeptExpiries(p *ir.Program, m *memory, keys change.Image, cs []*change.Change) []*change.Change {
	kept := func(c *change.Change) bool {
		return c.TTL && c.Op == change.Remove && expiryPolicy(p, &m.exec.Eval, keys, c) == "keep"
	}
	if !slices.ContainsFunc(cs, kept) {
		return cs
	}
	out := make([]*change.Change, 0, len(cs))
	for _, c := range cs {
		if !kept(c) {
			out = append(out, c)
		}
	}
	return out
}

// projectAll projects the images of the changes; those before the last as footprints. It returns the view of
// the last image, empty when the item is gone.
func projectAll(p *ir.Program, m *memory, d *change.Decoder, keys change.Image, cs []*change.Change) (now view,
	err error) {
	x := &m.exec
	known, err := ruleOfKey(p, &x.Eval, keys)
	if err != nil {
		return now, err
	}
	for i, c := range cs {
		if known == nil || known.NeedOld {
			if err := projectOld(p, m, d, c, known); err != nil {
				return now, err
			}
		}
		last := i == len(cs)-1
		switch {
		case c.Op == change.Remove:
			if err := projectKeys(p, m, keys, c, known); err != nil {
				return now, err
			}
		case last:
			return projectNew(p, m, d, keys, c, known, true)
		case known == nil || known.NeedOld:
			v, err := projectNew(p, m, d, keys, c, known, false)
			if err == nil {
				m.views = append(m.views, v)
			} else if err := ignoreRefusal(err); err != nil {
				return now, err
			}
		}
	}
	return view{}, nil
}

// projectNew projects the new image of a change.
func projectNew(p *ir.Program, m *memory, d *change.Decoder, keys change.Image, c *change.Change, known *ir.Rule,
	values bool) (view, error) {
	if c.New == nil {
		return view{}, tmpl.Refuse("no_image", "the stream record has no new image; the stream's view type must be "+
			"NEW_AND_OLD_IMAGES")
	}
	x := &m.exec
	if p.KeyDecidesRule && known == nil {
		return view{}, tmpl.Refuse("no_rule", "no rule matches the item; add a rule, or one with `drop: true`")
	}
	if known != nil && !known.WantsAll && len(known.WantedNames) == 0 {
		x.Scope.Image, x.Raw = keys, c.New
		return x.run(known, values)
	}
	want := p.Wanted
	if known != nil {
		want = known.Wanted
	}
	img, err := d.PartialImage(c.New, want)
	if err != nil {
		return view{}, err
	}
	x.Raw = c.New
	if known != nil {
		x.Scope.Image = img
		return x.run(known, values)
	}
	return x.project(img, values)
}

// projectOld projects the old image of a change as footprints. An old image that the mapping refuses was never
// written: it has no rows.
func projectOld(p *ir.Program, m *memory, d *change.Decoder, c *change.Change, known *ir.Rule) error {
	if c.Op == change.Insert {
		return nil
	}
	if c.Old == nil {
		if known != nil && !known.NeedOld {
			return nil
		}
		return tmpl.Refuse("no_image", "the stream record has no old image; the stream's view type must be "+
			"NEW_AND_OLD_IMAGES")
	}
	want := p.Wanted
	if known != nil {
		want = known.Wanted
	}
	img, err := d.PartialImage(c.Old, want)
	if err != nil {
		return err
	}
	x := &m.exec
	x.Raw = nil
	var v view
	if known != nil {
		x.Scope.Image = img
		v, err = x.run(known, false)
	} else {
		v, err = x.project(img, false)
	}
	if err == nil {
		m.views = append(m.views, v)
	}
	return ignoreRefusal(err)
}

// projectKeys adds, for a removed item, the rows and columns that its key alone gives.
func projectKeys(p *ir.Program, m *memory, keys change.Image, c *change.Change, known *ir.Rule) error {
	if known == nil || (known.NeedOld && c.Old != nil) {
		return nil
	}
	x := &m.exec
	x.Scope.Image, x.bare = keys, true
	v, err := x.run(known, false)
	x.bare = false
	if err == nil {
		m.views = append(m.views, v)
	}
	return ignoreRefusal(err)
}
