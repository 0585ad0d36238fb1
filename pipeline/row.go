package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue"
)

// A table that was read before need not wait for its row in Bigtable to be read on: its log holds pipeline, table and
// mapping, the position and clock of every shard. What only the row decides waits for it: whether this log is the one
// that the row names (until then nothing is applied to Bigtable), and how far versions may run ahead (until then, as
// far as every row allows; feeds that would exceed it pause).

const (
	rowPatience = 5 * time.Second  // in which Bigtable should answer at a start
	firstLead   = 10 * time.Minute // no row of a pipeline has less
)

// readOn says whether a log proves by itself that its table may be read on: it names its pipeline, and a sink's mark
// in it is younger than the note in the row that changes were read.
func readOn(s *checkpoint.State) bool {
	return s != nil && s.Identity != nil && s.LiveStream() != nil && len(s.Marks) > 0
}

// stored returns the log that the table has, and what it holds; nil when there is none yet.
func (t *table) stored(ctx context.Context) (*checkpoint.State, error) {
	l, err := t.p.queue.Log(ctx, t.Source)
	if errors.Is(err, queue.ErrNoLog) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	t.stream.Store(l)
	return l.Fold(ctx)
}

// knowRow reads the table's row, or, when Bigtable does not answer and the log allows it, leaves that to confirm.
func (t *table) knowRow(ctx context.Context, s *checkpoint.State) error {
	t.confirmed = make(chan struct{})
	if !readOn(s) {
		return t.loadRow(ctx)
	}
	patience, cancel := context.WithTimeout(ctx, min(rowPatience, t.p.o.Periods.ClaimTTL))
	defer cancel()
	err := t.loadRow(patience)
	if a := outcome.OfRow(ctx, err).Action; a == outcome.Proceed || a == outcome.Drained || a == outcome.Halt {
		return err
	}
	if s.Identity.Mapping != "" && s.Identity.Mapping != t.mapping() {
		return otherMapping(t.Source)
	}
	t.doubtRow()
	t.log.Warn("the pipeline's row in Bigtable is not known yet: what the log proves is enough to read on", zap.Error(err))
	return nil
}

// readRow reads the row again that somebody else changed, and holds it against the log: at a first start another
// process of the pipeline may have a log of its own, and have been faster.
func (t *table) readRow(ctx context.Context) error {
	if err := t.loadRow(ctx); err != nil {
		return err
	}
	return t.agree(ctx, t.logOf(), t.Info)
}

// doubtRow forgets the row: confirm reads it anew.
func (t *table) doubtRow() {
	t.rowMu.Lock()
	defer t.rowMu.Unlock()
	t.stale, t.confirmed = true, make(chan struct{})
	t.lead.Store(int64(min(t.p.o.Periods.Lead, firstLead)))
}

// rowKnown says whether the row has been read, or found missing, and agrees with the log.
func (t *table) rowKnown() bool {
	select {
	case <-t.confirmed:
		return true
	default:
		return false
	}
}

// awaitRow blocks until the row agrees with the log.
func (t *table) awaitRow(ctx context.Context) error {
	select {
	case <-t.confirmed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// confirm reads the row beside the work of a life, as soon as Bigtable answers; life is that of the log. It returns
// nil when ctx ends, and what refuses the log.
func (t *table) confirm(ctx context.Context, life uint64) error {
	for !t.rowKnown() {
		err := t.loadRow(ctx)
		if err == nil {
			err = t.agreeAgain(ctx, life)
		}
		switch a := outcome.OfRow(ctx, err).Action; {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the life ends, and with it the question
		case err == nil:
			t.log.Info("the pipeline's row in Bigtable agrees with the log")
			close(t.confirmed)
			return nil
		case a == outcome.Again, a == outcome.Halt:
			return err
		}
		t.log.Warn("read the pipeline's row: will be retried", zap.Error(err))
		if !sleep(ctx, min(sayEvery, t.p.o.Periods.Retry)) {
			return nil
		}
	}
	return nil
}

// agreeAgain holds the row against a log that was read on without it.
func (t *table) agreeAgain(ctx context.Context, life uint64) error {
	switch {
	case t.row == nil:
		return refusedLog(lostRow)
	case t.row.Life > life:
		return refusedLog(fmt.Sprintf("the log is of life %d, the pipeline is in life %d", life, t.row.Life))
	}
	if err := t.agree(ctx, t.logOf(), t.Info); err != nil || !t.p.o.Upgrade {
		return err
	}
	return t.upgradeRow(ctx)
}
