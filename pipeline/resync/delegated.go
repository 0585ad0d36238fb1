package resync

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/source/export"
)

// workers is a copy that workers outside the daemon make, as its owner sees it.
type workers struct {
	*Copier
	order  *delegation.Order // with its id, also before it is stored
	export *export.Export
	beaten change.Millis // the date of the last beat
}

// watchWorkers lets workers copy: it opens their order, beats, and turns their marks into marks of
// the log. When nothing is left, or the copy is to end, it closes the order. The owner copies what
// is left then.
//
// The result of their job is never asked for: a mark in Bigtable is the one proof that a file is
// durable.
func (c *Copier) watchWorkers(ctx context.Context) error {
	w := &workers{Copier: c, order: &delegation.Order{
		ID: delegation.ID(c.copy.ID, c.copy.Delegated), Copy: c.copy.ID, Life: c.o.Number,
		Pipeline: c.o.Pipeline, Table: c.o.Source, Export: delegation.Export{Files: c.copy.Parts},
	}}
	reason := closeReason(&c.copy)
	if reason == "" {
		var err error
		if reason, err = w.watch(ctx); err != nil {
			return err
		}
	}
	if err := w.close(ctx, reason); err != nil {
		return err
	}
	return w.closed(ctx)
}

// closeReason returns why the order of a copy is to be closed by its log; "" where it is not.
func closeReason(c *checkpoint.CopyState) delegation.CloseReason {
	switch {
	case !c.Closes():
		return ""
	case c.Cancels > 0:
		return delegation.CloseCancel
	case c.TakenBack:
		return delegation.CloseTakeback
	case c.PausedWhy != "":
		return delegation.ClosePause
	}
	return delegation.CloseDone
}

// awaitDelegated waits until the owner's log shows the entry that has delegated a copy whose export
// was requested, and notes it in the copy.
func (c *Copier) awaitDelegated(ctx context.Context, complete *checkpoint.CopyState) error {
	for {
		if at := c.o.Facts().Delegated; at > c.copy.Delegated {
			complete.Delegated = at
			return nil
		}
		if err := failure.Pause(ctx, lookEvery); err != nil {
			return err
		}
	}
}

// watch opens the order and follows the workers, until the order is to be closed; it returns why.
func (w *workers) watch(ctx context.Context) (delegation.CloseReason, error) {
	if w.o.Workers.Unfit != "" {
		w.o.Logger.Error("workers cannot copy the table: its owner does", zap.String("copy", w.copy.ID),
			zap.String("reason", w.o.Workers.Unfit.Why()))
		return delegation.CloseUnfit, nil
	}
	if err := w.open(ctx); err != nil {
		return "", err
	}
	defer w.origin.close()
	w.export = w.origin.(*exported).file
	if err := w.awaitBegin(ctx); err != nil {
		return "", err
	}
	reason, err := w.openOrder(ctx)
	for reason == "" && err == nil {
		reason, err = w.look(ctx)
		if reason == "" && err == nil {
			err = failure.Pause(ctx, w.o.Periods.Order)
		}
	}
	return reason, err
}

// openOrder stores the order once every change up to the moment of the export is applied: an older
// change would else be read by readers after a newer item. It returns why the order cannot be
// opened any more, "" once it is open.
func (w *workers) openOrder(ctx context.Context) (delegation.CloseReason, error) {
	for n := 1; ; n++ {
		if w.outdated() {
			return delegation.ClosePause, nil
		}
		reason, opened, err := w.tryOpen(ctx)
		if opened || reason != "" || ctx.Err() != nil {
			return reason, context.Cause(ctx)
		}
		if err != nil {
			w.troubled("the order of the workers could not be stored: will be tried again", n, err)
		}
		if err := failure.Pause(ctx, failure.Backoff(n)); err != nil {
			return "", err
		}
	}
}

// tryOpen is one try of openOrder.
func (w *workers) tryOpen(ctx context.Context) (reason delegation.CloseReason, opened bool, err error) {
	seen, err := w.o.Workers.Store.LoadOrder(ctx, w.o.Pipeline, w.o.Source)
	if err != nil {
		return "", false, err
	}
	switch delegation.JudgeOpening(seen.Order, w.order) {
	case delegation.IsOpen:
		w.order = seen.Order
		if err := w.sameExport(); err != nil {
			return "", false, err
		}
		w.setTrouble(noPart, "")
		return "", true, nil
	case delegation.WasClosed:
		return cmpReason(seen.Order.Reason), false, nil
	case delegation.AnotherOpen: // of a log that was lost without a new life
		return "", false, w.closeOther(ctx, seen.Order)
	}
	if err := w.o.Prove(ctx, w.export.Time+answerMargin); err != nil {
		return "", false, err
	}
	// A log that lost the entry would show no workers, and their order would be open.
	if err := w.o.Workers.Note(ctx, w.copy.Delegated); err != nil {
		return "", false, err
	}
	next, err := w.plan()
	if err != nil {
		return "", false, err
	}
	next.Revision = delegation.NextRevision(seen.Order, w.o.Now())
	opened, err = w.o.Workers.Store.SwapOrder(ctx, w.o.Pipeline, w.o.Source, seen.Order, next)
	if opened {
		w.order = next
		w.setTrouble(noPart, "")
		w.o.Logger.Info("workers may copy the table", zap.String("copy", w.copy.ID), zap.String("order", next.ID),
			zap.Int("files", next.Export.Files))
	}
	return "", opened, err
}

