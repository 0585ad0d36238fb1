package shadow

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/shadow/pattern"
	"github.com/tailrace-cdc/replicator/shadow/replay"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/verify"
)

// Input is what front and engine take from a configuration. Its fields but Reader are given.
type Input struct {
	Config  *config.Config
	Clients *clients.Clients
	Source  *source.Source
	Tables  *catalog.Catalog
	Logger  func(zapcore.Level) *zap.Logger
	Reader  *pattern.Reader

	timed *clients.Clients // of reads whose time is shown; nil: none are made
}

// Describe sets Reader, from the tables and their mappings.
func (in *Input) Describe() {
	var known []pattern.Table
	for _, t := range in.Tables.Tables {
		x := pattern.Table{Name: t.Info.Name, Schema: t.Info.Schema, Program: t.Program}
		for name, key := range t.Info.Indexes {
			x.Indexes = append(x.Indexes, pattern.Index{Name: name, Partition: key.Partition, Sort: key.Sort})
		}
		known = append(known, x)
	}
	in.Reader = pattern.NewReader(known...)
}

// Close closes the clients.
func (in *Input) Close() {
	_ = in.Clients.Close()
	if in.timed != nil {
		_ = in.timed.Close()
	}
}

// Has returns an error if a table is not one of the configuration.
func (in *Input) Has(tables []string) error {
	for _, name := range tables {
		if !slices.ContainsFunc(in.Tables.Tables, func(t *catalog.Table) bool { return t.Source == name }) {
			return failure.Usagef("name a table of the configuration", "read --table: no table %s is replicated", name)
		}
	}
	return nil
}

// ReplayTables returns the tables of the reads that are replayed, with both sides of each. A
// replicator must run: what differs is settled behind a proof that Bigtable has every change.
func (in *Input) ReplayTables(ctx context.Context) (all []replay.Table, err error) {
	timed := *in.Config // its clients read as the application will
	timed.Bigtable.AppProfile = cmp.Or(in.Config.Shadow.AppProfile, in.Config.Bigtable.AppProfile)
	timed.Bigtable.CopyProfile = timed.Bigtable.AppProfile // with which rows are read
	in.timed = clients.ForCommand(&timed, in.Logger)
	sink, err := in.timed.Bigtable(ctx)
	if err != nil {
		return nil, err
	}
	for _, table := range pair.Targets(in.Tables) {
		p, err := pair.Open(ctx, in.Config, in.Clients, in.Tables, table)
		if err != nil {
			return nil, err
		}
		if err := p.Ready(ctx); err != nil {
			return nil, err
		}
		p.LimitReads(in.Config.Shadow.SettleUnits)
		side := sideOf(p, sink)
		for i, t := range p.Tables {
			x := replay.Table{Name: t.Source, Number: i, Schema: t.Info.Schema, Whole: map[string]bool{}, Side: side}
			for name, index := range t.Info.Indexes {
				x.Whole[name] = !index.Partial
			}
			all = append(all, x)
		}
	}
	return all, nil
}

// errEnough ends a read at its limit.
var errEnough = errors.New("enough rows")

// sideOf returns a target with its tables as reads are replayed. timed reads as the application
// will.
func sideOf(p *pair.Pair, timed *bigtable.Client) *replay.Side {
	settler, looking := p.Settler(), p.Settler()
	p.KeepLead(&settler)
	target := verify.NewTarget(p.Sink(), p.Target, p.Programs()...)
	return &replay.Side{
		Settler: &settler, Looking: &looking, Rows: target.Range,
		Read: func(ctx context.Context, start, end string, families []string, limit int) error {
			var views []bigtable.View
			for _, v := range target.Views {
				if len(families) == 0 {
					views = append(views, bigtable.View{Family: v.Family, Versions: 1})
				}
			}
			for _, f := range families {
				views = append(views, bigtable.View{Family: f, Versions: 1})
			}
			err := timed.Rows(ctx, p.Target, start, end, views, func(*bigtable.Row) error {
				if limit--; limit < 0 {
					return errEnough
				}
				return nil
			})
			if errors.Is(err, errEnough) {
				return nil
			}
			return err
		},
	}
}
