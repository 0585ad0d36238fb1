package preflight

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/price"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/transform/propose"
)

// TableReport describes the mapping of a table, and what it did with the sample.
type TableReport struct {
	Entry    string                `json:"-"` // of the configuration, which may choose several tables
	Archived bool                  `json:"-"` // and nothing else: it has no target
	Source   string                `json:"source"`
	Target   string                `json:"target"`
	Rules    []transform.RowReport `json:"rules"`
	Sampled  int                   `json:"sampled"`
	Coverage []AttributeUse        `json:"coverage"`
	Copy     *CopyEstimate         `json:"copy,omitempty"` // of the items that the table holds; nil: no copy will begin
	Idle     *price.Idle           `json:"idle,omitempty"` // of its open shards; nil: they are not known

	table *catalog.Table
	rows  int // of the sampled items
}

// rowsPerItem returns how many rows an item has in the mean of the sample; 1 without one, or where
// the mapping writes none of the sampled items.
func (r *TableReport) rowsPerItem() float64 {
	if r.rows == 0 {
		return 1
	}
	return float64(r.rows) / float64(r.Sampled)
}

// AttributeUse is what becomes of an attribute, and in how many items of the sample.
type AttributeUse struct {
	Attr  string `json:"attr"`
	Use   string `json:"use"` // key, mapped, ignored, lost
	By    string `json:"by,omitempty"`
	Items int    `json:"items"`
}

func newTableReport(t *catalog.Table) *TableReport {
	return &TableReport{
		Entry: t.Path, Archived: t.ArchivedOnly(), Source: t.Source, Target: t.Target, Rules: t.Program.Report(),
		Coverage: []AttributeUse{}, table: t,
	}
}

// Uses yields every attribute of the sample with its use.
func (r *TableReport) Uses(yield func(attr, use string) bool) {
	for _, x := range r.Coverage {
		if !yield(x.Attr, x.Use) {
			return
		}
	}
}

// sample tries the mapping of a table on a sample of its items.
func (c *check) sample(ctx context.Context, r *TableReport, o Options) {
	if o.Sample <= 0 {
		return
	}
	err := c.readSample(ctx, r, o)
	switch {
	case err == nil:
	case source.Classify(err) == failure.Denied && r.table.Backfill.From != "none":
		c.add(errorf(codeScan, r.table.Path+".source", "grant dynamodb:Scan: see docs/credentials.md",
			"the items of the table cannot be copied: %s", err.Error()))
	case source.Classify(err) == failure.Denied: // not an error: without a copy run needs no Scan
		c.add(warnf("sample", r.table.Path+".source", "grant dynamodb:Scan to try the mapping on items, or set --sample 0",
			"%s", err.Error()))
	default:
		c.failed("sample", r.table.Path+".source", err)
	}
}

// readSample reads the items, counts what becomes of their attributes, and adds what the mapping's
// survey and the proposals find in them.
func (c *check) readSample(ctx context.Context, r *TableReport, o Options) error {
	t := r.table
	survey := propose.NewSurvey(t.Program)
	sampler := propose.New(propose.Source{Table: t.Source, Schema: t.Info.Schema, TTLAttr: t.Info.TTLAttr})
	uses := map[AttributeUse]int{}
	progress := func(int) {}
	if o.Sampling != nil {
		var done func()
		progress, done = o.Sampling(t.Source, min(int64(o.Sample), max(1, t.Info.Items)))
		defer done()
	}
	err := catalog.Sample(ctx, c.src, t.Source, o.Sample, func(img change.Image) {
		r.Sampled++
		progress(r.Sampled)
		survey.Add(img)
		if rows, err := t.Program.Project(img); err == nil { // the survey reports what cannot be mapped
			r.rows += len(rows)
		}
		sampler.Add(img)
		for _, x := range t.Program.Coverage(img) {
			uses[AttributeUse{Attr: x.Attr, Use: x.Use, By: x.By}]++
		}
	})
	if err != nil {
		return err
	}
	r.Coverage = sorted(uses)
	c.Problems = append(c.Problems, t.Problems(survey.Findings())...)
	concerning := slices.DeleteFunc(sampler.Findings(), func(p problem.Problem) bool { return !concerns(t, &p) })
	c.Problems = append(c.Problems, t.Problems(concerning)...)
	return nil
}

// sorted returns the uses with their number of items, by attribute.
func sorted(uses map[AttributeUse]int) []AttributeUse {
	list := []AttributeUse{} // in JSON [], not null
	for x, n := range uses {
		x.Items = n
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b AttributeUse) int {
		return cmp.Or(strings.Compare(a.Attr, b.Attr), strings.Compare(a.Use, b.Use), strings.Compare(a.By, b.By))
	})
	return list
}

// concerns reports whether a finding in a table's items matters for its mapping. Findings about key
// attributes matter only without a mapping: with one, the survey looks at the rows that the keys
// become.
func concerns(t *catalog.Table, p *problem.Problem) bool {
	switch p.Code {
	case "mixed_types":
		return t.Program.Untyped(p.Path)
	case "not_int64":
		return t.Program.Int64Only(p.Path)
	case "unpadded", "escaped":
		return t.Mapping == nil
	}
	return false
}
