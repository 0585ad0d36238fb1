package audit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/dustin/go-humanize"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/host"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// Options of a comparison.
type Options struct {
	Table    string       // only this source table; "": all of the target
	Strong   bool         // read the tables with strong consistency
	Along    bool         // read the logs along, and strongly: for a cutover
	Workers  *Workers     // compare on a distributed engine; nil: in this process
	Scratch  string       // directory for sorted runs; "": the configuration's
	Lines    io.Writer    // receives the differences as JSON lines; nil: they are not written
	Values   bool         // the lines hold values
	Progress func(Step)   // may be nil
	Say      func(string) // may be nil
}

// Step is how far a comparison is.
type Step struct {
	Doing    string // "comparing", "ranges" (of workers) or "settling"
	Items    int64  // read, or settled; with ranges: compared
	Estimate int64  // of all items; 0: not known
}

// Full compares all items with all rows of the target. Finished parts of one that was interrupted
// are used again. The result is kept when all tables of the target are compared.
func Full(ctx context.Context, cfg *config.Config, s *pair.Pair, o Options) (all []report.Table, err error) {
	if err := s.Ready(ctx); err != nil {
		return nil, err
	}
	r := newRun(cfg, s, o)
	defer func() { err = NoRoom(r.base, err) }()
	dir := filepath.Join(r.base, r.folder())
	lock, err := LockScratch(r.lockFolder())
	if err != nil {
		return nil, err
	}
	defer lock.Close() // which unlocks it
	if err := r.doubt(ctx); err != nil {
		return nil, err
	}
	if err := r.record(ctx, cfg, dir); err != nil {
		return nil, err
	}
	defer r.stopRecording()
	r.tables = s.Compared(r.o.Strong, r.wanted...)
	if o.Workers == nil {
		r.say(beginText(s.Target, dir, verify.ScratchFor(r.tables)))
	}
	if err := r.along(ctx, func(ctx context.Context) error { return r.compare(ctx, dir) }); err != nil {
		return nil, err
	}
	if err := r.prove(ctx); err != nil {
		return nil, err
	}
	if err := r.keep(); err != nil {
		return r.result, err
	}
	return r.result, r.confirm(ctx)
}

// beginText says what is compared, and how much room the runs of the sort take: DynamoDB counts
// items and bytes of a table about every six hours, so a table that grew since needs more.
//
// Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TableDescription.html
func beginText(target, dir string, bytes int64) string {
	if bytes <= 0 {
		return fmt.Sprintf("%s is compared, in %s. How much room that needs is not known: DynamoDB counts items every six "+
			"hours, and has counted none.", target, dir)
	}
	return fmt.Sprintf("%s is compared; that needs about %s in %s, by DynamoDB's counts of up to six hours ago.", target,
		humanize.IBytes(uint64(bytes)), dir)
}

// compare compares all of both sides, and settles what may differ.
func (r *run) compare(ctx context.Context, dir string) error {
	o := verify.FullOptions{
		Dir: dir, Identity: r.identity(), Now: r.pair.Now, Lead: r.pair.Lead(),
		Progress: func(c verify.Counts) { r.step("comparing", c.Items, r.estimate()) },
	}
	find := verify.Full
	if r.o.Workers != nil {
		find = r.byWorkers
	}
	found, err := find(ctx, o, r.tables, r.pair.Rows())
	if err != nil {
		return ClearScratch(dir, fmt.Errorf("compare: %w", err))
	}
	r.candidates = found.Counts.Candidates
	if err := r.settle(ctx, found); err != nil {
		_ = found.Close() // of files that the next comparison makes again
		return ClearScratch(dir, err)
	}
	if r.o.Workers != nil {
		_ = forgetJob(dir) // of another record than the next comparison's
	}
	return found.Remove()
}

const (
	maxCells = 100  // listed of an item that differs
	maxValue = 1024 // bytes of each value
)

// settle decides about what may differ, counts it, and hands the differences on.
func (r *run) settle(ctx context.Context, found *verify.Findings) error {
	for i, at := range r.index {
		if at < 0 {
			continue
		}
		c, t := &found.ByTable[i], &r.result[at]
		t.Items, t.Rows, t.Cells, t.Began = c.Items, c.Rows, c.Cells, c.Began.Time().UTC()
	}
	out := io.Discard
	if r.o.Lines != nil {
		out = r.o.Lines
	}
	lines := bufio.NewWriter(out)
	c := r.checker(lines)
	if err := c.Findings(ctx, found); err != nil {
		return err
	}
	r.finish()
	return lines.Flush()
}

// checker returns what settles items, counts them, and writes down those that are not equal.
func (r *run) checker(lines io.Writer) *verify.Checker {
	c := &verify.Checker{Settler: Settler(r.pair, r.o.Values), Verdict: func(v *verify.Verdict) error {
		r.settled++
		r.step("settling", r.settled, r.candidates)
		return r.add(lines, v)
	}, Cell: func(o *verify.Open) error {
		if r.recorder != nil {
			if err := r.recorder.Cell(o); err != nil {
				return err
			}
		}
		for i := range r.result { // no item is known to own it
			r.result[i].AddCell(o)
		}
		return report.OfCell(r.pair.Target, o).Write(lines)
	}}
	r.pair.KeepLead(&c.Settler)
	return c
}

// prove notes what heartbeats prove by now.
func (r *run) prove(ctx context.Context) error {
	proven, err := r.pair.Proven(ctx)
	if err != nil {
		return err
	}
	for i, at := range r.index {
		if at >= 0 && proven[i] {
			r.result[at].Proof = report.Proven
		}
	}
	return nil
}

func (r *run) finish() {
	for i := range r.result {
		r.result[i].Ended = r.pair.Now().Time().UTC()
		r.result[i].Finish()
	}
}

// add counts a settled item, and writes it down unless it is equal.
func (r *run) add(lines io.Writer, v *verify.Verdict) error {
	at := r.index[v.Table]
	if at < 0 {
		return nil
	}
	r.result[at].Add(v)
	if !r.result[at].Since.IsZero() && (!v.Absent || v.Status == verify.Equal || v.Status == verify.Kept) {
		r.result[at].Items++
	}
	if r.recorder != nil {
		if err := r.recorder.Item(v); err != nil {
			return err
		}
	}
	if slices.Contains([]verify.Status{verify.Equal, verify.EqualByLog, verify.Kept}, v.Status) {
		return nil
	}
	t := &r.result[at]
	return report.OfItem(t.Source, t.Target, v).Write(lines)
}

// LockScratch makes a directory for what is sorted, and keeps other comparisons out of it until the
// file is closed.
func LockScratch(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, failure.With(failure.Unready, "set `scratch:` or --scratch",
			fmt.Errorf("make scratch directory: %w", err))
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, failure.With(failure.Unready, "set `scratch:` or --scratch", fmt.Errorf("open lock: %w", err))
	}
	locked, err := host.Lock(f, host.Exclusive)
	if err != nil {
		return nil,
			errors.Join(failure.With(failure.Unready,
				"set `scratch:` or --scratch to a directory on a file system that has locks",
				fmt.Errorf("lock scratch directory: %w", err)),
				f.Close())
	}
	if !locked {
		return nil,
			errors.Join(failure.With(failure.Unready, "wait for it, or give this one its own --scratch",
				fmt.Errorf("another verify works in %s", dir)),
				f.Close())
	}
	return f, nil
}
