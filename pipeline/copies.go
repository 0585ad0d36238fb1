package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/export"
)

// planStart decides how a table starts, given the service's time. It is decided once (Rule 3).
func (t *Table) planStart(start Start, date change.Millis) (*checkpoint.Start, error) {
	at, err := start.Time(date)
	if err != nil {
		return nil, err
	}
	planned, ok := protocol.PlanStart(protocol.StartWish{
		Mode: start.Mode(), At: at, Free: start.IsZero(), Backfill: t.Backfill.From,
		AllRecords: t.Backfill.URL != "" || t.Archive.On,
	}, date)
	if !ok {
		return nil, &RefusedError{
			What: fmt.Sprintf("source.start is %s, and %s is to be copied: changes between the two would be missing",
				start.Mode(), t.Source),
			Hint: "remove source.start, or write backfill: none",
		}
	}
	return planned, nil
}

// decideBackfill returns the table as its first start sets it up, date being the service's time. A
// table that a selection found, that is new, and for which no backfill is configured is not copied.
// The log keeps the decision (Rule 3), so every later owner makes the same.
func (t *table) decideBackfill(ctx context.Context, w *queue.Writer, date change.Millis) (own Table, err error) {
	own = t.Table
	if own.NewAfter == nil || own.Backfill.From != "" {
		return own, nil
	}
	err = t.beatWhile(ctx, w, func(ctx context.Context) error {
		after, err := own.NewAfter(ctx)
		if t.info.NewSince(after, date) {
			own.Backfill.From = protocol.BackfillNone
		}
		return err
	})
	return own, err
}

// beginCopy appends the Copy entry of the copy that the start has decided on. After a crash between
// the two entries the next life appends it.
func (t *table) beginCopy(ctx context.Context, w *queue.Writer) error {
	c := protocol.FirstCopy(w.State())
	if c == nil {
		return nil
	}
	c.Items, c.Bytes = t.info.Items, t.info.Bytes
	if t.Backfill.ByWorkers && c.From == checkpoint.FromExport {
		c.By = checkpoint.ByWorkers
	}
	if c.From == checkpoint.FromScan { // the files of an export are known once it is opened, by the copy itself
		if c.Parts = t.Backfill.Segments; c.Parts == 0 {
			c.Parts = resync.Segments(t.info.Bytes)
		}
	}
	if _, err := w.Append(ctx, c, nil); err != nil {
		return fmt.Errorf("append copy: %w", err)
	}
	t.log.Info("the table is copied beside its stream", zap.String("from", c.From), zap.Int("parts", c.Parts),
		zap.Int64("items_estimated", c.Items), zap.Int64("bytes_estimated", c.Bytes))
	return nil
}

// openExport opens a full export of the table.
func (t *table) openExport(ctx context.Context, url string) (*export.Export, error) {
	e, err := export.Open(ctx, url, export.Want{TableID: t.info.ID, Source: t.source, Scratch: t.o.Scratch})
	if err == nil && e.Kind != export.Full {
		err = &RefusedError{
			What: fmt.Sprintf("export %s is incremental: it does not hold the items that have not changed", url),
			Hint: "export the table with --export-type FULL_EXPORT",
		}
	}
	return e, err
}

// checkBackfill refuses, before anything is stored, an export that cannot be copied beside the
// stream: an export of another table, in another format, or older than what is read. An export that
// cannot be opened now does not stop the start, because records of the stream would be trimmed
// meanwhile: the copy waits for it.
func (t *table) checkBackfill(ctx context.Context, w *queue.Writer, start *checkpoint.Start) error {
	if err := t.checkWorkers(start); err != nil {
		return err
	}
	if start.Backfill != checkpoint.FromExport || t.Backfill.URL == "" {
		return nil
	}
	var e *export.Export
	err := t.beatWhile(ctx, w, func(ctx context.Context) (err error) {
		open, cancel := context.WithTimeout(ctx, openAtStart)
		defer cancel()
		if e, err = t.openExport(open, t.Backfill.URL); errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("not within %s: %s", openAtStart, err.Error())
		}
		return err
	})
	var refused *RefusedError
	switch {
	case ctx.Err() != nil, errors.As(err, &refused):
		return err
	case err != nil && source.Classify(err) == failure.Rejected:
		return &RefusedError{What: err.Error(), Hint: source.Hint(err)}
	case err != nil:
		t.log.Error("the export cannot be opened: the stream is read, the copy waits", zap.Error(err))
		return nil
	}
	if e.Wholeness != export.Whole {
		t.log.Warn("DynamoDB cannot be asked whether the export was made with a filter: the table will not be ready before "+
			"`replicator verify` finds everything equal", zap.String("export", e.URL), zap.String("reason", e.Unasked))
	}
	if why := protocol.CheckExport(e.Time, cover(start.Stream, start.At, start.Date), 0, start.Date); why != "" {
		return &RefusedError{
			What: why,
			Hint: "take an export that is younger than 23 hours and than the stream, or write backfill: scan",
		}
	}
	return nil
}

