package resync

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// ForeignDeleter deletes cells of a target that belong to no item, at the request of a command.
// Only the owner of a table writes rows, so the command cannot do it.
type ForeignDeleter struct {
	*life.Life
	Client   *bigtable.Client
	Programs func() ([]*transform.Program, error) // of all tables of the target
	// MayDelete is asked before every deletion. It blocks until no other process can own the log
	// and no setting makes writes unsafe, or returns why nothing may be deleted.
	MayDelete func(ctx context.Context) error
}

// Codes of notes about columns that were not deleted.
const (
	CodeOwned   = "owned"          // an item may own it, or nothing shows to whom it belongs
	CodeOther   = "other_pipeline" // the row has a guard of another pipeline
	CodeYoung   = "hot"            // a cell is so new that a change of an item may still come below it
	CodeOutside = "outside"        // no mapping has its family
)

// Delete deletes the columns that the items name. Before that it waits until every change up to now
// is applied, and reads the rows with their guards: a column is deleted only where no guard of its
// row can own it, and where all its cells are older than a resync of an item may be. Only the cells
// that were read are deleted, so that what an item writes into the column meanwhile stays. What is
// gone already is fine.
func (x *ForeignDeleter) Delete(ctx context.Context, asked []request.Item) (*request.Outcome, error) {
	programs, err := x.Programs()
	if err != nil {
		return nil, fmt.Errorf("compile the tables of the target: %w", err)
	}
	began := x.Now()
	if err := x.Prove(ctx, began+answerMargin); err != nil {
		return nil, err
	}
	d := &foreignDeleting{ForeignDeleter: x, out: &request.Outcome{}, before: began - change.Millis(apply.ResyncMargin),
		columns: map[string][]foreignPlace{}}
	for i := range asked {
		for _, c := range asked[i].Columns {
			d.columns[string(c.Row)] = append(d.columns[string(c.Row)], foreignPlace{i, c})
		}
	}
	var tables []verify.Table
	target := verify.NewTarget(x.Client, x.Target, programs...)
	for i := range target.Views {
		target.Views[i].Versions = 0 // older versions would show when the newest is gone
	}
	for _, p := range programs {
		tables = append(tables, verify.Table{Program: p, Parts: 1, Outlives: p.Outlives})
	}
	d.guards, d.families = guarded.NewGuards(target, tables), guarded.FamiliesOf(tables)
	rows := slices.Sorted(maps.Keys(d.columns))
	err = target.Lookup(ctx, rows, func(row *verify.Row) error { return d.row(ctx, row.Clone()) })
	return d.out, err
}

// foreignPlace is a column, and the item of the request that names it.
type foreignPlace struct {
	item int
	request.Column
}

// foreignDeleting is one call of Delete.
type foreignDeleting struct {
	*ForeignDeleter
	out      *request.Outcome
	before   change.Millis
	columns  map[string][]foreignPlace // by row
	guards   *guarded.Guards
	families *guarded.Families
}

// row deletes what was asked for in one row.
func (d *foreignDeleting) row(ctx context.Context, row *verify.Row) error {
	now := d.Now()
	look := &foreignCells{}
	// No item is compared, so each cell that a guard may own is reported as something else than
	// foreign.
	c := guarded.NewComparison(d.guards, d.families, now, change.Version(now), look)
	if err := c.Compare(row.Key, nil, row); err != nil {
		return err
	}
	for _, p := range d.columns[string(row.Key)] {
		note, cells := d.judge(row, p, look)
		if note != nil {
			note.Item = p.item
			d.out.Refused++
			d.out.Notes = append(d.out.Notes, *note)
			continue
		}
		if len(cells) == 0 {
			continue
		}
		if err := d.MayDelete(ctx); err != nil {
			return err
		}
		if err := d.Client.DeleteCells(ctx, d.Target, row.Key, cells); err != nil {
			return err
		}
		d.out.Deleted++
	}
	return nil
}

// judge returns the cells of a column to delete, or why it is not deleted.
func (d *foreignDeleting) judge(row *verify.Row, p foreignPlace, look *foreignCells) (*request.Note, []bigtable.Cell) {
	if d.families.Index(p.Family) < 0 {
		return &request.Note{Code: CodeOutside, Reason: "no mapping has family " + p.Family}, nil
	}
	var cells []bigtable.Cell
	for i := range row.Cells {
		c := &row.Cells[i]
		if c.Family != p.Family || string(c.Qualifier) != string(p.Qualifier) {
			continue
		}
		at := slices.IndexFunc(look.found, func(f foreignCell) bool { return f.is(c) })
		switch {
		case at < 0:
			return &request.Note{Code: CodeOwned, Reason: "an item may own the cell now"}, nil
		case look.found[at].pipeline != "":
			return &request.Note{Code: CodeOther, Reason: "the row belongs to pipeline " + look.found[at].pipeline}, nil
		case change.MillisOf(c.Time) >= d.before:
			until := c.Time.Add(time.Duration(apply.ResyncMargin) * time.Millisecond)
			return &request.Note{Code: CodeYoung, Until: until.UTC(), Reason: "the cell is newer than what may be deleted"}, nil
		}
		cells = append(cells, *c)
	}
	return nil, cells
}

// foreignCells collects the foreign cells of a row.
type foreignCells struct{ found []foreignCell }

type foreignCell struct {
	family, qualifier, pipeline string
	at                          int64
}

func (f *foreignCell) is(c *bigtable.Cell) bool {
	return f.family == c.Family && f.qualifier == string(c.Qualifier) && f.at == c.Time.UnixMilli()
}

// Foreign implements guarded.Findings.
func (x *foreignCells) Foreign(_ []byte, c *guarded.Held, pipeline string) error {
	x.found = append(x.found, foreignCell{c.Family, string(c.Qualifier), pipeline, c.Time.UnixMilli()})
	return nil
}

// Candidate implements guarded.Findings.
func (x *foreignCells) Candidate(verify.Kind, guarded.Item, []byte) error { return nil }

// Kept implements guarded.Findings.
func (x *foreignCells) Kept([]byte, *guarded.Held) {}

// Unproven implements guarded.Findings.
func (x *foreignCells) Unproven(verify.Kind, []byte, *guarded.Held) error { return nil }
