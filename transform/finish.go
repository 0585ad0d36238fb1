package transform

import (
	"maps"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// reads collects the attributes that a rule needs decoded.
func (c *compiler) reads(r *rule) {
	r.wantNames = map[string]bool{}
	add := func(t *tmpl.Template) {
		if t != nil {
			for _, name := range t.Attrs {
				r.wantNames[name] = true
			}
		}
	}
	for _, pl := range r.plans {
		add(pl.row)
		for _, cond := range pl.conds {
			r.wantNames[cond.attr] = true
		}
		r.wantAll = r.wantAll || pl.when != nil
		for _, e := range pl.emitters {
			add(e.Qualifier)
			add(e.Time.Template)
			if o := e.Otherwise(); o != nil {
				add(o.Qualifier)
			}
			decoded := e.Source.Decoded()
			r.wantAll = r.wantAll || decoded.All()
			for _, name := range decoded.Names {
				r.wantNames[name] = true
			}
		}
	}
	r.want = wanted(r.wantAll, r.wantNames)
}

func wanted(all bool, names map[string]bool) func(string) bool {
	if all {
		return nil
	}
	if len(names) > 8 {
		return func(name string) bool { return names[name] }
	}
	few := slices.Collect(maps.Keys(names))
	return func(name string) bool { return slices.Contains(few, name) }
}

// finish derives what the program needs once all rows have their class.
func (c *compiler) finish() {
	p := c.p
	p.byKey, p.coalesce = true, true
	names, all := map[string]bool{}, false
	for _, r := range p.rules {
		c.reads(r)
		all = all || r.wantAll || r.when != nil
		for name := range r.wantNames {
			names[name] = true
		}
		for _, cond := range r.conds {
			p.byKey = p.byKey && cond.key
			names[cond.attr] = true
		}
		p.byKey = p.byKey && r.when == nil
		for _, pl := range r.plans {
			p.coalesce = p.coalesce && pl.uniting()
		}
	}
	p.wants = wanted(all, names)
	for _, r := range p.rules {
		r.needOld, r.heals = needs(r), p.byKey
		p.coalesce = p.coalesce && !p.strands(r)
		for _, pl := range r.plans {
			r.heals = r.heals && pl.class != ClassD && pl.row.FromKey && len(pl.conds) == 0 && pl.when == nil
		}
	}
	c.hash()
	c.view()
	c.lint()
	c.acknowledge()
}

// uniting says whether only the last of several changes of an item matters to a row: not where every one leaves
// something behind, a version, a merged value, an archived copy, or an emptied row.
func (pl *plan) uniting() bool {
	return !pl.cascade && pl.rule.archive == nil && !slices.ContainsFunc(pl.emitters, func(e *Emitter) bool {
		return e.Aggregate() || e.outlives() || slices.ContainsFunc(e.Columns(), func(o ColumnSet) bool { return e.KeepsVersions(o.Family) })
	})
}

// outlives says whether cells that their times tell apart stay when their item goes.
func (e *Emitter) outlives() bool {
	return e.Time.Siblings && e.Family.history && e.Family.removed != "delete"
}

// strands says whether an expired item that the rule keeps leaves cells behind which its next life does not know of.
func (p *Program) strands(r *rule) bool { return r.onTTL == "keep" && (r.needOld || !p.byKey) }

// needs says whether a rule needs the old image to know what to delete.
func needs(r *rule) bool {
	if r.onRemove == "tombstone" {
		return true
	}
	for i, pl := range r.plans {
		if !pl.row.FromKey || (i > 0 && (len(pl.conds) > 0 || pl.when != nil)) {
			return true
		}
		for _, e := range pl.emitters {
			for _, o := range e.Columns() {
				if !e.FromKey && !e.Aggregate() && (!pl.exclusive || slices.Contains(pl.history, o.Family.Name)) {
					return true
				}
				if e.KeepsVersions(o.Family) && o.Family.removed == "empty" {
					return true
				}
			}
		}
	}
	return false
}

func (c *compiler) view() {
	at := c.m.At
	switch c.p.table.View {
	case "", "NEW_AND_OLD_IMAGES":
		return
	case "NEW_IMAGE":
		for _, r := range c.p.rules {
			for _, pl := range r.plans {
				if !pl.exclusive || r.needOld || !c.p.byKey {
					c.ps.Errorf(*pl.src, "view", "enable the stream with NEW_AND_OLD_IMAGES",
						"the stream has no old images, but %s is of class %s and needs them: %s", pl.name, pl.class, pl.why)
				}
			}
			if strings.HasPrefix(r.onTTL, "archive") {
				c.ps.Errorf(r.src.At, "view", "enable the stream with NEW_AND_OLD_IMAGES", "expired items cannot be archived: the stream has no old images")
			}
		}
	default:
		c.ps.Errorf(at, "view", "enable the stream with NEW_AND_OLD_IMAGES", "the stream's view type is %s: it has no new images", c.p.table.View)
	}
}