// openAtStart is how long the first start waits for an export.
const openAtStart = 30 * time.Second

// horizon is how far back the stream is read from the trim horizon at least: records live for 24
// hours, and the oldest may be trimmed before they are read.
const horizon change.Millis = 23 * 3600 * 1000

// clockSkew is how much the clocks of two parts of the service may differ.
const clockSkew change.Millis = 5 * 1000

// cover returns the time from which on all changes of the table are read by a start: at, or the
// trim horizon. A stream holds no changes from before it was enabled, which is the time in the last
// part of its ARN.
func cover(arn string, at, date change.Millis) change.Millis {
	from := at
	if from == 0 {
		from = date - horizon
	}
	label := arn[strings.LastIndexByte(arn, '/')+1:]
	if enabled, err := time.Parse("2006-01-02T15:04:05.000", label); err == nil {
		// An export may be as old as the stream itself: CheckExport subtracts the margin of
		// versions.
		from = max(from, change.MillisOf(enabled)-apply.ResyncMargin+clockSkew)
	}
	return from
}

// newCopier returns the copy that is running according to the log; nil without one.
func (t *table) newCopier(s *checkpoint.State, o resync.Options) *resync.Copier {
	c, units := s.CopyRunning(), o.Budget.Usage().Rate
	t.copied.Tell(t.log, s.Copy, units)
	if c == nil {
		t.copied.NoteCopy(0, false)
		return nil
	}
	t.copied.NoteCopy(units, c.Paused || c.PausedWhy != "")
	o.WipesRows = t.row.Program.Wipes() != nil && c.Why == checkpoint.CopyBackfill
	return resync.New(o, c)
}

// resyncOptions returns what copies and resyncs of the table need for one life. They share one read
// budget.
func (t *table) resyncOptions(l *life.Life, s *checkpoint.State, sink resync.Writer) resync.Options {
	units, err := t.info.ReadUnitsFor(t.Backfill.ReadUnits, t.Backfill.Percent)
	if err != nil { // it was provisioned when the process started: not reading its stream would lose changes
		units = source.DefaultReadUnits
		t.log.Warn("the read budget of copies and resyncs is the default", zap.Error(err))
	}
	first := s.Streams[0]
	return resync.Options{
		Life: l, Reader: certain{t.source}, Writer: sink, Budget: source.NewBudget(units), Memory: t.copyMemory,
		Exports: resync.Exports{
			Exporter: t.source, Open: t.openExport, URL: t.Backfill.URL, Bucket: t.Backfill.Bucket, Prefix: t.Backfill.Prefix,
			Cover: cover(first.ARN, first.At, first.Date),
		},
		Workers: resync.Workers{
			Store: t.bigtable, Plan: t.planOrder, Unfit: t.unfit(s),
		},
		Throttled: func() uint64 { return t.bigtable.Overloads(t.Target) },
		Bound:     func() int { return t.bigtable.Bound(t.Target) },
		WriteRows: t.Backfill.WriteRows, Stats: t.copied,
		Periods: resync.Periods{
			Report: t.o.Periods.Report, Recheck: t.o.Periods.Recheck, Settle: t.o.Periods.Settle, Retry: t.o.Periods.Retry,
			Order: t.o.Periods.Order, Closing: t.o.Periods.Closing,
		},
	}
}

// certain reads items only while the service's time is certain: their versions come from it.
type certain struct{ *source.Source }

func (c certain) ScanPage(ctx context.Context, r source.ScanRequest) (*source.ItemPage, error) {
	if err := c.Certain(); err != nil {
		return nil, err
	}
	return c.Source.ScanPage(ctx, r)
}

func (c certain) ReadItems(ctx context.Context, table string, keys [][]byte) (*source.ItemBatch, error) {
	if err := c.Certain(); err != nil {
		return nil, err
	}
	return c.Source.ReadItems(ctx, table, keys)
}
