package audit

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// SampleOptions of a sample.
type SampleOptions struct {
	Options
	N    int    // items of each table
	Seed uint64 // what is drawn depends on it, and on the table
}

const sampledAtOnce = 1000

// Sample draws items of the source tables of a target, and settles each. It needs no scratch. Rows
// without an item and foreign cells are not looked for.
func Sample(ctx context.Context, s *pair.Pair, o SampleOptions) (all []report.Table, err error) {
	if err := s.Ready(ctx); err != nil {
		return nil, err
	}
	out := io.Discard
	if o.Lines != nil {
		out = o.Lines
	}
	lines := bufio.NewWriter(out)
	for i, t := range s.Tables {
		if o.Table != "" && o.Table != t.Source {
			continue
		}
		one := sample{o: o, pair: s, at: i, table: t, lines: lines,
			result: report.Table{Source: t.Source, Target: t.Target, Sample: int64(o.N), Seed: o.Seed,
				Proof: report.Assumed}}
		if err := one.run(ctx); err != nil {
			return nil, err
		}
		all = append(all, one.result)
	}
	if err := prove(ctx, s, all); err != nil {
		return nil, err
	}
	return all, lines.Flush()
}

// prove notes what heartbeats prove by now.
func prove(ctx context.Context, s *pair.Pair, all []report.Table) error {
	proven, err := s.Proven(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		if proven[s.Index(all[i].Source)] {
			all[i].Proof = report.Proven
		}
	}
	return nil
}

// sample is the sample of one table.
type sample struct {
	o      SampleOptions
	pair   *pair.Pair
	at     int // of the table in the pair
	table  *catalog.Table
	lines  io.Writer
	result report.Table
	done   int64
}

func (x *sample) run(ctx context.Context) error {
	x.result.CountGroups(Templates(x.table.Program), x.o.Values)
	x.result.Began = x.pair.Now().Time().UTC()
	keys, err := x.draw(ctx)
	if err != nil {
		return fmt.Errorf("draw items of %s: %w", x.table.Source, err)
	}
	candidates := make([]verify.Candidate, len(keys))
	for i, key := range keys {
		candidates[i] = verify.Candidate{Table: x.at, Key: key}
	}
	c := verify.Checker{Settler: Settler(x.pair, x.o.Values), Batch: sampledAtOnce,
		Verdict: func(v *verify.Verdict) error { return x.add(v, int64(len(keys))) }}
	x.pair.KeepLead(&c.Settler)
	if err := c.Items(ctx, candidates); err != nil {
		return err
	}
	x.result.Ended = x.pair.Now().Time().UTC()
	x.result.Finish()
	return nil
}

// draw draws the items.
func (x *sample) draw(ctx context.Context) ([]string, error) {
	info := &x.table.Info
	total := Segments(x.o.N, info.Items, info.Bytes)
	d := Drawer{
		Total: total, Schema: info.Schema, Rand: rand.New(rand.NewPCG(x.o.Seed, uint64(x.at))),
		Page: func(ctx context.Context, segment int) (*source.ItemPage, error) {
			return x.pair.Page(ctx, x.at,
				source.ScanRequest{Table: x.table.Source, Segment: segment, Total: total, Eventual: true})
		},
		Drawn: func(n int) { x.step("drawing", int64(n), int64(x.o.N)) },
	}
	return d.Draw(ctx, x.o.N)
}

// add counts a settled item, and writes it down unless it is equal. An item that was removed since
// it was drawn is none of the source any more.
func (x *sample) add(v *verify.Verdict, of int64) error {
	x.done++
	x.step("settling", x.done, of)
	x.result.Add(v)
	if !v.Absent {
		x.result.Items++
	}
	if slices.Contains([]verify.Status{verify.Equal, verify.EqualByLog, verify.Kept}, v.Status) {
		return nil
	}
	return report.OfItem(x.table.Source, x.table.Target, v).Write(x.lines)
}

func (x *sample) step(doing string, n, of int64) {
	if x.o.Progress != nil {
		x.o.Progress(Step{Doing: doing, Items: n, Estimate: of})
	}
}
