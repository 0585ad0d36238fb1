package transform

import (
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Lossless says whether every item can be turned back from its main row, and if not, why.
//
// It knows a list of forms that come back, and Unmap reads no others: whatever is not on the list counts as lost.
// The attributes aws:rep:* of old global tables are DynamoDB's and no part of the item where they are stripped.
func (p *Program) Lossless() (bool, string) {
	for i, r := range p.rules {
		if why := p.loses(i); why != "" {
			return false, "rule " + r.name + ": " + why
		}
	}
	return true, ""
}

// loses says why rows of a rule cannot be turned back, "" when they can.
func (p *Program) loses(at int) string {
	for _, earlier := range p.rules[:at+1] {
		if !earlier.byKey() {
			return "the row's key does not tell the rule: " + earlier.name + " tests more than key attributes"
		}
	}
	r := p.rules[at]
	switch {
	case r.drop:
		return "its items are dropped"
	case len(r.plans) == 0:
		return "it writes no row"
	case slices.ContainsFunc(p.rules, func(o *rule) bool { return shares(o, r) || shares(r, o) }):
		return "another rule may write its cells, acknowledged"
	}
	return p.forgets(r.plans[0])
}

// byKey says whether the key alone tells if an item meets the rule.
func (r *rule) byKey() bool {
	return r.when == nil && !slices.ContainsFunc(r.conds, func(c condition) bool { return !c.key })
}

// forgets says which attribute of an item a row does not hold so that it can be read back.
func (p *Program) forgets(pl *plan) string {
	carriers, reasons := p.carriers(pl)
	all := func(e *emitter) bool { return (e.kind == "attrs" || e.kind == "doc") && e.names == nil }
	because := func(of func(*emitter) bool, otherwise string) string {
		if i := slices.IndexFunc(pl.emitters, func(e *emitter) bool { return reasons[e] != "" && of(e) }); i >= 0 {
			return "`" + pl.emitters[i].describe() + "`: " + reasons[pl.emitters[i]]
		}
		return otherwise
	}
	i := slices.IndexFunc(carriers, all)
	if i < 0 {
		return because(all, "attributes that it does not name are not written")
	}
	for _, t := range carriers[i].src.Except {
		holds := func(e *emitter) bool { return p.holds(e, t.S) }
		if p.keyType(t.S) == 0 && !slices.ContainsFunc(carriers, holds) {
			return because(holds, fmt.Sprintf("attribute %q is not written", t.S))
		}
	}
	return ""
}

// holds says whether an emitter writes an attribute's value.
func (p *Program) holds(e *emitter, name string) bool {
	if e.kind == "attrs" || e.kind == "doc" {
		return e.takes(p, name)
	}
	return e.attr == name && e.kind != "types" && e.kind != "const"
}

// carriers are the emitters of a row whose cells give attributes back, and the reasons why the others do not.
func (p *Program) carriers(pl *plan) (list []*emitter, reasons map[*emitter]string) {
	reasons = map[*emitter]string{}
	_, missing := pl.typed()
	for _, e := range pl.emitters {
		if e.kind == "types" || e.kind == "const" {
			continue
		}
		why := e.misplaced()
		if why == "" {
			why = pl.mixed(e)
		}
		if why == "" {
			why = e.renamed(p)
		}
		if why == "" {
			why = e.untyped(missing)
		}
		if why != "" {
			reasons[e] = why
		} else {
			list = append(list, e)
		}
	}
	return list, reasons
}

// typed returns the sidecar that keeps the attributes' types; nil, and why, where there is none to rely on.
func (pl *plan) typed() (*emitter, string) {
	for _, e := range pl.emitters {
		if e.kind != "types" {
			continue
		}
		why := e.misplaced()
		if why == "" {
			why = pl.mixed(e)
		}
		if why != "" {
			return nil, "the type sidecar cannot be relied on: " + why
		}
		return e, ""
	}
	return nil, "add `types: \"family:column\"`"
}

// misplaced says why an emitter's columns cannot be read back, whatever stands in them.
func (e *emitter) misplaced() string {
	for _, at := range e.outs() {
		switch {
		case at.family.Aggregate != "":
			return "an aggregate merges its values"
		case at.family.MaxAge > 0 && !at.family.Intersection:
			return "cells of family " + at.family.Name + " age away"
		}
	}
	switch {
	case e.shared:
		return "other items may write its cells, acknowledged"
	case e.siblings:
		return "several items share its column"
	case e.ts != nil && e.missing == "skip":
		return "without the cell time it leaves no cell"
	case e.versions:
		return "its elements are versions of one column"
	case e.flatten:
		return "flattened maps do not tell where a map was"
	case e.otherwise != "" && e.otherwise != "refuse":
		return "values of another type are written elsewhere or skipped"
	case !e.qualifier.FromKey:
		return "the column is named by attributes of the item"
	case e.qualifier.Vars[tmpl.VarType]:
		return "columns that name the type are for readers"
	}
	return e.nameless()
}

// nameless says why a column does not tell what it is of.
func (e *emitter) nameless() string {
	single := e.kind == "attr" || e.kind == "doc" || e.kind == "types" || e.kind == "const" || len(e.names) == 1
	if single {
		return ""
	}
	h, ok := e.qualifier.Hole()
	padded := e.kind == "list" && slices.Equal(h.Filters, []string{"pad"})
	if !ok || !h.Plain && !padded {
		return "the column does not show {" + tmpl.VarNames[e.variable()] + "} as it is: no filter, as the last part"
	}
	return ""
}

// variable is the one that tells the columns of an emitter apart.
func (e *emitter) variable() int {
	switch e.kind {
	case "map":
		return tmpl.VarKey
	case "set":
		return tmpl.VarMember
	case "list":
		return tmpl.VarI
	}
	return tmpl.VarAttr
}

// mixed says which other source of the row may write a cell that would be taken for the emitter's.
func (pl *plan) mixed(e *emitter) string {
	for _, o := range pl.emitters {
		if _, _, meet := meeting(e, o); o == e || !meet || o.other == nil && apart(e, o) || e.other == nil && apart(o, e) {
			continue
		}
		return o.describe() + " may write the same columns; give one of them a family or a prefix of its own"
	}
	return ""
}

// renamed says which column could be that of two attributes.
func (e *emitter) renamed(p *Program) string {
	taken := map[string]bool{}
	for _, to := range e.rename {
		if taken[to] || e.takes(p, to) {
			return fmt.Sprintf("%q may be the name of two attributes", to)
		}
		taken[to] = true
	}
	return ""
}

// untyped says what the values of an emitter do not tell. Missing is why there is no sidecar, "" where there is one.
func (e *emitter) untyped(missing string) string {
	as := e.src.As.S
	member := e.kind == "map" || e.kind == "list"
	switch {
	case e.kind == "doc" && e.format != "dynamo_json" && e.format != "raw":
		return "format " + e.format + " does not keep types"
	case e.kind == "doc":
		return ""
	case member && as != "dynamo_json":
		return "the types of its members are not kept; write as: dynamo_json"
	case member && !e.nullEmpty:
		return "members that are NULL leave no cell; write null: empty"
	case e.kind != "attr" && e.kind != "attrs":
		return reason(missing, "an empty collection leaves no cell")
	case slices.Contains([]string{"json", "float64", "google", "protobuf"}, as):
		return "as: " + as + " is not read back"
	case slices.Contains([]string{"dynamo_json", "int64", "decimal", "bool1"}, as) && e.fallback == nil:
		if e.nullEmpty {
			return ""
		}
		return reason(missing, "NULL leaves no cell (null: empty writes one)")
	}
	return reason(missing, "types are not kept")
}

// reason joins what is lost and how a sidecar would keep it, "" where there is one.
func reason(missing, lost string) string {
	if missing == "" {
		return ""
	}
	return lost + "; " + missing
}
