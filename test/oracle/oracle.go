// Package oracle compares a target table with its source tables cell by cell, for tests. Options, Source
// and Compare are all of it:
//
//	result, err := oracle.Compare(ctx, oracle.Options{}, []oracle.Source{{Program: p, Schema: k, Items: scan}}, rows)
//
// It projects every item and compares every cell that results with the target's cells, both sorted in
// memory. It ignores guards and looks once, so nothing may write meanwhile. What decides in package
// verify, which looks while both sides change, is written a second time here: a fault would have to be
// made twice.
package oracle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

// Items calls f with every item of a source table, in any order. An error of f ends it and is
// returned. The image is valid until f returns.
type Items func(ctx context.Context, f func(change.Image) error) error

// Rows calls f with every row of the target in key order, with the cells that Views selects. An
// error of f ends it and is returned. (*bigtable.Client).Rows is one.
type Rows func(ctx context.Context, f func(*bigtable.Row) error) error

// Source is one source table with its mapping.
type Source struct {
	Program *transform.Program
	Schema  change.KeySchema
	Items   Items
}

// Options of a comparison. Zero values mean the defaults.
type Options struct {
	Limit      int       // differences in the result, which counts all; default 1000
	ShowValues bool      // differences have the values
	Now        time.Time // for families with a maximum age; zero: no cell has aged
	Outlive    []string  // families whose cells may outlive their items (archives, histories): extra cells are allowed
}

func (o Options) withDefaults() Options {
	if o.Limit == 0 {
		o.Limit = 1000
	}
	return o
}

// Kind is what differs.
type Kind string

// The kinds of a Difference. A missing or extra row counts once, whatever cells it has.
const (
	MissingRow  Kind = "missing_row"
	ExtraRow    Kind = "extra_row"
	MissingCell Kind = "missing_cell"
	ExtraCell   Kind = "extra_cell"
	Value       Kind = "value"
)

// Difference is one row or cell in which Bigtable differs from the source's projection.
type Difference struct {
	Kind      Kind          `json:"kind"`
	Row       string        `json:"row"`
	Family    string        `json:"family,omitempty"`
	Qualifier string        `json:"qualifier,omitempty"`
	Time      change.Millis `json:"ts,omitempty"`       // where the mapping sets the cell's time
	KeyHash   uint64        `json:"key_hash,omitempty"` // of an item with this row; 0 where only Bigtable has it
	Want      []byte        `json:"want,omitempty"`     // with Options.ShowValues
	Have      []byte        `json:"have,omitempty"`
}

// Result counts what was compared.
type Result struct {
	Items       int64        `json:"items"`    // in the source
	Refused     int64        `json:"refused"`  // items that the mapping refuses, so that their rows are unknown
	Rows        int64        `json:"rows"`     // that the source's items should have
	Cells       int64        `json:"cells"`    // compared with what they should be
	Unproven    int64        `json:"unproven"` // cells that may have aged away
	Count       int64        `json:"differences"`
	MissingRows int64        `json:"missing_rows"`
	ExtraRows   int64        `json:"extra_rows"`
	Differences []Difference `json:"list"` // the first Options.Limit
}

// Equal reports whether everything was compared and nothing differs.
func (r *Result) Equal() bool { return r.Count == 0 && r.Refused == 0 && r.Unproven == 0 }

// Compare reads all sources of one target and then the target, and returns their differences.
func Compare(ctx context.Context, o Options, sources []Source, rows Rows) (*Result, error) {
	o = o.withDefaults()
	programs := make([]*transform.Program, len(sources))
	for i, s := range sources {
		programs[i] = s.Program
	}
	families := familiesOf(programs)
	res := &Result{}
	var wanted []cell
	for _, s := range sources {
		p := projection{source: s, families: families, options: o, result: res}
		if err := s.Items(ctx, p.addItem); err != nil {
			return nil, fmt.Errorf("project items: %w", err)
		}
		wanted = append(wanted, p.cells...)
	}
	slices.SortFunc(wanted, func(a, b cell) int { return order(&a, &b) })
	c := comparison{options: o, families: families, wanted: wanted, result: res}
	if err := c.nextWantedRow(); err != nil {
		return nil, fmt.Errorf("read projection: %w", err)
	}
	if err := rows(ctx, c.compareRow); err != nil {
		return nil, fmt.Errorf("read target: %w", err)
	}
	if err := c.reportRest(); err != nil {
		return nil, fmt.Errorf("read projection: %w", err)
	}
	return res, nil
}

// familiesOf returns the families of all programs, each once.
func familiesOf(programs []*transform.Program) (all []transform.Family) {
	for _, p := range programs {
		for _, f := range p.Families() {
			if !slices.ContainsFunc(all, func(o transform.Family) bool { return o.Name == f.Name }) {
				all = append(all, f)
			}
		}
	}
	return all
}

// projection turns items into the cells that Bigtable should hold.
type projection struct {
	source   Source
	families []transform.Family
	options  Options
	cells    []cell
	result   *Result
	key      []byte
}

// addItem adds the cells of one item, or counts it as refused.
func (p *projection) addItem(img change.Image) error {
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
			p.cells = append(p.cells, p.cell(rows[i].Key, &rows[i].Cells[j], hash))
		}
	}
	return nil
}

// cell returns one cell of an item, which the caller may keep.
func (p *projection) cell(row []byte, c *transform.Cell, hash uint64) cell {
	out := cell{
		row: bytes.Clone(row), qualifier: bytes.Clone(c.Qualifier), time: unmapped, keyHash: hash, rawJSON: c.RawJSON,
	}
	for i := range p.families {
		if p.families[i].Name == c.Family {
			out.family = i
		}
	}
	if c.Mapped {
		out.time = c.Time
	}
	out.value = valueKey(bytes.Clone(c.Value), p.options.ShowValues || p.families[out.family].Aggregate != "")
	return out
}
