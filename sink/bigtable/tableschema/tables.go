package tableschema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tailrace-cdc/replicator/transform"
)

// StateTable has one row for each pipeline and source table, with the state that must survive the
// loss of a log, and one row for each target table, with the pipeline that writes to it.
const StateTable = "tailrace_state"

// StateFamily is the one family of StateTable.
const StateFamily = "s"

// Table is a table as the pipeline needs it. It may have further families, which this package
// ignores.
type Table struct {
	Name     string
	Families []transform.Family
	Splits   [][]byte // row keys at which a new table is divided; an existing table keeps its tablets
}

// Tables adds what the sink needs to the tables of the mappings, which have data families only:
// _tr_live and _tr_dead in each table, and the state table. Tables with one name are merged. Tables
// and their families are sorted by name.
func Tables(data []Table, tombstones time.Duration) []Table {
	out := []Table{{Name: StateTable, Families: []transform.Family{{Name: StateFamily, MaxVersions: 1}}}}
	for _, d := range data {
		i := slices.IndexFunc(out, func(t Table) bool { return t.Name == d.Name })
		if i < 0 {
			i = len(out)
			// _tr_live has no maximum age: a live item must keep its guard, however long it does
			// not change.
			out = append(out, Table{Name: d.Name, Families: []transform.Family{
				{Name: transform.LiveFamily, MaxVersions: 1}, {Name: transform.DeadFamily, MaxAge: tombstones}}})
		}
		out[i].Splits = append(out[i].Splits, d.Splits...)
		for _, f := range d.Families {
			if !slices.ContainsFunc(out[i].Families, func(g transform.Family) bool { return g.Name == f.Name }) {
				out[i].Families = append(out[i].Families, f)
			}
		}
	}
	for _, t := range out {
		slices.SortFunc(t.Families, func(a, b transform.Family) int { return strings.Compare(a.Name, b.Name) })
		slices.SortFunc(t.Splits, bytes.Compare)
	}
	slices.SortFunc(out, func(a, b Table) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// MarshalJSON writes families with their rules in the syntax of cbt.
func (t Table) MarshalJSON() ([]byte, error) {
	type family struct {
		Name string `json:"name"`
		GC   string `json:"gc"`
		Type string `json:"type,omitempty"`
	}
	out := struct {
		Table    string   `json:"table"`
		Families []family `json:"families"`
		Splits   [][]byte `json:"splits,omitempty"` // base64: row keys are bytes
	}{t.Name, []family{}, t.Splits}
	for _, f := range t.Families {
		out.Families = append(out.Families, family{f.Name, ruleOf(f), typeOf(f)})
	}
	return json.Marshal(out)
}

// CBT returns the command that creates the table. A comment in it has the number of split keys that
// a command line cannot contain.
func (t Table) CBT() string {
	var families, splits []string
	for _, f := range t.Families {
		family := f.Name + ":" + ruleOf(f)
		if kind := typeOf(f); kind != "" {
			family += ":" + kind
		}
		families = append(families, family)
	}
	for _, key := range t.Splits {
		if transform.Readable(key) == string(key) && !bytes.ContainsAny(key, ",'\\") {
			splits = append(splits, string(key))
		}
	}
	command := "cbt createtable " + t.Name + " 'families=" + strings.Join(families, ",") + "'"
	if len(splits) > 0 {
		command += " 'splits=" + strings.Join(splits, ",") + "'"
	}
	if n := len(t.Splits) - len(splits); n > 0 {
		command += fmt.Sprintf(" # without %d split keys that a command line cannot hold", n)
	}
	return command
}

func ruleOf(f transform.Family) string { return gcText(policyOf(f)) }

// typeOf returns the type of an aggregate family as cbt spells it: intmax, intmin, inthll.
func typeOf(f transform.Family) string {
	if f.Aggregate == "" {
		return ""
	}
	return "int" + f.Aggregate
}

func familyConfig(f transform.Family) bigtable.Family {
	config := bigtable.Family{GCPolicy: policyOf(f)}
	number := bigtable.Int64Type{Encoding: bigtable.BigEndianBytesEncoding{}}
	switch f.Aggregate {
	case "max":
		config.ValueType = bigtable.AggregateType{Input: number, Aggregator: bigtable.MaxAggregator{}}
	case "min":
		config.ValueType = bigtable.AggregateType{Input: number, Aggregator: bigtable.MinAggregator{}}
	case "hll":
		config.ValueType = bigtable.AggregateType{Input: number, Aggregator: bigtable.HllppUniqueCountAggregator{}}
	}
	return config
}

// aggregateOf is typeOf for a family as the service describes it; "" for one of plain cells.
func aggregateOf(t bigtable.Type) string {
	aggregate, ok := t.(bigtable.AggregateType)
	if !ok {
		return ""
	}
	switch aggregate.Aggregator.(type) {
	case bigtable.SumAggregator:
		return "intsum"
	case bigtable.MaxAggregator:
		return "intmax"
	case bigtable.MinAggregator:
		return "intmin"
	case bigtable.HllppUniqueCountAggregator:
		return "inthll"
	}
	return "another aggregate"
}

func policyOf(f transform.Family) bigtable.GCPolicy {
	var bounds []bigtable.GCPolicy
	if f.MaxAge > 0 {
		bounds = append(bounds, bigtable.MaxAgePolicy(f.MaxAge))
	}
	if f.MaxVersions > 0 {
		bounds = append(bounds, bigtable.MaxVersionsPolicy(f.MaxVersions))
	}
	switch {
	case len(bounds) == 0:
		return bigtable.NoGcPolicy()
	case len(bounds) == 1:
		return bounds[0]
	case f.Intersection:
		return bigtable.IntersectionPolicy(bounds...)
	}
	return bigtable.UnionPolicy(bounds...)
}

// Forever is how long a cell stays that no rule collects.
const Forever = time.Duration(math.MaxInt64)

// keeps returns how long the newest cell of a column stays at least under a rule. A limit of
// versions never collects the newest one. A union collects a cell as soon as one of its rules does,
// an intersection not before all of them do. An intersection of nothing collects nothing.
func keeps(p bigtable.GCPolicy) time.Duration {
	switch p := p.(type) {
	case bigtable.MaxVersionsGCPolicy:
		if p > 0 {
			return Forever
		}
		return 0
	case bigtable.MaxAgeGCPolicy:
		return time.Duration(p)
	case bigtable.UnionGCPolicy:
		least := Forever
		for _, c := range p.Children {
			least = min(least, keeps(c))
		}
		return least
	case bigtable.IntersectionGCPolicy:
		if len(p.Children) == 0 {
			return Forever
		}
		most := time.Duration(0)
		for _, c := range p.Children {
			most = max(most, keeps(c))
		}
		return most
	}
	return Forever
}

// gcText returns a rule in a canonical form, because services and emulators return rules in their
// own order and words.
func gcText(p bigtable.GCPolicy) string {
	join := func(children []bigtable.GCPolicy, with string) string {
		var parts []string
		for _, c := range children {
			parts = append(parts, gcText(c))
		}
		slices.Sort(parts)
		return strings.Join(parts, with)
	}
	switch p := p.(type) {
	case bigtable.MaxVersionsGCPolicy:
		return "maxversions=" + strconv.Itoa(int(p))
	case bigtable.MaxAgeGCPolicy:
		return "maxage=" + p.GetDurationString()
	case bigtable.UnionGCPolicy:
		return join(p.Children, "||")
	case bigtable.IntersectionGCPolicy:
		return join(p.Children, "&&")
	}
	return "never"
}
