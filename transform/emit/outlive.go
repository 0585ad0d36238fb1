package emit

import (
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Outlive is something in the target that may remain there although its item is gone, or, with
// Lacks, that may be gone although its item exists.
type Outlive struct {
	Rule   string
	Family string // "": all families that the rule writes
	Why    string // in the words of the mapping: on_ttl_expiry: keep, removed: keep, aggregate: max …
	Lacks  bool   // on_remove: row deletes the cells of other items with the item
}

// Alone is a cell of the target that no item of the source explains.
type Alone struct {
	Row       []byte
	Family    string
	Qualifier []byte
	Emptied   bool         // the newest version of its column is empty
	Keys      change.Image // of the item that its row's guard names; nil: not known
}

// Remaining is whether a cell may remain in the target although its item is absent. Its zero value
// is that it may not.
type Remaining struct {
	Code RemainingCode
	Why  string // for people, in the words of the mapping
}

// RemainingCode is the case in which a cell may remain.
type RemainingCode int

// The codes.
const (
	RemainsNot         RemainingCode = iota
	RemainsWhileAbsent               // only while there is no such item
	Remains                          // whether or not there is one: histories, archives, aggregates
)

// The reasons why a cell may remain without its item. Reasons of families are followed by the
// family's own word.
const (
	whyKeep      = "on_ttl_expiry: keep"
	whyArchive   = "on_ttl_expiry: archive:"
	whyRemoved   = "removed: "
	whyTombstone = "on_remove: tombstone"
	whyAggregate = "aggregate: "
	whyCascade   = "on_remove: row"
)

// MayOutlive lists what may remain in the target without its item. It is the one predicate for all
// code that must distinguish such cells from cells that were lost track of. Outlives applies it to
// one cell.
func MayOutlive(p *ir.Program) (all []Outlive) {
	for _, r := range p.Rules {
		for _, pl := range r.Plans {
			for _, e := range pl.Emitters {
				for _, c := range e.Columns() {
					if why, _ := staysIn(r, e, c.Family); why != "" {
						all = append(all, Outlive{Rule: r.Name, Family: c.Family.Name, Why: why})
					}
				}
			}
			if pl.WipesOnRemoval {
				all = append(all, Outlive{Rule: r.Name, Why: whyCascade, Lacks: true})
			}
		}
		if f := r.ArchiveFamily; f != nil {
			all = append(all, Outlive{Rule: r.Name, Family: f.Name, Why: whyArchive + f.Name})
		}
		if r.OnTTL == "keep" && len(r.Plans) > 0 {
			all = append(all, Outlive{Rule: r.Name, Why: whyKeep})
		}
	}
	return slices.CompactFunc(all, func(a, b Outlive) bool { return a == b })
}

// staysIn returns why cells of an entry in one of its families may remain without the item, "" if
// they may not. With emptied, only a column with an empty newest version may, with all its
// versions: the removal of the item added the empty version and left the others.
func staysIn(r *ir.Rule, e *ir.Emitter, f *ir.FamilyRule) (why string, emptied bool) {
	switch {
	case e.Aggregate():
		return whyAggregate + f.Aggregate, false
	case !f.History || !e.Time.Siblings && !e.KeepsVersions(f):
		return "", false
	case f.Removed == "keep":
		return whyRemoved + f.Removed, false
	case f.Removed == "empty":
		return whyRemoved + f.Removed, !e.Time.Siblings
	case r.OnRemove == "tombstone" && !e.Time.Siblings:
		return whyTombstone, true
	}
	return "", false
}

// Outlives returns whether a cell may remain in the target although its item is absent, and why.
func Outlives(p *ir.Program, a *Alone) (r Remaining) {
	for _, rule := range p.Rules {
		for i, pl := range rule.Plans {
			if !mayBeOf(p, rule, pl, a) {
				continue
			}
			if f := rule.ArchiveFamily; f != nil && i == 0 && f.Name == a.Family {
				return Remaining{Remains, whyArchive + f.Name}
			}
			for _, e := range pl.Emitters {
				for _, c := range e.Columns() {
					if c.Family.Name != a.Family || !e.MayEmit(c.Family, string(a.Qualifier)) {
						continue
					}
					if w, emptied := staysIn(rule, e, c.Family); w != "" && (!emptied || a.Emptied) {
						return Remaining{Remains, w}
					}
					if rule.OnTTL == "keep" {
						r = Remaining{RemainsWhileAbsent, whyKeep}
					}
				}
			}
		}
	}
	return r
}

// MayHold reports whether a row may hold a cell of some item in a column. False is a proof.
func MayHold(p *ir.Program, row []byte, family, qualifier string) bool {
	at := tmpl.Text(string(row))
	for _, r := range p.Rules {
		for i, pl := range r.Plans {
			if !tmpl.Overlap(pl.Row.Shape, at) {
				continue
			}
			if f := r.ArchiveFamily; f != nil && i == 0 && f.Name == family {
				return true
			}
			for _, e := range pl.Emitters {
				for _, c := range e.Columns() {
					if c.Family.Name == family && e.MayEmit(c.Family, qualifier) {
						return true
					}
				}
			}
		}
	}
	return false
}

// mayBeOf reports whether a plan may have given a cell's row, to the item of the guard where that
// is known.
func mayBeOf(p *ir.Program, r *ir.Rule, pl *ir.Plan, a *Alone) bool {
	if a.Keys == nil {
		return tmpl.Overlap(pl.Row.Shape, tmpl.Text(string(a.Row)))
	}
	x := evalOf(p, a.Keys)
	if !mayMatchKey(r.Conditions, a.Keys, x) || !mayMatchKey(pl.Conditions, a.Keys, x) {
		return false
	}
	o := &origin{p: p, rule: r, plan: pl, x: x}
	return len(givenBy([]*origin{o}, a.Row)) > 0
}

// KeepsRow reports whether a row may hold an item that is absent, because the mapping keeps items
// that TTL deleted (on_ttl_expiry: keep). It is the guard that may remain, whether or not a reader
// gets a cell.
func KeepsRow(p *ir.Program, keys change.Image, row []byte) bool {
	return keepAll(givenBy(originsOf(p, keys), row))
}

func keepAll(from []*origin) bool {
	return slices.ContainsFunc(from, func(o *origin) bool { return o.rule.OnTTL == "keep" })
}
