package audit

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// RepairOptions say what is repaired: the differences of From, or the items of Table that Keys
// names.
type RepairOptions struct {
	From          string // file of differences
	Keys          string // file of keys, - for Repairer.Stdin
	Table         string
	DryRun        bool
	DeleteForeign bool
}

// Repairer repairs differences.
type Repairer struct {
	RepairOptions
	Catalog   *catalog.Catalog
	Stdin     io.Reader
	OpenPair  func(ctx context.Context, table string) (*pair.Pair, error)
	Requester func(table string) *control.Requester

	keys    []byte // of a file of keys
	result  *Repaired
	counted bool
	tables  map[string]*tableRepair     // by source table
	foreign map[string]*foreignDeletion // by target
}

// repairedAtOnce is how many items are asked for, and settled afterwards, at once.
const repairedAtOnce = 1000

// Run reads everything that is asked for, so that nothing is changed where a line is wrong, and
// then repairs it.
func (r *Repairer) Run(ctx context.Context) (*Repaired, error) {
	r.result = &Repaired{DryRun: r.DryRun, Tables: []*RepairedTable{}, Foreign: []*RepairedForeign{}}
	r.tables, r.foreign = map[string]*tableRepair{}, map[string]*foreignDeletion{}
	if err := r.each(r.count); err != nil {
		return nil, err
	}
	if r.counted = true; r.DryRun {
		return r.result, nil
	}
	if err := r.each(func(d *report.Difference) error { return r.repair(ctx, d) }); err != nil {
		return nil, err
	}
	for _, t := range r.result.Tables {
		if err := r.tables[t.Source].flush(ctx); err != nil {
			return nil, err
		}
	}
	for _, f := range r.result.Foreign {
		if err := r.foreign[f.Target].run(ctx); err != nil {
			return nil, err
		}
	}
	return r.result, nil
}

// each calls f with everything that is asked for.
func (r *Repairer) each(f func(*report.Difference) error) error {
	all, name := r.wanted, r.Keys
	if r.From != "" {
		file, err := os.Open(r.From)
		if err != nil {
			return failure.Usagef("`replicator verify --differences FILE` writes it", "%w", err)
		}
		defer file.Close()
		if info, err := file.Stat(); err == nil && !info.Mode().IsRegular() { // the second reading would find nothing
			return failure.Usagef("store the differences in a file first",
				"%s is no regular file, and it is read twice", r.From)
		}
		all, name = func() (iter.Seq2[*report.Difference, error], error) { return report.Differences(file), nil }, r.From
	}
	differences, err := all()
	if err != nil {
		return err
	}
	for d, err := range differences {
		if err == nil {
			err = f(d)
		}
		if err != nil && !failure.Known(err) && !r.counted {
			return failure.Usagef("nothing was changed; correct it and repeat the command", "%s: %w", name, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wanted yields the items of a file of keys.
func (r *Repairer) wanted() (iter.Seq2[*report.Difference, error], error) {
	t, err := r.table(r.Table)
	if err != nil {
		return nil, err
	}
	if r.keys == nil {
		in := r.Stdin
		if r.Keys != "-" {
			file, err := os.Open(r.Keys)
			if err != nil {
				return nil, failure.Usagef("--keys names a file with one key per line, or - for stdin", "%w", err)
			}
			defer file.Close()
			in = file
		}
		if r.keys, err = io.ReadAll(in); err != nil {
			return nil, fmt.Errorf("read keys: %w", err)
		}
	}
	return func(yield func(*report.Difference, error) bool) {
		for key, err := range control.ReadKeys(bytes.NewReader(r.keys), t.Info.Schema) {
			if !yield(&report.Difference{Table: t.Source, Target: t.Target, Key: bytes.Clone(key)}, err) {
				return
			}
		}
	}, nil
}

// table returns a configured table.
func (r *Repairer) table(name string) (*catalog.Table, error) {
	t := r.Catalog.Table(name)
	if t == nil {
		return nil, failure.Usagef("the differences must be those of this configuration", "no table %q is configured", name)
	}
	return t, nil
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
		return failure.Usagef("the differences must be those of this configuration",
			"table %s has target %s here, and not %s",
			t.Source, t.Target, d.Target)
	}
	if _, err := control.ParseKey(d.Key, t.Info.Schema); err != nil {
		return fmt.Errorf("a key of %s: %w", t.Source, err)
	}
	w := r.tables[t.Source]
	if w == nil {
		w = &tableRepair{Repairer: r, table: t,
			result: &RepairedTable{Source: t.Source, Target: t.Target, Kinds: map[string]int64{}}}
		r.tables[t.Source], r.result.Tables = w, append(r.result.Tables, w.result)
	}
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
		return failure.Usagef("the differences must be those of this configuration", "no table has target %q", d.Target)
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
		return fmt.Errorf("%s has changed while it was read", r.From)
	}
	key, err := control.ParseKey(d.Key, w.table.Info.Schema)
	if err != nil {
		return err
	}
	w.batch = append(w.batch, item{key: key, rows: d.Rows, future: d.Future})
	if len(w.batch) < repairedAtOnce {
		return nil
	}
	return w.flush(ctx)
}
