package bigtable

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tailrace-cdc/replicator/transform"
)

// GC says which cells of a family may be collected. The zero value keeps everything.
type GC struct {
	MaxVersions int           `json:"max_versions,omitempty"`
	MaxAge      time.Duration `json:"max_age,omitempty"`
	// Both keeps a cell until both bounds have passed it (an intersection); else one is enough (a union).
	Both bool `json:"both,omitempty"`
}

// Table is a table as the pipeline needs it: families by name. Further families are nobody's business here.
type Table struct {
	Name     string        `json:"table"`
	Families map[string]GC `json:"families"`
}

// Tables adds to the mapping's tables (data families only) what the sink itself needs: _tr_live and _tr_dead
// in each, and the state table. Entries of one name are united. Sorted by name.
func Tables(data []Table, tombstones time.Duration) []Table {
	all := map[string]Table{StateTable: {StateTable, map[string]GC{stateFamily: {MaxVersions: 1}}}}
	for _, d := range data {
		t, ok := all[d.Name]
		if !ok {
			// _tr_live is never aged: a live item that rests longer than H must keep its guard.
			t = Table{d.Name, map[string]GC{transform.LiveFamily: {MaxVersions: 1}, transform.DeadFamily: {MaxAge: tombstones}}}
		}
		for name, gc := range d.Families {
			t.Families[name] = gc
		}
		all[d.Name] = t
	}
	var out []Table
	for _, t := range all {
		out = append(out, t)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// Names gives the families in order.
func (t Table) Names() []string {
	var names []string
	for name := range t.Families {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// CBT gives the command that creates the table.
func (t Table) CBT() string {
	var families []string
	for _, name := range t.Names() {
		families = append(families, name+":"+t.Families[name].String())
	}
	return "cbt createtable " + t.Name + " 'families=" + strings.Join(families, ",") + "'"
}

// String writes the rule as cbt takes it.
func (g GC) String() string { return gcText(g.policy()) }

func (g GC) policy() bigtable.GCPolicy {
	var bounds []bigtable.GCPolicy
	if g.MaxAge > 0 {
		bounds = append(bounds, bigtable.MaxAgePolicy(g.MaxAge))
	}
	if g.MaxVersions > 0 {
		bounds = append(bounds, bigtable.MaxVersionsPolicy(g.MaxVersions))
	}
	switch {
	case len(bounds) == 0:
		return bigtable.NoGcPolicy()
	case len(bounds) == 1:
		return bounds[0]
	case g.Both:
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
			return nil, fmt.Errorf("compare table %s: %w", t.Name, err)
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
	for _, name := range t.Names() {
		rule, ok := have[name]
		if !ok {
			out = append(out, lacksFamily(t.Name, name, t.Families[name]))
		} else if rule != t.Families[name].String() {
			out = append(out, otherRule(t.Name, name, rule, t.Families[name]))
		}
	}
	return out, nil
}

func lacksTable(t Table) Difference {
	return Difference{Table: t.Name, Have: missing, Want: "table", text: []string{t.CBT()},
		fix: func(ctx context.Context, admin *bigtable.AdminClient) error {
			conf := bigtable.TableConf{TableID: t.Name, ColumnFamilies: map[string]bigtable.Family{}}
			for name, gc := range t.Families {
				conf.ColumnFamilies[name] = bigtable.Family{GCPolicy: gc.policy()}
			}
			return admin.CreateTableFromConf(ctx, &conf)
		}}
}

func lacksFamily(table, family string, gc GC) Difference {
	return Difference{Table: table, Family: family, Have: missing, Want: gc.String(),
		text: []string{"cbt createfamily " + table + " " + family, setRule(table, family, gc)},
		fix: func(ctx context.Context, admin *bigtable.AdminClient) error {
			return admin.CreateColumnFamilyWithConfig(ctx, table, family, bigtable.Family{GCPolicy: gc.policy()})
		}}
}

func otherRule(table, family, have string, gc GC) Difference {
	return Difference{Table: table, Family: family, Have: have, Want: gc.String(), text: []string{setRule(table, family, gc)},
		fix: func(ctx context.Context, admin *bigtable.AdminClient) error {
			return admin.SetGCPolicy(ctx, table, family, gc.policy())
		}}
}

func setRule(table, family string, gc GC) string {
	return "cbt setgcpolicy " + table + " " + family + " '" + gc.String() + "'"
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
			return nil, fmt.Errorf("change table %s: %w", strings.TrimSuffix(d.Table+" family "+d.Family, " family "), err)
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
