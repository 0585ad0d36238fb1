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
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify"
)

// Pair are both sides of one target: all source tables that write it, because they may share rows, and the target. Its
// methods may be called by several goroutines.
type Pair struct {
	Target string
	Tables []*catalog.Table // in the order of the configuration, and of Settler.Tables

	cfg     *config.Config
	source  *source.Source
	sink    *bigtable.Client
	budgets []*source.Budget // by table
	lead    change.Millis
	retired []string
	lives   sync.Map // *ask.Life by table

	mu      sync.Mutex // covers clients
	clients *clients.Clients
}

// Open opens both sides of the target of a source table. It changes nothing, and needs no running daemon: Ready says
// whether one runs.
func Open(
	ctx context.Context, cfg *config.Config, clients *clients.Clients, tables *catalog.Catalog, table string,
) (*Pair, error) {
	of := tables.Table(table)
	if of == nil {
		_, err := catalog.Select(cfg, table)
		return nil, err
	}
	s := &Pair{Target: of.Target, cfg: cfg, clients: clients}
	var err error
	if s.source, err = clients.Source(ctx); err != nil {
		return nil, err
	}
	if s.sink, err = clients.Bigtable(ctx); err != nil {
		return nil, err
	}
	retired, err := s.sink.Retired(ctx, s.Target)
	if err != nil {
		return nil, bigtable.Explain(err)
	}
	s.retired = slices.Sorted(maps.Keys(retired))
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
		s.Tables, s.budgets = append(s.Tables, t), append(s.budgets, source.NewBudget(units))
		if err := s.readRow(ctx, t); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Retired returns the source tables whose replication into the target has ended: cells that no item of Tables can have
// may be what they left, and are not compared.
func (s *Pair) Retired() []string { return s.retired }

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

// ErrNeverReplicated says that no replicator has started with the table yet.
var ErrNeverReplicated = errors.New("it was never replicated")

// ErrRetired says that `table retire` has ended the replication of a table that is still configured.
var ErrRetired = errors.New("its replication was retired")

// readRow reads a table's row in Bigtable: how far versions may run ahead of the clock. A table that was never started
// has none.
func (s *Pair) readRow(ctx context.Context, t *catalog.Table) error {
	row, err := s.sink.LoadState(ctx, s.cfg.Pipeline, t.Source)
	if errors.Is(err, bigtable.ErrNoState) {
		return failure.With(failure.Unready, "`replicator run` begins with it",
			fmt.Errorf("table %s: %w", t.Source, ErrNeverReplicated))
	}
	if err != nil {
		return bigtable.Explain(fmt.Errorf("load state of %s: %w", t.Source, err))
	}
	s.lead = max(s.lead, change.Millis(row.Lead.Milliseconds()))
	if want := t.Identity(s.cfg.Pipeline, s.sink).MappingHash; row.Identity.MappingHash != want {
		return failure.With(failure.Unready,
			"`replicator mapping diff` shows the difference; then `replicator mapping accept`",
			fmt.Errorf("the rows of %s were written with another mapping than the configured one",
				t.Source))
	}
	return nil
}

// KeepLead has a settler learn behind each proof how far versions may be ahead by then. The daemon may have raised that
// since Open, and what it writes then has no guard in the future.
func (s *Pair) KeepLead(settler *verify.Settler) {
	prove := settler.Prove
	settler.Prove = func(ctx context.Context, through change.Millis) error {
		if err := prove(ctx, through); err != nil {
			return err
		}
		for _, t := range s.Tables {
			row, err := s.sink.LoadState(ctx, s.cfg.Pipeline, t.Source)
			if err != nil {
				return bigtable.Explain(fmt.Errorf("load state of %s: %w", t.Source, err))
			}
			settler.Lead = max(settler.Lead, change.Millis(row.Lead.Milliseconds()))
		}
		return nil
	}
}

// Lead returns how far versions may be ahead of Now.
func (s *Pair) Lead() change.Millis { return s.lead }

// Sink returns the client of Bigtable.
func (s *Pair) Sink() *bigtable.Client { return s.sink }

// Programs returns the compiled mappings of all tables.
func (s *Pair) Programs() (all []*transform.Program) {
	for _, t := range s.Tables {
		all = append(all, t.Program)
	}
	return all
}

// Rows returns the target as it is compared.
func (s *Pair) Rows() verify.Target { return verify.NewTarget(s.sink, s.Target, s.Programs()...) }

// Compared returns the tables as a full comparison reads them. Of those that are not named only what they own in the
// target is left out; without names all are compared. Strong reads cost twice what eventually consistent ones do.
func (s *Pair) Compared(strong bool, names ...string) []verify.Table {
	var all []verify.Table
	for i, t := range s.Tables {
		one := verify.Table{Program: t.Program, Outlives: t.Program.Outlives, Items: t.Info.Items, Bytes: t.Info.Bytes}
		if len(names) == 0 || slices.Contains(names, t.Source) {
			one.Parts = resync.Segments(t.Info.Bytes)
			one.Page = func(ctx context.Context, part int, after string) (*source.ItemPage, error) {
				return s.Page(ctx, i, source.ScanRequest{
					Table: t.Source, Segment: part, Total: one.Parts, After: after, Eventual: !strong,
				})
			}
		}
		all = append(all, one)
	}
	return all
}

// Settler returns the Settler over all tables. Its Page functions read strongly.
func (s *Pair) Settler() verify.Settler {
	return verify.Settler{
		Tables: s.Compared(true), Target: s.Rows(),
		ReadItems: s.ReadItems, Prove: s.Prove, Logged: s.Logged, Now: s.Now, Lead: s.lead,
	}
}
