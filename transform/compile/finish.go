package compile

import (
	"maps"
	"slices"

	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/lint"
	"github.com/tailrace-cdc/replicator/transform/prove"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// setWanted sets the attributes that must be decoded for a rule.
func (c *compiler) setWanted(r *ir.Rule) {
	r.WantedNames = map[string]bool{}
	add := func(t *tmpl.Template) {
		if t != nil {
			for _, name := range t.Attrs {
				r.WantedNames[name] = true
			}
		}
	}
	for _, pl := range r.Plans {
		add(pl.Row)
		for _, cond := range pl.Conditions {
			r.WantedNames[cond.Attr] = true
		}
		r.WantsAll = r.WantsAll || pl.When != nil
		for _, e := range pl.Emitters {
			add(e.Qualifier)
			add(e.Time.Template)
			if o := e.Otherwise(); o != nil {
				add(o.Qualifier)
			}
			decoded := e.Source.Decoded()
			r.WantsAll = r.WantsAll || decoded.All()
			for _, name := range decoded.Names {
				r.WantedNames[name] = true
			}
		}
	}
	r.Wanted = wanted(r.WantsAll, r.WantedNames)
}

// wanted returns the attributes to decode as a function; nil = all.
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

// finish derives what the program needs to run, once all rows have their class, and lints the
// program.
func (c *compiler) finish() {
	p := c.Program
	p.KeyDecidesRule, p.Coalesces = true, true
	names, all := map[string]bool{}, false
	for _, r := range p.Rules {
		c.setWanted(r)
		all = all || r.WantsAll || r.When != nil
		for name := range r.WantedNames {
			names[name] = true
		}
		for _, cond := range r.Conditions {
			p.KeyDecidesRule = p.KeyDecidesRule && cond.Key
			names[cond.Attr] = true
		}
		p.KeyDecidesRule = p.KeyDecidesRule && r.When == nil
		for _, pl := range r.Plans {
			p.Coalesces = p.Coalesces && prove.MayCoalesce(pl)
		}
	}
	p.Wanted = wanted(all, names)
	p.RowsByKey = p.KeyDecidesRule
	for _, r := range p.Rules {
		r.NeedOld, r.Heals = prove.NeedsOldImage(r), p.KeyDecidesRule
		p.Coalesces = p.Coalesces && !p.LosesTrackOf(r)
		for _, pl := range r.Plans {
			pl.ByKey = p.KeyDecidesRule && pl.Row.FromKey && len(pl.Conditions) == 0 && pl.When == nil
			pl.ReadToResync = prove.MustReadToResync(pl)
			r.Heals = r.Heals && pl.Class != ir.ClassD && pl.ByKey
			p.RowsByKey = p.RowsByKey && pl.ByKey
			p.ReadToResync = p.ReadToResync || pl.ReadToResync
		}
	}
	p.SealsKeys = slices.ContainsFunc(c.KeyNames(), func(name string) bool { return c.Personal[name] })
	c.setHash()
	prove.CheckImages(c.Draft)
	lint.Program(c.Draft)
}
