package transform

import (
	"fmt"
	"maps"
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
	all := func(e *Emitter) bool { return e.Source.Attributes().All() }
	because := func(of func(*Emitter) bool, otherwise string) string {
		if i := slices.IndexFunc(pl.emitters, func(e *Emitter) bool { return reasons[e] != "" && of(e) }); i >= 0 {
			return "`" + pl.emitters[i].Describe() + "`: " + reasons[pl.emitters[i]]
		}
		return otherwise
	}
	i := slices.IndexFunc(carriers, all)
	if i < 0 {
		return because(all, "attributes that it does not name are not written")
	}
	for _, t := range carriers[i].Entry.Except {
		holds := func(e *Emitter) bool { return e.Holds(t.S) }
		if p.keyType(t.S) == 0 && !slices.ContainsFunc(carriers, holds) {
			return because(holds, fmt.Sprintf("attribute %q is not written", t.S))
		}
	}
	return ""
}

// carriers are the emitters of a row whose cells give attributes back, and the reasons why the others do not.
func (p *Program) carriers(pl *plan) (list []*Emitter, reasons map[*Emitter]string) {
	reasons = map[*Emitter]string{}
	_, missing := pl.typed()
	for _, e := range pl.emitters {
		switch e.Source.(type) {
		case *Types, *Const:
			continue
		}
		why := e.misplaced()
		if why == "" {
			why = pl.mixed(e)
		}
		if why == "" {
			why = e.renamed()
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
func (pl *plan) typed() (*Emitter, string) {
	for _, e := range pl.emitters {
		if !e.isSidecar() {
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
func (e *Emitter) misplaced() string {
	for _, at := range e.Columns() {
		switch {
		case at.Family.Aggregate != "":
			return "an aggregate merges its values"
		case at.Family.MaxAge > 0 && !at.Family.Intersection:
			return "cells of family " + at.Family.Name + " age away"
		}
	}
	switch {
	case e.Shared:
		return "other items may write its cells, acknowledged"
	case e.Time.Siblings:
		return "several items share its column"
	case e.Time.Template != nil && e.Time.Missing == "skip":
		return "without the cell time it leaves no cell"
	case e.Versions():
		return "its elements are versions of one column"
	case e.Values.Flatten != nil:
		return "flattened maps do not tell where a map was"
	case e.Otherwise() != nil || e.SkipsOthers():
		return "values of another type are written elsewhere or skipped"
	case !e.Qualifier.FromKey:
		return "the column is named by attributes of the item"
	case e.Qualifier.Vars[tmpl.VarType]:
		return "columns that name the type are for readers"
	}
	return e.nameless()
}

// nameless says why a column does not tell what it is of.
func (e *Emitter) nameless() string {
	variable, several := e.Source.Variable()
	if !several {
		return ""
	}
	_, list := e.Source.(*List)
	h, ok := e.Qualifier.Hole()
	padded := list && slices.Equal(h.Filters, []string{"pad"})
	if !ok || !h.Plain && !padded {
		return "the column does not show {" + tmpl.VarNames[variable] + "} as it is: no filter, as the last part"
	}
	return ""
}

// mixed says which other source of the row may write a cell that would be taken for the emitter's.
func (pl *plan) mixed(e *Emitter) string {
	for _, o := range pl.emitters {
		if _, _, meet := CommonColumn(e, o); o == e || !meet || o.Otherwise() == nil && e.Avoids(o) || e.Otherwise() == nil && o.Avoids(e) {
			continue
		}
		return o.Describe() + " may write the same columns; give one of them a family or a prefix of its own"
	}
	return ""
}

// renamed says which column could be that of two attributes.
func (e *Emitter) renamed() string {
	taken := map[string]bool{}
	for _, to := range slices.Sorted(maps.Values(e.Source.Attributes().Rename)) {
		if taken[to] || e.Holds(to) {
			return fmt.Sprintf("%q may be the name of two attributes", to)
		}
		taken[to] = true
	}
	return ""
}

// untyped says what the values of an emitter do not tell. Missing is why there is no sidecar, "" where there is one.
func (e *Emitter) untyped(missing string) string {
	as := e.Entry.As.S
	switch s := e.Source.(type) {
	case *Document:
		if s.Format != "dynamo_json" && s.Format != "raw" {
			return "format " + s.Format + " does not keep types"
		}
		return ""
	case *Map, *List:
		switch {
		case as != "dynamo_json":
			return "the types of its members are not kept; write as: dynamo_json"
		case !e.Values.NullEmpty:
			return "members that are NULL leave no cell; write null: empty"
		}
		return reason(missing, "an empty collection leaves no cell")
	case *Set:
		return reason(missing, "an empty collection leaves no cell")
	}
	switch {
	case slices.Contains([]string{"json", "float64", "google", "protobuf"}, as):
		return "as: " + as + " is not read back"
	case slices.Contains([]string{"dynamo_json", "int64", "decimal", "bool1"}, as) && e.Fallback == nil:
		if e.Values.NullEmpty {
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
