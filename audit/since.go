package audit

import (
	"bufio"
	"context"
	"errors"
	"io"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/report"
)

const settledAtOnce = 1000

// Since compares the items that have changed since the last full comparison began, and those that
// were not equal then; or, where since is not zero, those that have changed since that time. When
// everything is equal to the last full comparison, the next one begins where this one did.
func Since(
	ctx context.Context, cfg *config.Config, s *pair.Pair, o Options, since time.Time,
) (all []report.Table, err error) {
	if err := s.Ready(ctx); err != nil {
		return nil, err
	}
	if err := awaitLog(ctx, s); err != nil {
		return nil, err
	}
	r := newRun(cfg, s, o)
	defer func() { err = NoRoom(r.base, err) }()
	lock, err := LockScratch(filepath.Join(r.base, "all"))
	if err != nil {
		return nil, err
	}
	defer lock.Close() // which unlocks it
	var c *Changed
	if since.IsZero() {
		c, err = SinceLast(ctx, s, cfg.Pipeline, r.base)
	} else {
		c, err = SinceTime(ctx, s, r.base, change.MillisOf(since))
	}
	defer func() { _ = c.Close() }() // at worst, the next comparison removes the keys
	r.setTimes(c, since)
	if useless := (*Stale)(nil); errors.As(err, &useless) {
		for i := range r.result {
			r.result[i].Why = useless.Why
		}
		r.finish()
		return r.result, nil
	}
	if err != nil {
		return nil, err
	}
	if err := r.settleChanged(ctx, c); err != nil {
		return nil, err
	}
	if err := r.prove(ctx); err != nil {
		return nil, err
	}
	if c.Result != nil && r.all() && report.Worst(r.result) == report.Equal {
		return r.result, c.Advance(r.settled)
	}
	return r.result, nil
}

// awaitLog waits until the logs have what was written before the call: only what they name is
// compared.
func awaitLog(ctx context.Context, s *pair.Pair) error {
	now, err := s.Ask(ctx)
	if err != nil {
		return err
	}
	return s.Prove(ctx, now+change.Millis(time.Second.Milliseconds())) // a Date is rounded down to a second
}

// setTimes notes since when changes are compared.
func (r *run) setTimes(c *Changed, since time.Time) {
	for i := range r.result {
		t := &r.result[i]
		t.Began, t.Since, t.Lagging = c.Began, since.UTC(), false
		if c.Result == nil {
			continue
		}
		t.Full, t.Since = c.Result.Began, c.Result.Began
		if c.Result.Since != nil {
			t.Since = c.Result.Since.Began
		}
	}
}

// settleChanged settles the items that have changed, and counts what it finds.
func (r *run) settleChanged(ctx context.Context, c *Changed) error {
	out := io.Discard
	if r.o.Lines != nil {
		out = r.o.Lines
	}
	lines := bufio.NewWriter(out)
	check := r.checker(lines)
	err := check.Each(ctx, func(f func([]verify.Candidate) error) error { return c.Items(settledAtOnce, f) })
	if err != nil {
		return err
	}
	if err := check.Cells(ctx, r.pair.Now(), c.EachCell); err != nil {
		return err
	}
	r.finish()
	r.say(english.Plural(int(r.settled), "item has changed, or was", "items have changed, or were") + " not equal before.")
	return lines.Flush()
}
