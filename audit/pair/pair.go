package pair

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
	"github.com/tailrace-cdc/replicator/pipeline/settings"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify"
)

// Pair are both sides of one target: all source tables that write it, because they may share rows,
// and the target. Its methods may be called by several goroutines.
type Pair struct {
	Target string
	Tables []*catalog.Table // in the order of the configuration, and of Settler.Tables

	cfg     *config.Config
	source  *source.Source
	sink    *bigtable.Client
	budgets []*source.Budget // by table
	lead    change.Millis
	retired []string
	lives   sync.Map // *control.SilenceWatch by table

	mu      sync.Mutex // covers clients
	clients *clients.Clients
}

// Open opens both sides of the target of a source table. It changes nothing, and needs no running
// daemon: Ready reports whether one runs.
func Open(
	ctx context.Context, cfg *config.Config, clients *clients.Clients, tables *catalog.Catalog, table string,
) (*Pair, error) {
	of := tables.Table(table)
	if of == nil {
		_, err := catalog.Select(cfg, table)
		return nil, err
	}
	p := &Pair{Target: of.Target, cfg: cfg, clients: clients}
	var err error
	if p.source, err = clients.Source(ctx); err != nil {
		return nil, err
	}
	if p.sink, err = clients.Bigtable(ctx); err != nil {
		return nil, err
	}
	if err = checkCopyProfile(ctx, p.sink); err != nil {
		return nil, err
	}
	retired, err := p.sink.Retired(ctx, p.Target)
	if err != nil {
		return nil, bigtable.Explain(err)
	}
	p.retired = slices.Sorted(maps.Keys(retired))
	for _, t := range tables.Tables {
		if t.Target != of.Target {
			continue
		}
		if as, ok := retired[t.Source]; ok {
			err := fmt.Errorf("table %s: %w at %s (target %s)", t.Source, ErrRetired, as.At.UTC().Format(time.RFC3339), t.Target)
			return nil, failure.With(failure.Unready,
				"its rows may belong to the application: take the table out of the configuration", err)
		}
		units, err := t.Info.ReadUnitsFor(t.Backfill.ReadUnits.Absolute, t.Backfill.ReadUnits.Percent)
		if err != nil {
			return nil, failure.Usagef("set read_units to capacity units a second", "read budget: %w", err)
		}
		p.Tables, p.budgets = append(p.Tables, t), append(p.budgets, source.NewBudget(units))
		if err := p.readRow(ctx, t); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// checkCopyProfile returns an error unless comparisons read from the cluster that the stream writes
// to: rows of another one are older.
func checkCopyProfile(ctx context.Context, sink *bigtable.Client) error {
	found, err := settings.ReadCopyProfile(ctx, sink)
	if err != nil {
		return bigtable.Explain(fmt.Errorf("read the app profile of comparisons: %w", err))
	}
	for _, p := range found.Broken() {
		return failure.With(failure.Unready, "`"+p.Mend+"`", errors.New(p.State()))
	}
	return nil
}

// Retired returns the source tables that were replicated into the target before: cells that no item
// of Tables can have may be left from them, and are not compared.
func (p *Pair) Retired() []string { return p.retired }

// Targets returns the first source table of each target, in the order of the configuration.
func Targets(tables *catalog.Catalog) (sources []string) {
	seen := map[string]bool{}
	for _, t := range tables.Tables {
		if !seen[t.Target] {
			seen[t.Target] = true
			sources = append(sources, t.Source)
		}
	}
	return sources
}

// ErrNeverReplicated means that no replicator has started with the table yet.
var ErrNeverReplicated = errors.New("it was never replicated")

// ErrRetired means that `table retire` has ended the replication of a table that is still
// configured.
var ErrRetired = errors.New("its replication was retired")

// readRow reads a table's row in Bigtable: how far versions may run ahead of the clock. A table
// that was never started has none.
func (p *Pair) readRow(ctx context.Context, t *catalog.Table) error {
	row, err := p.sink.LoadState(ctx, p.cfg.Pipeline, t.Source)
	if errors.Is(err, bigtable.ErrNoState) {
		return failure.With(failure.Unready, "`replicator run` begins with it",
			fmt.Errorf("table %s: %w", t.Source, ErrNeverReplicated))
	}
	if err != nil {
		return bigtable.Explain(fmt.Errorf("load state of %s: %w", t.Source, err))
	}
	p.lead = max(p.lead, change.Millis(row.Lead.Milliseconds()))
	if want := t.Identity(p.cfg.Pipeline, p.sink).MappingHash; row.Identity.MappingHash != want {
		return failure.With(failure.Unready,
			"`replicator mapping diff` shows the difference; then `replicator mapping accept`",
			fmt.Errorf("the rows of %s were written with another mapping than the configured one",
				t.Source))
	}
	return nil
}

// KeepLead has a settler learn behind each proof how far versions may be ahead by then. The daemon
// may have raised that since Open, and what it writes then has no guard in the future.
func (p *Pair) KeepLead(settler *verify.Settler) {
	prove := settler.Prove
	settler.Prove = func(ctx context.Context, through change.Millis) error {
		if err := prove(ctx, through); err != nil {
			return err
		}
		for _, t := range p.Tables {
			row, err := p.sink.LoadState(ctx, p.cfg.Pipeline, t.Source)
			if err != nil {
				return bigtable.Explain(fmt.Errorf("load state of %s: %w", t.Source, err))
			}
			settler.Lead = max(settler.Lead, change.Millis(row.Lead.Milliseconds()))
		}
		return nil
	}
}

// Lead returns how far versions may be ahead of Now.
func (p *Pair) Lead() change.Millis { return p.lead }

// Source returns the client of DynamoDB.
func (p *Pair) Source() *source.Source { return p.source }

// Sink returns the client of Bigtable.
func (p *Pair) Sink() *bigtable.Client { return p.sink }

// Programs returns the compiled mappings of all tables.
func (p *Pair) Programs() (all []*transform.Program) {
	for _, t := range p.Tables {
		all = append(all, t.Program)
	}
	return all
}

// Rows returns the target as it is compared.
func (p *Pair) Rows() verify.Target { return verify.NewTarget(p.sink, p.Target, p.Programs()...) }

// Compared returns the tables as a full comparison reads them. Of those that are not named only
// what they own in the target is left out; without names all are compared. Strong reads cost twice
// what eventually consistent ones do.
func (p *Pair) Compared(strong bool, names ...string) []verify.Table {
	var all []verify.Table
	for i, t := range p.Tables {
		one := verify.Table{Program: t.Program, Outlives: t.Program.Outlives, Items: t.Info.Items, Bytes: t.Info.Bytes}
		if len(names) == 0 || slices.Contains(names, t.Source) {
			one.Parts = resync.Segments(t.Info.Bytes)
			one.Page = func(ctx context.Context, part int, after string) (*source.ItemPage, error) {
				return p.Page(ctx, i, source.ScanRequest{
					Table: t.Source, Segment: part, Total: one.Parts, After: after, Eventual: !strong,
				})
			}
		}
		all = append(all, one)
	}
	return all
}

// Settler returns the Settler over all tables. Its Page functions read strongly.
func (p *Pair) Settler() verify.Settler {
	return verify.Settler{
		Tables: p.Compared(true), Target: p.Rows(),
		ReadItems: p.ReadItems, Prove: p.Prove, Logged: p.Logged, Now: p.Now, Lead: p.lead,
	}
}
