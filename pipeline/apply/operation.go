package apply

import (
	"context"
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

// findTurns collects what the operation may write, in a table where removals delete whole rows: it
// takes its turn in each of these rows.
func (l *lanes) findTurns(ctx context.Context, o *operation) error {
	if l.turns == nil {
		return nil
	}
	x := o.item
	c := &change.Change{Op: change.Modify, Keys: x.Keys, KeyHash: x.Hash, New: x.Item}
	if x.Item == nil {
		c.Op = change.Remove
	}
	o.changes, o.rows = []*change.Change{c}, x.Rows
	refs := l.letters.of(x.Hash, false)
	o.letters = len(refs)
	for _, ref := range refs {
		letter, err := l.letters.get(ctx, ref)
		if err != nil {
			return err
		}
		if letter != nil && letter.change != nil {
			o.changes = append(o.changes, letter.change)
		}
	}
	return nil
}

// runOperation does a resync, unless its caller has given it up, and hands it the result.
func (w *worker) runOperation(ctx context.Context, o *operation) {
	defer o.leave()
	refs := w.letters.of(o.item.Hash, o.item.Letters)
	limit := laneTime
	if len(refs) > 0 {
		limit = laneTimeLetter
	}
	inner, ok := o.begin(ctx, limit)
	if !ok {
		return
	}
	var out ResyncOutcome
	var err error
	if w.turns != nil && len(w.letters.of(o.item.Hash, false)) > o.letters {
		err = errMoreLetters // the operation has no turn in the rows of the new letter
	} else {
		out, err = w.resync(inner, o.item, refs)
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		err = errPassEnded
	case inner.Err() != nil:
		err = context.Cause(inner)
	}
	o.end(out, err)
}

// operation is a resync on its way through one pass.
type operation struct {
	item    *ResyncItem
	changes []*change.Change // whose rows it may write, in tables with turns
	rows    [][]byte         // further ones
	letters int              // dead letters that were known when these were collected; only in tables with turns
	leave   func()           // lets the next operation into the lane

	mu      sync.Mutex              // covers what follows
	gaveUp  bool                    // the caller does not wait any more
	cut     context.CancelCauseFunc // cancels the running operation; nil before it begins
	done    chan struct{}           // closed when out and err are set
	out     ResyncOutcome
	failure error
}

// begin returns the context in which the worker does the operation; false when the caller has given
// it up.
func (o *operation) begin(ctx context.Context, limit time.Duration) (inner context.Context, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gaveUp {
		return nil, false
	}
	inner, cut := context.WithCancelCause(ctx)
	timer := time.AfterFunc(limit, func() { cut(errYield) })
	o.cut = func(cause error) {
		timer.Stop()
		cut(cause)
	}
	return inner, true
}

// end hands the result to the caller.
func (o *operation) end(out ResyncOutcome, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cut(nil)
	o.out, o.failure = out, err
	close(o.done)
}

// wait blocks until the operation has ended or can no longer begin. After that the caller's memory
// is not used any more.
func (o *operation) wait(ctx context.Context, passEnded <-chan struct{}) (ResyncOutcome, error) {
	select {
	case <-o.done:
	case <-passEnded:
		if !o.giveUp(errPassEnded) {
			return ResyncOutcome{}, errPassEnded
		}
	case <-ctx.Done():
		if !o.giveUp(context.Cause(ctx)) {
			return ResyncOutcome{}, context.Cause(ctx)
		}
	}
	<-o.done
	return o.out, o.failure
}

// giveUp keeps a worker from beginning the operation. It returns true when one has begun: then it
// cuts off what is in flight, and the worker ends the operation.
func (o *operation) giveUp(cause error) (begun bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gaveUp = true; o.cut == nil {
		return false
	}
	o.cut(cause)
	return true
}

// resyncing is the work on one item.
type resyncing struct {
	*worker
	item    *ResyncItem
	key     []byte // canonical; read where the item has letters or becomes one
	letters []*heldLetter
	out     ResyncOutcome
	// skipped is from when on a reading is above the rows that the put skipped, and caughtUp is
	// that time if the letters above the put can be applied then; 0: not.
	skipped, caughtUp change.Millis
	again             int // rows that the put skipped at its own version
}

// resync makes the rows of an item true. The dead letters of the item come first, then the item is
// put at its version, then what came after its reading, then the letters that this made needless
// are deleted. What is repeated after a crash between any two of these steps changes nothing.
func (w *worker) resync(ctx context.Context, item *ResyncItem, refs []letterRef) (ResyncOutcome, error) {
	x := &resyncing{worker: w, item: item}
	if len(refs) > 0 {
		if err := x.readKey(); err != nil {
			return x.out, err
		}
	}
	if err := x.loadLetters(ctx, refs); err != nil {
		return x.out, err
	}
	if err := x.applyLetters(ctx, false); err != nil {
		return x.out, err
	}
	why := x.blockedBy()
	if why == nil {
		if err := x.put(ctx); err != nil {
			if why = refusalOf(err); why == nil {
				return x.out, err
			}
		}
	}
	next := x.catchUp
	if why != nil {
		next = func(ctx context.Context) error { return x.refuse(ctx, why) }
	}
	if err := next(ctx); err != nil {
		return x.out, err
	}
	return x.out, x.settleLetters(ctx)
}

// readKey sets the canonical key.
func (x *resyncing) readKey() (err error) {
	x.key, err = x.canonical(x.item.Keys)
	return err
}

// put writes the rows of the item at its version. Rows that hold that version or a later one are
// left as they are.
//
// Rule 6: the write never compares and sets a guard's version. That would make the content that was
// read the newest, although a change that the read lacks may be under way.
func (x *resyncing) put(ctx context.Context) error {
	program, client, target := x.o.Table.Program, x.shared.bigtable, x.o.Target
	r := &transform.Resync{
		Keys: x.item.Keys, Item: x.item.Item, Version: x.item.Version, First: x.item.First, Rows: x.rows(),
		Future: x.item.Future,
	}
	x.dec.Reset()
	read, err := program.RowsToRead(x.dec, r)
	if err != nil {
		return err
	}
	if len(read) > 0 {
		x.dec.Reset()
		name, err := program.ItemOf(x.dec, x.item.Keys, &x.write)
		if err != nil {
			return err
		}
		if r.Held, err = client.HeldRows(ctx, target, name, read); err != nil {
			return &outcome.SinkError{Err: err}
		}
	}
	x.dec.Reset()
	if err := program.Resync(x.dec, r, &x.write); err != nil {
		return err
	}
	x.out.Found = r.ResyncFound
	x.out.Equal = max(len(read)-len(x.write.Rows), 0)
	for i := range x.write.Rows {
		if x.write.Rows[i].Left {
			x.out.Left++
		}
	}
	if err := x.replaceGuards(ctx, client, target); err != nil {
		return &outcome.SinkError{Err: err}
	}
	if len(x.write.Rows) == 0 {
		return nil
	}
	done, err := client.Resync(ctx, target, &x.write, x.fresh)
	if err != nil {
		return &outcome.SinkError{Err: err}
	}
	x.quarantine.applied.Add(1)
	x.worker.letters.noteTaken()
	x.out.Written, x.out.Skipped, x.again = x.out.Written+done.Written, done.Skipped, done.Again
	if done.Skipped > 0 {
		x.heat(max(done.Hot, x.item.Version+1))
		x.skipped = x.out.Hot
	}
	return nil
}

// replaceGuards replaces the rows that have a guard with exactly the version item.Future, guard
// included, and takes them out of the write. Rows with another guard stay in it and are written as
// usual.
func (x *resyncing) replaceGuards(ctx context.Context, client *bigtable.Client, target string) error {
	if int64(x.item.Future) <= int64(x.shared.now())+x.item.Lead.Milliseconds() {
		return nil
	}
	rest := make([]transform.Row, 0, len(x.write.Rows))
	for i := range x.write.Rows {
		replaced, err := client.ReplaceGuard(ctx, target, bigtable.Replacement{
			Write: &x.write, Row: i, Broken: x.item.Future, Lead: x.item.Lead, Fresh: x.fresh,
		})
		if err != nil {
			return err
		}
		if replaced {
			x.out.Written, x.out.Replaced = x.out.Written+1, true
		} else {
			rest = append(rest, x.write.Rows[i])
		}
	}
	x.write.Rows = rest
	return nil
}

// refuse notes that the item is not taken. In a copy it becomes a dead letter, unless the item has
// one already: that stands for the copy's as well, because its retry reads the item and writes its
// rows.
//
// Rule 8: what a copy cannot write is kept with its reason.
func (x *resyncing) refuse(ctx context.Context, why *outcome.Outcome) error {
	x.out.Refused = why
	x.refuseLetter(why)
	if x.item.Copy == "" {
		return nil
	}
	if x.isLettered() {
		x.out.Lettered = true
		return nil
	}
	if err := x.readKey(); err != nil {
		return err
	}
	item := deadletter.CopyItem{Copy: x.item.Copy, Keys: x.item.Keys, Canonical: x.key, Version: x.item.Version}
	if err := x.worker.letters.storeOfCopy(ctx, item, *why); err != nil {
		return err
	}
	x.out.Lettered = true
	return nil
}
