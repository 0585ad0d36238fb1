package resync

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/failure"
)

// close stores the order as closed, outwaits the workers that have read it open, and appends that
// to the log.
//
// Rule 12: nothing may assume before that entry that no worker writes any more.
func (w *workers) close(ctx context.Context, reason delegation.CloseReason) error {
	w.o.Logger.Info("the order of the workers is closed: they may write for two minutes yet",
		zap.String("copy", w.copy.ID), zap.String("order", w.order.ID), zap.String("reason", string(reason)))
	w.setWaits("the workers end")
	if err := w.storePause(ctx); err != nil {
		return err
	}
	for n := 1; ; n++ {
		closed, err := w.tryClose(ctx, reason)
		if closed {
			break
		}
		if err != nil && ctx.Err() == nil {
			w.troubled("the order of the workers could not be closed: will be tried again", n, err)
		}
		if err := failure.Pause(ctx, failure.Backoff(n)); err != nil {
			return err
		}
	}
	w.setTrouble(noPart, "")
	// From here on, and not from the date in the order: an attempt to store it may have been long
	// under way. An owner that takes over waits again, for the same reason.
	if err := w.outwait(ctx); err != nil {
		return err
	}
	w.lastMarks(ctx)
	if err := w.storePause(ctx); err != nil { // what was handed back last may have been refused
		return err
	}
	if err := w.saveMarks(ctx); err != nil {
		return err
	}
	return w.o.Append(ctx, &checkpoint.CopyMarks{ID: w.copy.ID, Closed: true, Date: w.o.Now()})
}

// tryClose is one try to store the order as closed.
func (w *workers) tryClose(ctx context.Context, reason delegation.CloseReason) (bool, error) {
	seen, err := w.o.Workers.Store.LoadOrder(ctx, w.o.Pipeline, w.o.Source)
	if err != nil {
		return false, err
	}
	if o := seen.Order; o != nil && o.ID == w.order.ID {
		w.order = o
	}
	next := delegation.Closing(seen.Order, w.order.ID, w.order.Life, reason, w.o.Now())
	if next == nil {
		return true, nil
	}
	if next.Pipeline, next.Table = w.o.Pipeline, w.o.Source; next.Export.Files == 0 {
		next.Export.Files = w.copy.Parts
	}
	return w.o.Workers.Store.SwapOrder(ctx, w.o.Pipeline, w.o.Source, seen.Order, next)
}

// outwait waits until no worker has a lease on the order any more.
func (w *workers) outwait(ctx context.Context) error {
	for began := time.Now(); ; {
		left := w.o.Periods.Closing - time.Since(began)
		if left <= 0 {
			return nil
		}
		w.setWaits("the workers end within " + left.Round(time.Second).String())
		if err := failure.Pause(ctx, min(left, time.Second)); err != nil {
			return err
		}
	}
}

// lastMarks takes over what the workers have marked since the last look. A mark that cannot be read
// now costs that its file is copied again.
func (w *workers) lastMarks(ctx context.Context) {
	if w.copy.Parts == 0 || w.o.Workers.Unfit != "" {
		return
	}
	if w.export == nil {
		e, err := w.o.Exports.Open(ctx, w.copy.Export)
		if err != nil || len(e.Files) != w.copy.Parts {
			w.o.Logger.Warn("the export cannot be read: what workers hand back is copied again", zap.Error(err))
			return
		}
		w.export = e
	}
	if err := w.sameExport(); err != nil {
		w.o.Logger.Warn("what workers hand back is copied again", zap.Error(err))
		return
	}
	limit := delegation.BeatEvery
	if w.copy.Cancels > 0 { // nothing more is written: what is handed back is among what the copy lacks
		limit = 0
	}
	for more := true; more && w.refuses(w.export.Time) == ""; more = more && limit > 0 { // else nothing may be written
		var err error
		if more, err = w.takeMarks(ctx, limit); err != nil && ctx.Err() == nil {
			w.o.Logger.Warn("the workers' last marks could not be read: their files are copied again", zap.Error(err))
		}
	}
}

// closed lets the owner copy what is left, once the log has the order as closed.
func (w *workers) closed(ctx context.Context) error {
	total := w.parts.total()
	w.o.Logger.Info("no worker writes any more", zap.String("copy", w.copy.ID), zap.String("order", w.order.ID),
		zap.Int64("items", total.Items), zap.Bool("complete", w.parts.allDone()))
	if err := w.o.Workers.Store.RemoveFileMarks(ctx, w.order); err != nil && ctx.Err() == nil {
		// Rule 15: that the order is closed stands in the log.
		w.o.Logger.Warn("marks of files are left: they count for no other order", zap.Error(err))
	}
	rest := w.copy
	rest.Marks, rest.By, rest.Delegated, rest.TakenBack = w.parts.marks(), "", 0, false
	if w.parts.allDone() || rest.Cancels > 0 {
		w.setWaits("")
		return nil
	}
	w.mu.Lock()
	rest.PausedWhy = w.copy.PausedWhy
	w.mu.Unlock()
	w.next.Store(New(*w.o, &rest))
	return nil
}

// closeOther closes an order that another log of the same life has left open, and outwaits its
// workers.
func (w *workers) closeOther(ctx context.Context, other *delegation.Order) error {
	next := delegation.Closing(other, other.ID, other.Life, delegation.CloseTakeback, w.o.Now())
	done, err := w.o.Workers.Store.SwapOrder(ctx, w.o.Pipeline, w.o.Source, other, next)
	if !done {
		return err
	}
	return w.outwait(ctx)
}
