package preflight

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform/propose"
)

// ProposeOptions choose the tables, and say what no table shows.
type ProposeOptions struct {
	Tables   []string // names, or patterns such as orders-*
	Target   string   // of each table: {table} stands for its name
	Pipeline string   // "": from the tables' names
	Project  string   // "": to be filled in
	Instance string
	Sample   int // items of each table

	Region, Endpoint string // of DynamoDB, as the configuration has them
}

// Proposed is what was found out about a table.
type Proposed struct {
	Source   string            `json:"table"`
	Target   string            `json:"target"`
	Items    int               `json:"items"` // in the sample
	Problems []problem.Problem `json:"problems"`
	Copy     string            `json:"copy,omitempty"` // what copying its items takes; "": it has none

	info    source.TableInfo
	mapping string
}

// Propose looks at each table that the options name.
func Propose(ctx context.Context, src *source.Source, o *ProposeOptions) ([]*Proposed, error) {
	names, err := find(ctx, src, o.Tables)
	if err != nil {
		return nil, err
	}
	if len(names) > 1 && !strings.Contains(o.Target, tableMark) {
		return nil, failure.Usagef("for example --target 'shop-{table}'",
			"--target %q is one name for %d tables", o.Target, len(names))
	}
	var all []*Proposed
	for _, name := range names {
		t, err := proposeFor(ctx, src, name, o.Sample)
		if err != nil {
			return nil, err
		}
		t.Target = targetOf(o.Target, name)
		all = append(all, t)
	}
	if strings.Contains(o.Target, tableMark) {
		separate(all)
	}
	return all, nil
}

// find returns the tables of patterns, each once, in the order of the patterns.
func find(ctx context.Context, src *source.Source, patterns []string) (names []string, err error) {
	var known []string // nil: not asked for
	for _, p := range patterns {
		found := []string{p}
		if strings.ContainsAny(p, `*?[`) {
			if _, err := path.Match(p, ""); err != nil {
				return nil, failure.Usagef("for example orders-*", "read --table %q: %w", p, err)
			}
			if known == nil {
				if known, err = src.ListTables(ctx); err != nil {
					return nil, source.Explain(err)
				}
			}
			if found = matching(known, p); len(found) == 0 {
				return nil, failure.With(failure.Unready, "the region has: "+few(known), fmt.Errorf("no table matches %q", p))
			}
		}
		for _, name := range found {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// matching returns the names that match a pattern, sorted.
func matching(names []string, pattern string) (found []string) {
	for _, name := range names {
		if ok, _ := path.Match(pattern, name); ok { // the pattern was checked
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// few returns the first names of a list for a hint.
func few(names []string) string {
	const most = 10
	switch {
	case len(names) == 0:
		return "no table"
	case len(names) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// explainTable explains why a table could not be described. One that does not exist is mostly a
// name with a typing mistake or of another region, so the hint lists what the region has.
func explainTable(ctx context.Context, src *source.Source, err error) error {
	if source.Classify(err) != failure.Gone {
		return source.Explain(err)
	}
	known, listErr := src.ListTables(ctx)
	if listErr != nil {
		return source.Explain(err)
	}
	return failure.With(failure.Unready, "check the name, --region and --endpoint: there is "+few(known), err)
}

// proposeFor describes a table and samples its items.
func proposeFor(ctx context.Context, src *source.Source, name string, sample int) (*Proposed, error) {
	info, err := src.Table(ctx, name)
	if err != nil {
		return nil, explainTable(ctx, src, err)
	}
	sampler := propose.New(propose.Source{
		Table: name, Schema: info.Schema, TTLAttr: info.TTLAttr, Indexes: indexes(info),
	})
	if err := catalog.Sample(ctx, src, name, sample, sampler.Add); err != nil {
		return nil, err
	}
	proposal := sampler.Proposal()
	t := &Proposed{
		Source: name, Items: sampler.Items(), Problems: []problem.Problem{}, info: info, mapping: proposal.Mapping,
	}
	for _, p := range append(StreamProblems(name, &info, ""), proposal.Findings...) {
		if answered(&p, &info.Schema) {
			continue
		}
		p.File, p.Severity = name, problem.SeverityWarning // their paths are attributes; nothing is refused yet
		t.Problems = append(t.Problems, p)
	}
	if info.Items > 0 || t.Items > 0 {
		t.Copy = CopySentence(&info)
	}
	return t, nil
}

// answered reports whether the proposed mapping already does what the hint of a finding asks for:
// numbers become text unless as: int64 is chosen, and keys of numbers and bytes get encodings that
// sort and need no escapes.
func answered(p *problem.Problem, schema *change.KeySchema) bool {
	switch p.Code {
	case "not_int64":
		return true
	case "escaped":
		return schema.Partition.Type == 'B'
	case "unpadded":
		return p.Path == schema.Partition.Name && schema.Partition.Type == 'N' ||
			schema.Sort != nil && p.Path == schema.Sort.Name && schema.Sort.Type == 'N'
	}
	return false
}

// indexes returns the table's secondary indexes, by name.
func indexes(info source.TableInfo) (all []propose.Index) {
	for _, name := range slices.Sorted(maps.Keys(info.Indexes)) {
		all = append(all, propose.Index{Name: name, Key: info.Indexes[name].Attrs()})
	}
	return all
}
