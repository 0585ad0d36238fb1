// Package verify compares a source table with Bigtable, cell by cell, as a plain reader sees it.
//
// The source's items come in no order and several may share a row, so their projection is sorted first, in
// runs on disk when it is large; then it is merged with one ordered reading of the target. Memory stays
// bounded whatever the tables' size. Versions and guards are not looked at: a migrated application does
// not know them either.
//
// Compare when both sides are quiet; what is being written differs from one moment to the next.
package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

// Items calls f with every item of a source table, in any order. An error of f ends it and is returned.
// The image may be reused after f returns.
type Items func(ctx context.Context, f func(change.Image) error) error

// Rows calls f with every row of the target in key order, holding the cells that Views asks for.
// An error of f ends it and is returned. (*bigtable.Client).Rows does it.
type Rows func(ctx context.Context, f func(*bigtable.Row) error) error

// Source is one source table and what its items become.
type Source struct {
	Program *transform.Program
	Schema  change.KeySchema
	Items   Items
}

// Options of a comparison; the zero value will do.
type Options struct {
	Dir        string    // for sorted runs; default the system's temporary directory
	Memory     int       // bytes held before a run is written; default 64 MiB
	Limit      int       // differences that are kept, all are counted; default 1000
	ShowValues bool      // keep values in differences; needs memory and disk for all values
	Now        time.Time // for families with a maximum age; zero: nothing has aged
	// Outlive names families whose cells may outlive their items (archives, histories): extra cells there
	// are no difference.
	Outlive []string
}

func (o Options) withDefaults() Options {
	if o.Memory == 0 {
		o.Memory = 64 << 20
	}
	if o.Limit == 0 {
		o.Limit = 1000
	}
	return o
}

// Kind says how the two sides differ.
type Kind string

// The kinds of a Difference. A missing or extra row counts once, whatever its cells.
const (
	MissingRow  Kind = "missing_row"
	ExtraRow    Kind = "extra_row"
	MissingCell Kind = "missing_cell"
	ExtraCell   Kind = "extra_cell"
	Value       Kind = "value"
)

// Difference is one thing in which Bigtable is not the source's projection.
type Difference struct {
	Kind      Kind   `json:"kind"`
	Row       string `json:"row"`
	Family    string `json:"family,omitempty"`
	Qualifier string `json:"qualifier,omitempty"`
	Time      int64  `json:"ts,omitempty"`       // ms, where the mapping gives the cell's time
	KeyHash   uint64 `json:"key_hash,omitempty"` // of an item behind the row; 0 where only Bigtable has it
	Want      []byte `json:"want,omitempty"`     // with Options.ShowValues
	Have      []byte `json:"have,omitempty"`
}

// Result counts what was compared.
type Result struct {
	Items       int64        `json:"items"`    // in the source
	Refused     int64        `json:"refused"`  // items that the mapping will not take: their rows are unknown
	Rows        int64        `json:"rows"`     // that the source's items ask for
	Cells       int64        `json:"cells"`    // compared with what the source asks for
	Unproven    int64        `json:"unproven"` // cells that may have aged away
	Count       int64        `json:"differences"`
	MissingRows int64        `json:"missing_rows"`
	ExtraRows   int64        `json:"extra_rows"`
	Differences []Difference `json:"list"` // the first Options.Limit
}

// Equal tells whether everything was compared and nothing differs.
func (r *Result) Equal() bool { return r.Count == 0 && r.Refused == 0 && r.Unproven == 0 }

// Views is what Rows must read for the programs of one target: of each family as many versions as it keeps.
func Views(programs ...*transform.Program) []bigtable.View {
	var views []bigtable.View
	for _, f := range familiesOf(programs) {
		views = append(views, bigtable.View{Family: f.Name, Versions: f.MaxVersions})
	}
	return views
}

func familiesOf(programs []*transform.Program) []transform.Family {
	var out []transform.Family
	seen := map[string]bool{}
	for _, p := range programs {
		for _, f := range p.Families() {
			if !seen[f.Name] {
				seen[f.Name] = true
				out = append(out, f)
			}
		}
	}
	return out
}

// Compare reads all sources of one target, then the target, and reports every difference.
func Compare(ctx context.Context, o Options, sources []Source, rows Rows) (*Result, error) {
	o = o.withDefaults()
	programs := make([]*transform.Program, len(sources))
	for i, s := range sources {
		programs[i] = s.Program
	}
	families := familiesOf(programs)
	sorter := &sorter{memory: o.Memory, dir: o.Dir}
	defer sorter.close()
	res := &Result{}
	for _, s := range sources {
		p := projection{source: s, families: families, options: o, into: sorter, result: res}
		if err := s.Items(ctx, p.add); err != nil {
			return nil, fmt.Errorf("project items: %w", err)
		}
	}
	wanted, err := sorter.sorted()
	if err != nil {
		return nil, fmt.Errorf("sort projection: %w", err)
	}
	c := comparison{options: o, families: families, wanted: wanted, result: res}
	if err := c.advance(); err != nil {
		return nil, fmt.Errorf("read projection: %w", err)
	}
	if err := rows(ctx, c.row); err != nil {
		return nil, fmt.Errorf("read target: %w", err)
	}
	if err := c.rest(); err != nil {
		return nil, fmt.Errorf("read projection: %w", err)
	}
	return res, nil
}

// projection turns items into the cells that Bigtable should hold.
type projection struct {
	source   Source
	families []transform.Family
	options  Options
	into     *sorter
	result   *Result
	key      []byte
}

func (p *projection) add(img change.Image) error {
	p.result.Items++
	rows, err := p.source.Program.Project(img)
	var refusal *transform.Refusal
	if errors.As(err, &refusal) {
		p.result.Refused++
		return nil
	}
	if err != nil {
		return err
	}
	if p.key, err = p.source.Schema.Canonical(p.key[:0], img); err != nil {
		return err
	}
	hash := change.HashKey(p.key)
	for i := range rows {
		for j := range rows[i].Cells {
			if err := p.into.add(p.cell(rows[i].Key, &rows[i].Cells[j], hash)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *projection) cell(row []byte, c *transform.Cell, hash uint64) cell {
	out := cell{row: row, qualifier: c.Qualifier, time: unmapped, keyHash: hash, asItCame: c.AsItCame}
	for i := range p.families {
		if p.families[i].Name == c.Family {
			out.family = i
		}
	}
	if c.Mapped {
		out.time = c.Time
	}
	out.value = keep(c.Value, p.options.ShowValues || p.families[out.family].Aggregate != "")
	return out
}