// cmpReason returns the reason of an order that was closed, by a build that may have stored none.
func cmpReason(r delegation.CloseReason) delegation.CloseReason {
	if r == "" {
		return delegation.CloseTakeback
	}
	return r
}

// plan returns the order to be stored.
func (w *workers) plan() (*delegation.Order, error) {
	o, err := w.o.Workers.Plan()
	if err != nil {
		return nil, err
	}
	own := w.order
	o.ID, o.Copy, o.Life, o.Pipeline, o.Table = own.ID, own.Copy, own.Life, own.Pipeline, own.Table
	e := w.export
	o.Export = delegation.Export{
		URL: e.URL, Digest: e.Digest(), Files: len(e.Files), Time: e.Time, Items: e.Items, Bytes: e.Bytes,
	}
	o.Copied = w.copied()
	o.Version = max(protocol.VersionOfExport(e.Time), change.LowestRead(w.o.Floor))
	o.First = w.copy.Why == checkpoint.CopyBackfill && w.o.Floor == 0
	o.Opened = w.o.Now()
	return o, nil
}

// copied returns the files that are durable.
func (w *workers) copied() (all []delegation.Range) {
	for i := range w.export.Files {
		switch last := len(all) - 1; {
		case !w.parts.done(i):
		case last >= 0 && all[last].Last == i-1:
			all[last].Last = i
		default:
			all = append(all, delegation.Range{First: i, Last: i})
		}
	}
	return all
}

// outdated reports whether the export may not be copied any more, and pauses the copy then.
func (w *workers) outdated() bool {
	why := w.refuses(w.export.Time)
	if why != "" {
		_ = w.pause(why + newerExport)
	}
	return why != ""
}

// look is one look at the workers: it beats, and takes over what they have marked. It returns why
// the order is to be closed; "" where it stays open. Bigtable may be away: the workers wait, too.
func (w *workers) look(ctx context.Context) (delegation.CloseReason, error) {
	if w.outdated() {
		return delegation.ClosePause, nil
	}
	err := w.beat(ctx)
	var seen *delegation.Seen
	if err == nil {
		seen, err = w.o.Workers.Store.LoadOrder(ctx, w.o.Pipeline, w.o.Source)
	}
	switch {
	case err != nil:
	case seen.Order == nil || seen.Order.ID != w.order.ID:
		return delegation.CloseTakeback, nil // the row was deleted, and stored again
	case !seen.Order.Open():
		return cmpReason(seen.Order.Reason), nil
	default:
		_, err = w.takeMarks(ctx, delegation.BeatEvery)
	}
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case w.pausing():
		return delegation.ClosePause, nil
	case err != nil:
		w.troubled("the workers' marks could not be taken over: will be tried again", 1, err)
	default:
		w.setTrouble(noPart, "")
	}
	if err := w.saveMarks(ctx); err != nil {
		return "", err
	}
	if w.parts.allDone() {
		return delegation.CloseDone, nil
	}
	return "", nil
}

// beat shows the workers that the table has an owner.
func (w *workers) beat(ctx context.Context) error {
	now := w.o.Now()
	if now-w.beaten < change.Millis(min(delegation.BeatEvery, 2*w.o.Periods.Order)/time.Millisecond) {
		return nil
	}
	b := delegation.Beat{
		Order: w.order.ID, Date: now, Lag: change.Millis(w.o.Behind() / time.Millisecond), Paused: w.copy.Paused,
	}
	fresh := func() error {
		if w.o.Now()-now > change.Millis(delegation.LeaseAge/time.Millisecond) {
			return errOldBeat
		}
		return nil
	}
	if _, err := w.o.Workers.Store.StoreBeat(ctx, w.o.Pipeline, w.o.Source, b, fresh); err != nil {
		return err
	}
	w.beaten = now
	return nil
}

// errOldBeat ends the sending of a beat that Bigtable did not take for a minute: another one
// follows.
var errOldBeat = errors.New("the beat is a minute old")

// troubled notes an error that is tried again.
func (w *workers) troubled(message string, tries int, err error) {
	w.setTrouble(noPart, whyOf(err))
	if tries == 1 {
		w.o.Logger.Warn(message, zap.String("order", w.order.ID), zap.Error(err))
	}
}
