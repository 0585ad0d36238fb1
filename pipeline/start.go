package pipeline

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/ingest"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/source"
)

// claim takes over the table's log. A first start makes these steps in this order, each may be repeated, and after a
// crash between any two the next start goes on:
//
//	target claimed → log created → mapping stored → row {identity, issued: false} → claim → start entry → copy entry →
//	issued: true → first frame
func (t *table) claim(ctx context.Context) (*queue.Writer, error) {
	if err := t.describe(ctx); err != nil {
		return nil, err
	}
	stored, err := t.foldLog(ctx)
	folded := stored
	if err == nil && stored != nil {
		if refused := checkStored(stored, t.row.identity(t.currentLog(), t.info), t.o.Start); refused != nil {
			err = refused
		}
	}
	if err != nil {
		stored = nil // it proves nothing
	}
	t.row.replaced = replacedBy(stored, mappingID(t.row.program))
	if loadErr := t.row.loadForClaim(ctx, stored, err); loadErr != nil {
		return nil, errors.Join(err, loadErr)
	}
	if t.recovers() {
		left, leaveErr := t.leaveOldLog(ctx, folded)
		if left || leaveErr != nil {
			err = leaveErr
		}
	}
	if err != nil {
		return nil, err
	}
	if !t.row.stale {
		if err := t.agreeAtStart(ctx); err != nil {
			return nil, err
		}
	}
	t.view.started.Store(true)
	w, err := awaitClaim(ctx, t.view, t.currentLog(), t.claimOptions())
	if err != nil {
		return nil, fmt.Errorf("claim log: %w", err)
	}
	if refused := t.checkClaimed(w.State()); refused != nil {
		return nil, errors.Join(refused, w.Release(ctx))
	}
	return w, nil
}

// describe reads the description of the table from DynamoDB and, the first time, compiles the mapping for its key.
func (t *table) describe(ctx context.Context) error {
	info, err := t.source.Table(ctx, t.Source)
	if err != nil {
		return err
	}
	if info.StreamARN == "" {
		return fmt.Errorf("table %s has no stream: enable one with view type NEW_AND_OLD_IMAGES", t.Source)
	}
	if t.row.program == nil {
		if t.row.program, err = t.Compile(info); err != nil {
			return err
		}
		t.families.add(t.Target, t.Source, t.row.program.Families())
	}
	t.info = info
	return nil
}

// foldLog opens the table's log and returns what it holds; nil when there is none yet.
func (t *table) foldLog(ctx context.Context) (*checkpoint.State, error) {
	l, err := t.queue.Log(ctx, t.Source)
	if errors.Is(err, queue.ErrNoLog) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	t.stream.Store(l)
	return l.Fold(ctx)
}

// agreeAtStart opens the log, creates it at the first start, and compares it with the row.
func (t *table) agreeAtStart(ctx context.Context) error {
	l, err := t.openLog(ctx)
	if err == nil {
		err = t.row.agree(ctx, l, t.info)
	}
	if err == nil {
		close(t.row.agreed)
	}
	return err
}

// openLog opens the table's log, or creates it.
func (t *table) openLog(ctx context.Context) (*queue.Log, error) {
	l, err := t.queue.Log(ctx, t.Source)
	if errors.Is(err, queue.ErrNoLog) {
		if t.row.stored != nil && t.row.stored.Issued {
			return nil, refusedLog(logMissing)
		}
		l, err = t.createLog(ctx)
	}
	if err != nil {
		return nil, err
	}
	t.stream.Store(l)
	return l, nil
}

func (t *table) createLog(ctx context.Context) (*queue.Log, error) {
	token, err := t.queue.KeptToken(ctx, t.Source)
	if err != nil {
		return nil, err
	}
	if token == "" {
		token = rand.Text()
	}
	l, err := t.queue.CreateLog(ctx, t.Source, token)
	if err == nil {
		return l, nil
	}
	if other, lookErr := t.queue.Log(ctx, t.Source); lookErr == nil {
		return other, nil // another instance was faster
	}
	if errors.Is(err, queue.ErrNoLog) {
		err = &outcome.StaleError{Err: err} // another instance was faster, and its log is not visible from here yet
	}
	return nil, err
}

