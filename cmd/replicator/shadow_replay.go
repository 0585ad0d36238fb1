package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/failure"
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

// mismatchFile appends mismatches to a file as lines of JSON; without a name they are only counted.
// They have keys, so the file is the user's alone.
func mismatchFile(name string) (write func(replay.Mismatch) error, closeFile func() error, err error) {
	if name == "" {
		return func(replay.Mismatch) error { return nil }, func() error { return nil }, nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		err = ownAlone(f)
	}
	if err != nil {
		return nil, nil, failure.With(failure.Usage, "a file that can be written with --mismatches",
			fmt.Errorf("open file of mismatches: %w", err))
	}
	return (&mismatchLines{to: f}).write, f.Close, nil
}

// ownAlone takes the permissions of others from a file that was there before. It closes the file if
// it cannot.
func ownAlone(f *os.File) error {
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		err = f.Chmod(0o600)
	}
	if err != nil {
		_ = f.Close()
	}
	return err
}

// mismatchLines writes each mismatch as one line, with one call: two engines may append to a file.
type mismatchLines struct {
	to   io.Writer
	torn bool // the last line has no end
}

func (l *mismatchLines) write(m replay.Mismatch) error {
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write mismatch: %w", err)
	}
	line = append(line, '\n')
	if l.torn {
		line = append([]byte("\n"), line...)
	}
	n, err := l.to.Write(line)
	if n > 0 {
		l.torn = err != nil
	}
	if err != nil {
		return fmt.Errorf("write mismatch: %w", err)
	}
	return nil
}
