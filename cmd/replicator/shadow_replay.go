package main

import (
	"cmp"
	"context"
	"errors"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/shadow/replay"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/verify"
)

// replayTables returns the tables of the reads that are replayed, with both sides of each. A replicator must
// run: what differs is settled behind a proof that Bigtable has every change.
func (in *shadowInput) replayTables(ctx context.Context, a *app) (all []replay.Table, err error) {
	timed := *in.cfg // its clients read as the application will
	timed.Bigtable.AppProfile = cmp.Or(in.cfg.Shadow.AppProfile, in.cfg.Bigtable.AppProfile)
	timed.Bigtable.CopyProfile = timed.Bigtable.AppProfile // with which rows are read
	in.timed = a.Clients(&timed)
	sink, err := in.timed.Bigtable(ctx)
	if err != nil {
		return nil, err
	}
	for _, table := range pair.Targets(in.tables) {
		p, err := pair.Open(ctx, in.cfg, in.clients, in.tables, table)
		if err != nil {
			return nil, err
		}
		if err := p.Ready(ctx); err != nil {
			return nil, err
		}
		p.LimitReads(in.cfg.Shadow.SettleUnits)
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

// sideOf returns a target with its tables as reads are replayed. timed reads as the application will.
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
