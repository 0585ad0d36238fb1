package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/ingest"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/pipeline/staterow"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/source"
)

// claim takes over the table's log. A first start makes these steps in this order, each may be
// repeated, and after a crash between any two the next start goes on:
//
//	target claimed → log created → mapping stored → row {identity, issued: false} → claim → start entry → copy entry →
//	issued: true → first frame
func (t *table) claim(ctx context.Context) (*queue.Writer, error) {
	stored, err := t.foldLog(ctx)
	if stored != nil {
		t.view.observeStored(stored)
	}
	if describeErr := t.describe(ctx); describeErr != nil {
		return nil, describeErr
	}
	folded := stored
	if err == nil && stored != nil {
		if refused := staterow.CheckStored(stored, t.row.Identity(t.currentLog(), t.info), t.o.Start); refused != nil {
			err = refused
		}
	}
	if err != nil {
		stored = nil // it proves nothing
	}
	if loadErr := t.row.LoadForClaim(ctx, stored, err); loadErr != nil {
		return nil, errors.Join(err, loadErr)
	}
	if t.row.Recovers() {
		left, leaveErr := t.leaveOldLog(ctx, folded, err)
		if left || leaveErr != nil {
			err = leaveErr
		}
	}
	if err != nil {
		return nil, err
	}
	if !t.row.Stale() {
		if err := t.agreeAtStart(ctx); err != nil {
			return nil, err
		}
	}
	t.view.publish(func(s *snapshot) { s.loaded = true })
	if stored == nil || stored.Epoch == 0 || t.row.Recovers() { // the first claim decides the format of a log
		if _, err := t.format.AwaitAbove(ctx, 0); err != nil {
			return nil, fmt.Errorf("await format of the pipeline: %w", err)
		}
	}
	w, err := t.awaitClaim(ctx)
	if err != nil {
		return nil, fmt.Errorf("claim log: %w", err)
	}
	if refused := t.checkClaimed(w.State()); refused != nil {
		return nil, errors.Join(refused, w.Release(ctx))
	}
	if err := t.checkCopy(ctx, w); err != nil {
		return nil, errors.Join(err, w.Release(ctx))
	}
	return w, nil
}

// describe reads the description of the table from DynamoDB and compiles the mapping for its key:
// the first time, and after the stored rows were found to have another one, which an operator may
// have put back. The description that this process holds stays valid when the table is deleted: its
// stream can be read for a day.
func (t *table) describe(ctx context.Context) error {
	info, err := t.source.Table(ctx, t.Source)
	if source.Classify(err) == failure.Gone && t.info.StreamARN != "" {
		return nil
	}
	if err != nil {
		return err
	}
	t.view.tableGone(0)
	if info.StreamARN == "" {
		return fmt.Errorf("table %s has no stream: enable one with view type NEW_AND_OLD_IMAGES", t.Source)
	}
	if t.row.Program == nil || t.otherMapping {
		program, err := t.Compile(info)
		if err != nil {
			return err
		}
		t.row.Program, t.otherMapping = program, false
		if !t.archivedOnly() {
			t.families.Add(t.Target, t.Source, t.row.Program.Families())
		}
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
		err = t.row.Agree(ctx, l, t.info)
	}
	return err
}

// openLog opens the table's log, or creates it.
func (t *table) openLog(ctx context.Context) (*queue.Log, error) {
	l, err := t.queue.Log(ctx, t.Source)
	if errors.Is(err, queue.ErrNoLog) {
		if refused := staterow.CheckLost(t.row.Known()); refused != nil {
			return nil, refused
		}
		l, err = staterow.CreateLog(ctx, t.queue, t.Source)
	}
	if err != nil {
		return nil, err
	}
	t.stream.Store(l)
	return l, nil
}

// checkClaimed is CheckLog for a log that was claimed with or without its row.
func (t *table) checkClaimed(s *checkpoint.State) *RefusedError {
	want := t.row.Identity(t.currentLog(), t.info)
	if t.row.Agrees() {
		return staterow.CheckLog(t.row.Known(), s, want, t.o.Start)
	}
	if !staterow.ProvesItself(s) {
		return staterow.LostLog()
	}
	return staterow.CheckStored(s, want, t.o.Start)
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
	start, err := t.firstStart(ctx, w, ls)
	if err != nil {
		return err
	}
	start.Stream, start.Shards = ls.Stream, ingest.ListedShards(ls.Shards)
	if err := t.checkTimeStart(ctx, w, start, ls); err != nil {
		return err
	}
	if err := t.checkBackfill(ctx, w, start); err != nil {
		return err
	}
	if err := ingest.AppendStart(ctx, w, start, t.queue.MaxPayload()); err != nil {
		return err
	}
	t.log.Info("start", zap.String("stream", ls.Stream), zap.Int("shards", len(ls.Shards)), zap.String("from", start.Mode),
		zap.String("backfill", cmp.Or(start.Backfill, protocol.BackfillNone)))
	return nil
}

// checkTimeStart lets a start that the program has chosen begin at the trim horizon where the
// service cannot read from a time on, once and for all shards. What is read in addition is older
// than the copy, or is left out by its version.
func (t *table) checkTimeStart(
	ctx context.Context, w *queue.Writer, start *checkpoint.Start, ls source.Listing,
) error {
	if start.At == 0 || start.Mode != protocol.ModeBackfill && !start.Recover {
		return nil
	}
	known := true
	err := t.beatWhile(ctx, w, func(ctx context.Context) (err error) {
		known, err = t.source.StartsAtTimes(ctx, ls, start.At)
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

// notCopied returns about how many items of the table a start leaves out: neither does it copy
// them, nor does the stream that it reads hold them.
func (t *table) notCopied(plan *checkpoint.Start) int64 {
	inStream := t.info.NewSince(1, plan.Date) && plan.At <= change.MillisOf(t.info.Created)
	if plan.Backfill != "" || t.Target == "" || inStream {
		return 0
	}
	return t.info.Items
}

// firstStart returns the start entry of the pipeline's first life, or of the one that a recovery
// begins.
func (t *table) firstStart(ctx context.Context, w *queue.Writer, ls source.Listing) (*checkpoint.Start, error) {
	if t.row.Known().Recovering {
		return protocol.RecoveredStart(t.o.Start.Mode(), t.row.Known().Floor, ls.Started, t.Archive.On), nil
	}
	own, err := t.decideBackfill(ctx, w, ls.Started)
	if err != nil {
		return nil, err
	}
	plan, err := own.planStart(t.o.Start, ls.Started)
	if err != nil {
		return nil, err
	}
	if plan.NotCopied = t.notCopied(plan); plan.NotCopied > 0 {
		t.log.Warn("the items that the table holds are not copied: they arrive when they change next",
			zap.Int64("items_estimated", plan.NotCopied), zap.String("source_start", plan.Mode))
	}
	plan.Floor = t.row.Known().Floor
	return plan, nil
}
