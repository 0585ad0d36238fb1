package bigtable

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tailrace-cdc/replicator/transform"
)

// Table is a table as the pipeline needs it. Further families that it may have are nobody's business here.
type Table struct {
	Name     string
	Families []transform.Family
}

// Tables adds to the mappings' tables (data families only) what the sink itself needs: _tr_live and _tr_dead
// in each, and the state table. Tables of one name are united. Sorted by name, families too.
func Tables(data []Table, tombstones time.Duration) []Table {
	out := []Table{{Name: StateTable, Families: []transform.Family{{Name: stateFamily, MaxVersions: 1}}}}
	for _, d := range data {
		i := slices.IndexFunc(out, func(t Table) bool { return t.Name == d.Name })
		if i < 0 {
			i = len(out)
			// _tr_live is never aged: a live item that rests longer than H must keep its guard.
			out = append(out, Table{d.Name, []transform.Family{
				{Name: transform.LiveFamily, MaxVersions: 1}, {Name: transform.DeadFamily, MaxAge: tombstones}}})
		}
		for _, f := range d.Families {
			if !slices.ContainsFunc(out[i].Families, func(g transform.Family) bool { return g.Name == f.Name }) {
				out[i].Families = append(out[i].Families, f)
			}
		}
	}
	for _, t := range out {
		slices.SortFunc(t.Families, func(a, b transform.Family) int { return strings.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(out, func(a, b Table) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// MarshalJSON writes families with their rules as cbt takes them.
func (t Table) MarshalJSON() ([]byte, error) {
	type family struct {
		Name string `json:"name"`
		GC   string `json:"gc"`
		Type string `json:"type,omitempty"`
	}
	out := struct {
		Table    string   `json:"table"`
		Families []family `json:"families"`
	}{t.Name, []family{}}
	for _, f := range t.Families {
		out.Families = append(out.Families, family{f.Name, ruleOf(f), typeOf(f)})
	}
	return json.Marshal(out)
}

// CBT gives the command that creates the table.
func (t Table) CBT() string {
	var families []string
	for _, f := range t.Families {
		family := f.Name + ":" + ruleOf(f)
		if kind := typeOf(f); kind != "" {
			family += ":" + kind
		}
		families = append(families, family)
	}
	return "cbt createtable " + t.Name + " 'families=" + strings.Join(families, ",") + "'"
}

func ruleOf(f transform.Family) string { return gcText(policyOf(f)) }

// typeOf names an aggregate family's type as cbt does: intmax, intmin.
func typeOf(f transform.Family) string {
	if f.Aggregate == "" {
		return ""
	}
	return "int" + f.Aggregate
}

func configOf(f transform.Family) bigtable.Family {
	config := bigtable.Family{GCPolicy: policyOf(f)}
	number := bigtable.Int64Type{Encoding: bigtable.BigEndianBytesEncoding{}}
	switch f.Aggregate {
	case "max":
		config.ValueType = bigtable.AggregateType{Input: number, Aggregator: bigtable.MaxAggregator{}}
	case "min":
		config.ValueType = bigtable.AggregateType{Input: number, Aggregator: bigtable.MinAggregator{}}
	}
	return config
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

// gcText is canonical: services and emulators give rules back in their own order and words.
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

// Difference is one thing that a table lacks or has otherwise.
type Difference struct {
	Table  string `json:"table"`
	Family string `json:"family,omitempty"` // empty: the whole table is missing
	Have   string `json:"have"`             // GC rule, or "missing"
	Want   string `json:"want"`

	fix  func(ctx context.Context, admin *bigtable.AdminClient) error
	text []string
}

// CBT gives the commands that would remove the difference.
func (d Difference) CBT() []string { return d.text }

const missing = "missing"

// Diff compares the instance with the wanted tables. Nothing is written.
func (c *Client) Diff(ctx context.Context, want []Table) ([]Difference, error) {
	admin, err := c.administrator(ctx)
	if err != nil {
		return nil, fmt.Errorf("compare schema: %w", err)
	}
	var out []Difference
	for _, t := range want {
		found, err := c.diffTable(ctx, admin, t)
		if err != nil {
			return nil, fmt.Errorf("compare table %s: %w", t.Name, orInterrupted(ctx, err))
		}
		out = append(out, found...)
	}
	return out, nil
}

func (c *Client) diffTable(ctx context.Context, admin *bigtable.AdminClient, t Table) ([]Difference, error) {
	info, err := admin.TableInfo(ctx, t.Name)
	if status.Code(err) == codes.NotFound {
		return []Difference{lacksTable(t)}, nil
	}
	if err != nil {
		return nil, err
	}
	have := map[string]string{}
	for _, f := range info.FamilyInfos {
		have[f.Name] = gcText(f.FullGCPolicy)
	}
	var out []Difference
	for _, f := range t.Families {
		rule, ok := have[f.Name]
		if !ok {
			out = append(out, lacksFamily(t.Name, f))
		} else if rule != ruleOf(f) {
			out = append(out, otherRule(t.Name, rule, f))
		}
	}
	return out, nil
}

func lacksTable(t Table) Difference {
	return Difference{Table: t.Name, Have: missing, Want: "table", text: []string{t.CBT()},
		fix: func(ctx context.Context, admin *bigtable.AdminClient) error {
			conf := bigtable.TableConf{TableID: t.Name, ColumnFamilies: map[string]bigtable.Family{}}
			for _, f := range t.Families {
				conf.ColumnFamilies[f.Name] = configOf(f)
			}
			return admin.CreateTableFromConf(ctx, &conf)
		}}
}

func lacksFamily(table string, f transform.Family) Difference {
	create := "cbt createfamily " + table + " " + f.Name
	if kind := typeOf(f); kind != "" {
		create += ":" + kind
	}
	return Difference{Table: table, Family: f.Name, Have: missing, Want: ruleOf(f), text: []string{create, setRule(table, f)},
		fix: func(ctx context.Context, admin *bigtable.AdminClient) error {
			return admin.CreateColumnFamilyWithConfig(ctx, table, f.Name, configOf(f))
		}}
}

func otherRule(table, have string, f transform.Family) Difference {
	return Difference{Table: table, Family: f.Name, Have: have, Want: ruleOf(f), text: []string{setRule(table, f)},
		fix: func(ctx context.Context, admin *bigtable.AdminClient) error {
			return admin.SetGCPolicy(ctx, table, f.Name, policyOf(f))
		}}
}

func setRule(table string, f transform.Family) string {
	return "cbt setgcpolicy " + table + " " + f.Name + " '" + ruleOf(f) + "'"
}

// Ensure creates and changes what Diff finds, and returns what it did. Repeatable; two that run at once do
// no harm. Nothing is ever dropped.
func (c *Client) Ensure(ctx context.Context, want []Table) ([]Difference, error) {
	found, err := c.Diff(ctx, want)
	if err != nil {
		return nil, err
	}
	for _, d := range found {
		if err := d.fix(ctx, c.admin); err != nil && status.Code(err) != codes.AlreadyExists {
			return nil, fmt.Errorf("change table %s: %w", strings.TrimSuffix(d.Table+" family "+d.Family, " family "), orInterrupted(ctx, err))
		}
	}
	return found, nil
}

// administrator gives Google's client for tables and families.
func (c *Client) administrator(ctx context.Context) (*bigtable.AdminClient, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.admin != nil {
		return c.admin, nil
	}
	admin, err := bigtable.NewAdminClient(ctx, c.opt.Project, c.opt.Instance, c.clientOptions()...)
	if err != nil {
		return nil, fmt.Errorf("open admin client: %w", err)
	}
	c.admin = admin
	return admin, nil
}
