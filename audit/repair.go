package audit

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/source/export"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// RepairOptions say what is repaired: the differences of From, or the items of Table that Keys or
// Export names.
type RepairOptions struct {
	From          string // file of differences
	Keys          string // file of keys, - for Repairer.Stdin
	Export        string // URL of an incremental export
	Table         string
	DryRun        bool
	NoWait        bool // ask for the items, and do not wait for the owner
	Unchecked     bool // wait for the owner, and do not compare the items afterwards
	DeleteForeign bool
}

// Repairer repairs differences.
type Repairer struct {
	RepairOptions
	Catalog   *catalog.Catalog
	Stdin     io.Reader
	OpenPair  func(ctx context.Context, table string) (*pair.Pair, error)
	Requester func(table string) *control.Requester
	// OpenExport opens the export of the options.
	OpenExport func(ctx context.Context, t *catalog.Table) (*export.Export, error)

	stdin   []byte         // the keys that stdin named
	export  *export.Export // nil until it is opened
	result  *Repaired
	counted bool
	tables  map[string]*tableRepair     // by source table
	foreign map[string]*foreignDeletion // by target
}

// hintDifferences is for a file of differences that names other tables or targets.
const hintDifferences = "take the file that `replicator verify --differences FILE` writes with this configuration"

// repairedAtOnce is how many items are asked for, and settled afterwards, at once.
const repairedAtOnce = 1000

// Run reads everything that is asked for, so that nothing is changed where a line is wrong, and
// then repairs it. An export is not read for that: DynamoDB has written it.
func (r *Repairer) Run(ctx context.Context) (*Repaired, error) {
	r.result = &Repaired{DryRun: r.DryRun, Tables: []*RepairedTable{}, Foreign: []*RepairedForeign{}}
	r.tables, r.foreign = map[string]*tableRepair{}, map[string]*foreignDeletion{}
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	if r.DryRun {
		return r.result, nil
	}
	if err := r.repairItems(ctx); err != nil {
		return nil, err
	}
	for _, f := range r.result.Foreign {
		if err := r.foreign[f.Target].run(ctx); err != nil {
			return nil, err
		}
	}
	return r.result, nil
}

// prepare counts what is asked for, and refuses what cannot be repaired.
func (r *Repairer) prepare(ctx context.Context) error {
	if r.Export != "" && !r.DryRun {
		t, err := r.table(r.Table)
		if err == nil {
			r.repairOf(t)
		}
		return err
	}
	err := r.each(ctx, r.count)
	r.counted = err == nil
	return err
}

// repairOf returns the repair of a table, which begins with its first item.
func (r *Repairer) repairOf(t *catalog.Table) *tableRepair {
	w := r.tables[t.Source]
	if w == nil {
		w = &tableRepair{Repairer: r, table: t,
			result: &RepairedTable{Source: t.Source, Target: t.Target, Kinds: map[string]int64{}}}
		r.tables[t.Source], r.result.Tables = w, append(r.result.Tables, w.result)
	}
	return w
}

// repairItems has the items of all tables repaired. Differences name the rows of their items, and
// a file of keys is short: their items are asked for in batches, and a batch is compared before the
// next one. An export may name millions of items without their rows: the owner gets all of them at
// once, so that it reads the target once to find the rows.
func (r *Repairer) repairItems(ctx context.Context) error {
	if r.NoWait || r.Unchecked || r.Export != "" {
		for _, t := range r.result.Tables {
			if err := r.tables[t.Source].askAll(ctx); err != nil {
				return err
			}
		}
	}
	if r.NoWait || r.Unchecked {
		return nil
	}
	if err := r.each(ctx, func(d *report.Difference) error { return r.repair(ctx, d) }); err != nil {
		return err
	}
	for _, t := range r.result.Tables {
		if err := r.tables[t.Source].flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// count counts a difference, and refuses one that is not of this configuration.
func (r *Repairer) count(d *report.Difference) error {
	if d.Key == nil {
		return r.countCell(d)
	}
	t, err := r.table(d.Table)
	if err != nil {
		return err
	}
	if t.Target != d.Target {
		return failure.Usagef(hintDifferences, "table %s has target %s here, and not %s", t.Source, t.Target, d.Target)
	}
	if _, err := control.ParseKey(d.Key, t.Info.Schema); err != nil {
		return fmt.Errorf("a key of %s: %w", t.Source, err)
	}
	w := r.repairOf(t)
	w.result.Items++
	w.result.Rows += int64(len(d.Rows))
	for _, k := range d.Kinds {
		w.result.Kinds[string(k)]++
	}
	return nil
}

// countCell counts a cell that belongs to no item. What may belong to one is left alone.
func (r *Repairer) countCell(d *report.Difference) error {
	if d.Status != string(verify.Foreign) {
		return nil
	}
	var owner *catalog.Table
	for _, t := range r.Catalog.Tables {
		if t.Target == d.Target && owner == nil {
			owner = t
		}
	}
	if owner == nil {
		return failure.Usagef(hintDifferences, "no table has target %q", d.Target)
	}
	x := r.foreign[d.Target]
	if x == nil {
		x = &foreignDeletion{Repairer: r, owner: owner.Source, known: map[string]bool{},
			result: &RepairedForeign{Target: d.Target}}
		r.foreign[d.Target], r.result.Foreign = x, append(r.result.Foreign, x.result)
	}
	x.add(request.Column{Row: d.Row, Family: d.Family, Qualifier: d.Qualifier})
	return nil
}

// repair repairs an item, together with others.
func (r *Repairer) repair(ctx context.Context, d *report.Difference) error {
	if d.Key == nil {
		return nil
	}
	w := r.tables[d.Table]
	if w == nil {
		return fmt.Errorf("%s has changed while it was read", cmp.Or(r.From, r.Keys, r.Export))
	}
	key, err := control.ParseKey(d.Key, w.table.Info.Schema)
	if err != nil {
		return err
	}
	x := w.outcomes[w.read] // the zero value where the items were not asked for yet
	w.read++
	x.key, x.rows, x.future = key, d.Rows, d.Future
	w.batch = append(w.batch, x)
	if len(w.batch) < repairedAtOnce {
		return nil
	}
	return w.flush(ctx)
}
