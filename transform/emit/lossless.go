package emit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Lossless reports whether every item can be turned back from its main row, and if not, why.
//
// Only the forms that Unmap reads count as kept; whatever is written in another form counts as
// lost. The attributes aws:rep:* of old global tables are not part of the item where they are
// stripped.
func Lossless(p *ir.Program) (bool, string) {
	for i, r := range p.Rules {
		if why := WhyLost(p, i); why != "" {
			return false, "rule " + r.Name + ": " + why
		}
	}
	return true, ""
}

// WhyLost returns why rows of the rule p.Rules[at] cannot be turned back, "" when they can.
func WhyLost(p *ir.Program, at int) string {
	for _, earlier := range p.Rules[:at+1] {
		if !earlier.DecidedByKey() {
			return "the row's key does not determine the rule: " + earlier.Name + " tests more than key attributes"
		}
	}
	r := p.Rules[at]
	switch {
	case r.Drop:
		return "its items are dropped"
	case len(r.Plans) == 0:
		return "it writes no row"
	case slices.ContainsFunc(p.Rules, func(o *ir.Rule) bool { return ir.SharesWith(o, r) || ir.SharesWith(r, o) }):
		return "another rule may write its cells, acknowledged"
	}
	return whyRowLoses(p, r.Plans[0])
}

// whyRowLoses returns which attribute of an item cannot be read back from its row, and why; "" when
// all can.
func whyRowLoses(p *ir.Program, pl *ir.Plan) string {
	readable, reasons := readableEmitters(pl)
	all := func(e *ir.Emitter) bool { return e.Source.Attributes().All() }
	// reasonOf returns why the first unreadable emitter that holds the attribute is unreadable.
	reasonOf := func(of func(*ir.Emitter) bool, otherwise string) string {
		if i := slices.IndexFunc(pl.Emitters, func(e *ir.Emitter) bool { return reasons[e] != "" && of(e) }); i >= 0 {
			return "`" + pl.Emitters[i].Describe() + "`: " + reasons[pl.Emitters[i]]
		}
		return otherwise
	}
	i := slices.IndexFunc(readable, all)
	if i < 0 {
		return reasonOf(all, "attributes that it does not name are not written")
	}
	for _, t := range readable[i].Entry.Except {
		holds := func(e *ir.Emitter) bool { return e.Holds(t.S) }
		if p.KeyType(t.S) == 0 && !slices.ContainsFunc(readable, holds) {
			return reasonOf(holds, fmt.Sprintf("attribute %q is not written", t.S))
		}
	}
	return ""
}

// readableEmitters returns the emitters of a row with cells that can be read back, and for each
// other emitter the reason why its cells cannot.
func readableEmitters(pl *ir.Plan) (list []*ir.Emitter, reasons map[*ir.Emitter]string) {
	reasons = map[*ir.Emitter]string{}
	_, missing := usableSidecar(pl)
	for _, e := range pl.Emitters {
		switch e.Source.(type) {
		case *ir.Types, *ir.Const:
			continue
		}
		why := whyUnreadable(e)
		if why == "" {
			why = whyMixed(pl, e)
		}
		if why == "" {
			why = whyRenamed(e)
		}
		if why == "" {
			why = whyUntyped(e, missing)
		}
		if why != "" {
			reasons[e] = why
		} else {
			list = append(list, e)
		}
	}
	return list, reasons
}

// usableSidecar returns the sidecar that keeps the attributes' types; nil and the reason where
// there is none that can be read back.
func usableSidecar(pl *ir.Plan) (*ir.Emitter, string) {
	for _, e := range pl.Emitters {
		if !e.IsSidecar() {
			continue
		}
		why := whyUnreadable(e)
		if why == "" {
			why = whyMixed(pl, e)
		}
		if why != "" {
			return nil, "the type sidecar cannot be relied on: " + why
		}
		return e, ""
	}
	return nil, "add `types: \"family:column\"`"
}

// whyUnreadable returns why an emitter's columns cannot be read back, whatever their values; ""
// when they can.
func whyUnreadable(e *ir.Emitter) string {
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
		return "flattened maps do not show where a map was"
	case e.Otherwise() != nil || e.SkipsOthers():
		return "values of another type are written elsewhere or skipped"
	case !e.Qualifier.FromKey:
		return "the column is named by attributes of the item"
	case e.Qualifier.Vars[tmpl.VarType]:
		return "columns that name the type are for readers"
	}
	return whyUnnamed(e)
}

// whyUnnamed returns why a column does not determine its attribute or member; "" when it does.
func whyUnnamed(e *ir.Emitter) string {
	variable, several := e.Source.Variable()
	if !several {
		return ""
	}
	_, list := e.Source.(*ir.List)
	h, ok := e.Qualifier.VarPlace()
	padded := list && slices.Equal(h.Filters, []string{"pad"})
	if !ok || !h.Plain && !padded {
		return "the column does not show {" + tmpl.VarNames[variable] + "} as it is: no filter, as the last part"
	}
	return ""
}

// whyMixed returns which other emitter of the row may write the same columns, so that Unmap could
// mistake its cells for cells of e; "" if none.
func whyMixed(pl *ir.Plan, e *ir.Emitter) string {
	for _, o := range pl.Emitters {
		if _, _, meet := ir.CommonColumn(e, o); o == e || !meet || o.Otherwise() == nil && e.Avoids(o) ||
			e.Otherwise() == nil && o.Avoids(e) {
			continue
		}
		return o.Describe() + " may write the same columns; give one of them a family or a prefix of its own"
	}
	return ""
}

// whyRenamed returns which written name two attributes may share; "" if none.
func whyRenamed(e *ir.Emitter) string {
	taken := map[string]bool{}
	for _, to := range slices.Sorted(maps.Values(e.Source.Attributes().Rename)) {
		if taken[to] || e.Holds(to) {
			return fmt.Sprintf("%q may be the name of two attributes", to)
		}
		taken[to] = true
	}
	return ""
}

// whyUntyped returns why the values of an emitter do not determine the attribute; "" when they do.
// missing is why there is no sidecar, "" where there is one.
func whyUntyped(e *ir.Emitter, missing string) string {
	as := e.Entry.As.S
	switch s := e.Source.(type) {
	case *ir.Document:
		if s.Format != "dynamo_json" && s.Format != "raw" {
			return "format " + s.Format + " does not keep types"
		}
		return ""
	case *ir.Map, *ir.List:
		switch {
		case as != "dynamo_json":
			return "the types of its members are not kept; write as: dynamo_json"
		case !e.Values.NullEmpty:
			return "members that are NULL leave no cell; write null: empty"
		}
		return orSidecar(missing, "an empty collection leaves no cell")
	case *ir.Set:
		return orSidecar(missing, "an empty collection leaves no cell")
	}
	switch {
	case slices.Contains([]string{"json", "float64", "google", "protobuf"}, as):
		return "as: " + as + " is not read back"
	case slices.Contains([]string{"dynamo_json", "int64", "decimal", "bool1"}, as) && e.Fallback == nil:
		if e.Values.NullEmpty {
			return ""
		}
		return orSidecar(missing, "NULL leaves no cell (null: empty writes one)")
	}
	return orSidecar(missing, "types are not kept")
}

// orSidecar returns what is lost without a sidecar, and why there is none; "" where there is one.
func orSidecar(missing, lost string) string {
	if missing == "" {
		return ""
	}
	return lost + "; " + missing
}
