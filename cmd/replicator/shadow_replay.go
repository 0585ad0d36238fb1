package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/shadow/replay"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/verify"
)

// replayTables returns the tables whose reads are replayed, with both sides of each. A replicator must
// run: what differs is settled behind a proof that Bigtable has every change.
func (in *shadowInput) replayTables(ctx context.Context, a *app) (all []replay.Table, err error) {
	timed := *in.cfg // whose clients read as the application will
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
			x := replay.Table{Name: t.Source, Number: i, Schema: t.Info.Schema, Partial: map[string]bool{}, Side: side}
			for name, index := range t.Info.Indexes {
				x.Partial[name] = index.Partial
			}
			all = append(all, x)
		}
	}
	return all, nil
}

// sideOf returns a target with its tables as reads are replayed. timed reads as the application will.
func sideOf(p *pair.Pair, timed *bigtable.Client) *replay.Side {
	settler, looking := p.Settler(), p.Settler()
	p.KeepLead(&settler)
	target := verify.NewTarget(p.Sink(), p.Target, p.Programs()...)
	return &replay.Side{
		Settler: &settler, Looking: &looking, Rows: target.Range,
		Read: func(ctx context.Context, start, end string, families []string) error {
			var views []bigtable.View
			for _, v := range target.Views {
				if len(families) == 0 {
					views = append(views, bigtable.View{Family: v.Family, Versions: 1})
				}
			}
			for _, f := range families {
				views = append(views, bigtable.View{Family: f, Versions: 1})
			}
			return timed.Rows(ctx, p.Target, start, end, views, func(*bigtable.Row) error { return nil })
		},
	}
}

// mismatchFile appends mismatches to a file as lines of JSON; without a name they are only counted.
// They have keys, so the file is the user's alone.
func mismatchFile(name string) (write func(replay.Mismatch) error, closeFile func() error, err error) {
	if name == "" {
		return func(replay.Mismatch) error { return nil }, func() error { return nil }, nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open file of mismatches: %w", err)
	}
	lines := json.NewEncoder(f)
	return func(m replay.Mismatch) error {
		if err := lines.Encode(m); err != nil {
			return fmt.Errorf("write mismatch: %w", err)
		}
		return nil
	}, f.Close, nil
}