func (t *table) claimOptions() queue.ClaimOptions {
	o := queue.ClaimOptions{
		Owner: t.o.Owner, TTL: t.o.Periods.ClaimTTL,
		Identity: &checkpoint.Identity{
			Pipeline: t.o.Name, Table: t.Source, TableID: t.info.ID, Mapping: mappingID(t.row.program),
		},
	}
	if t.row.stored != nil {
		o.Life = t.row.stored.Life // without the row the log's own
	}
	if t.queue.Embedded() {
		o.TTL = time.Millisecond // this process holds the store's lock: whoever owned the log before is dead
	}
	return o
}

// checkClaimed is CheckLog for a log that was claimed with or without its row.
func (t *table) checkClaimed(s *checkpoint.State) *RefusedError {
	want := t.row.identity(t.currentLog(), t.info)
	if t.row.agrees() {
		return CheckLog(t.row.stored, s, want, t.o.Start)
	}
	if !provesItself(s) {
		return refusedLog(logMissing)
	}
	return checkStored(s, want, t.o.Start)
}

// start stores where every shard starts, and never again (Rule 3).
func (t *table) start(ctx context.Context, w *queue.Writer) error {
	var ls source.Listing
	err := t.beatWhile(ctx, w, func(ctx context.Context) (err error) {
		ls, err = t.source.List(ctx, t.info.StreamARN)
		return err
	})
	if err != nil {
		return err
	}
	if len(ls.Shards) == 0 { // a stream that is being enabled: its shards would be taken for later ones
		return &outcome.StaleError{Err: outcome.ErrNotListed}
	}
	start, err := t.firstStart(ls, w.State().Format)
	if err != nil {
		return err
	}
	start.Stream, start.Date, start.Shards = ls.Stream, ls.Started, ingest.ListedShards(ls.Shards)
	if err := t.checkTimeStart(ctx, w, start); err != nil {
		return err
	}
	if err := t.checkBackfill(ctx, w, start); err != nil {
		return err
	}
	if err := ingest.AppendStart(ctx, w, start, t.queue.MaxPayload()); err != nil {
		return err
	}
	t.log.Info("start", zap.String("stream", ls.Stream), zap.Int("shards", len(ls.Shards)), zap.String("from", start.Mode),
		zap.String("backfill", cmp.Or(start.Backfill, backfillNone)))
	return nil
}

// checkTimeStart lets a start that the program has chosen begin at the trim horizon where the service cannot read from
// a time on, once and for all shards. What is read in addition is older than the copy, or is left out by its version.
func (t *table) checkTimeStart(ctx context.Context, w *queue.Writer, start *checkpoint.Start) error {
	if start.At == 0 || start.Mode != modeBackfill && !start.Recover {
		return nil
	}
	known := true
	err := t.beatWhile(ctx, w, func(ctx context.Context) (err error) {
		feed := change.Feed{Stream: start.Stream, Shard: start.Shards[0].ID}
		known, err = t.source.StartsAtTimes(ctx, feed, start.At)
		return err
	})
	if err != nil {
		return err
	}
	if !known {
		t.log.Warn("the server does not know AT_TIMESTAMP: reading from the trim horizon")
		start.At = 0
	}
	return nil
}

// firstStart returns the start entry of the pipeline's first life, or of the one that a recovery begins.
func (t *table) firstStart(ls source.Listing, format int) (*checkpoint.Start, error) {
	if t.row.stored.Recovering {
		return t.recoveredStart(ls), nil
	}
	plan, err := t.planStart(t.o.Start, ls.Started, format)
	if err != nil {
		return nil, err
	}
	if plan.backfill == "" && t.Backfill.From != backfillNone && t.info.Items > 0 {
		t.log.Warn("the items that the table holds are not copied: they arrive when they change next",
			zap.Int64("items_estimated", t.info.Items), zap.String("source_start", plan.mode), zap.Int("log_format", format))
	}
	return &checkpoint.Start{
		Mode: plan.mode, At: plan.at, Floor: t.row.stored.Floor, Backfill: plan.backfill,
	}, nil
}
