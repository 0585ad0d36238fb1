package transform

import (
	"errors"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Change fills w with what one change does. The error is a *Refusal when the mapping will not take the
// item (the change becomes a dead letter), else the change is malformed. A Write without rows is right: the
// item is dropped, or was never there.
func (p *Program) Change(d *change.Decoder, c *change.Change, w *Write) error {
	return p.Coalesce(d, []*change.Change{c}, w)
}

// CanCoalesce says whether several changes of one item may be united. Families that keep histories forbid
// it: every version is wanted.
func (p *Program) CanCoalesce() bool { return p.coalesce }

// Coalesce fills w with what several changes of one item do, given in version order: the rows of the last
// image at the last version. Every row that any of the images had is in the Write, so that moves A→B→C
// leave nothing in A or B. A *Refusal is about one of the changes: apply them one by one then.
//
// Rule 5, Rule 6: one version for all rows, that of the last change; the sink compares it in every row.
func (p *Program) Coalesce(d *change.Decoder, cs []*change.Change, w *Write) error {
	if w.mem == nil || w.mem.exec.p != p {
		w.mem = p.newMemory()
	}
	m := w.mem
	m.reset()
	w.Rows, w.Heals = w.Rows[:0], false
	keys, err := d.Image(cs[0].Keys)
	if err != nil {
		return err
	}
	if m.key, err = p.table.Schema.Canonical(m.key[:0], keys); err != nil {
		return err
	}
	w.Item = Item{Table: p.table.Source, Key: m.key}
	w.Item.Guard, m.guard = guard(m.guard, p.table.Pipeline, p.table.Source, m.key)
	last := cs[len(cs)-1]
	w.Version = last.Version
	cs = p.effective(m, keys, cs)
	if len(cs) == 0 {
		return nil
	}
	last = cs[len(cs)-1]
	w.Version = last.Version
	now, err := p.views(m, d, keys, cs)
	if err != nil {
		return err
	}
	b := builder{m: m, w: w, now: now, last: last}
	return b.build()
}

// effective leaves out deletions by TTL that the mapping wants ignored (on_ttl_expiry: keep).
func (p *Program) effective(m *memory, keys change.Image, cs []*change.Change) []*change.Change {
	kept := func(c *change.Change) bool {
		return c.TTL && c.Op == change.Remove && p.policy(&m.exec.Eval, keys, c) == "keep"
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

// views projects the images of the changes; those before the last as footprints. It returns the view of
// the last image, empty when the item is gone.
func (p *Program) views(m *memory, d *change.Decoder, keys change.Image, cs []*change.Change) (now view, err error) {
	x := &m.exec
	known, err := p.ruleOfKey(&x.Eval, keys)
	if err != nil {
		return now, err
	}
	for i, c := range cs {
		if known == nil || known.needOld {
			if err := p.before(m, d, c, known); err != nil {
				return now, err
			}
		}
		last := i == len(cs)-1
		switch {
		case c.Op == change.Remove:
			if err := p.gone(m, keys, c, known); err != nil {
				return now, err
			}
		case last:
			return p.after(m, d, keys, c, known, true)
		case known == nil || known.needOld:
			v, err := p.after(m, d, keys, c, known, false)
			if err == nil {
				m.views = append(m.views, v)
			} else if err := unlessRefused(err); err != nil {
				return now, err
			}
		}
	}
	return view{}, nil
}

// ruleOfKey returns the item's rule where the key alone decides it.
func (p *Program) ruleOfKey(x *Eval, keys change.Image) (*rule, error) {
	if !p.byKey {
		return nil, nil
	}
	x.Scope.Image = keys
	return p.pick(x)
}

// after projects the new image of a change.
func (p *Program) after(m *memory, d *change.Decoder, keys change.Image, c *change.Change, known *rule, values bool) (view, error) {
	if c.New == nil {
		return view{}, tmpl.Refuse("no_image", "the stream record has no new image; the stream's view type must be NEW_AND_OLD_IMAGES")
	}
	x := &m.exec
	if p.byKey && known == nil {
		return view{}, tmpl.Refuse("no_rule", "no rule matches the item; add a rule, or one with `drop: true`")
	}
	if known != nil && !known.wantAll && len(known.wantNames) == 0 {
		x.Scope.Image, x.Raw = keys, c.New
		return x.run(known, values)
	}
	want := p.wants
	if known != nil {
		want = known.want
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

// before projects the old image of a change as footprints. An old image that the mapping refuses was never
// written: it has no rows.
func (p *Program) before(m *memory, d *change.Decoder, c *change.Change, known *rule) error {
	if c.Op == change.Insert {
		return nil
	}
	if c.Old == nil {
		if known != nil && !known.needOld {
			return nil
		}
		return tmpl.Refuse("no_image", "the stream record has no old image; the stream's view type must be NEW_AND_OLD_IMAGES")
	}
	want := p.wants
	if known != nil {
		want = known.want
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
	return unlessRefused(err)
}

// gone adds, for a removed item, the rows and columns that its key alone gives.
func (p *Program) gone(m *memory, keys change.Image, c *change.Change, known *rule) error {
	if known == nil || (known.needOld && c.Old != nil) {
		return nil
	}
	x := &m.exec
	x.Scope.Image, x.bare = keys, true
	v, err := x.run(known, false)
	x.bare = false
	if err == nil {
		m.views = append(m.views, v)
	}
	return unlessRefused(err)
}

func unlessRefused(err error) error {
	if refused := (*Refusal)(nil); errors.As(err, &refused) {
		return nil
	}
	return err
}
