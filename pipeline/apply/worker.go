package apply

import (
	"context"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/pipeline/tracing"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/transform"
)

// lanePass is what all workers of one pass into Bigtable share.
type lanePass struct {
	o          *Options
	shared     *Shared
	letters    *DeadLetters
	turns      *turns // nil unless a rule removes whole rows
	quarantine *quarantine
}

// worker applies the batch of one lane. It is used again for other lanes of the table, with the
// memory that it has grown.
type worker struct {
	*lanePass
	call  *call // of the lane
	dec   *change.Decoder
	write transform.Write
	batch []job

	items protocol.Grouper[*job]
	alone [1]*job // a change that is not coalesced
	group []*change.Change
}

// job is a change on its way into the sink, or a resync.
type job struct {
	c     change.Change
	op    *operation // the resync; nil for a change
	entry *protocol.TrackedEntry
	turn  *turn
}

// size returns the bytes of the item that the job writes.
func (j *job) size() int {
	if j.op != nil {
		return len(j.op.item.Item)
	}
	return len(j.c.New)
}

// Hash and Key name the item for protocol.EachGroup.
func (j *job) Hash() uint64 { return j.c.KeyHash }
func (j *job) Key() []byte  { return j.c.Keys }

func newWorker(p *lanePass) *worker { return &worker{lanePass: p, dec: new(change.Decoder)} }

// apply applies the batch in its order. A resync is a barrier: what comes before it in the lane is
// applied before, and nothing is coalesced across it.
func (w *worker) apply(ctx context.Context) error {
	if w.turns != nil {
		return w.applyInTurn(ctx)
	}
	for rest := w.batch; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(j job) bool { return j.op != nil })
		if n < 0 {
			return w.applyChanges(ctx, rest)
		}
		if err := w.applyChanges(ctx, rest[:n]); err != nil {
			return err
		}
		w.runOperation(ctx, rest[n].op)
		rest = rest[n+1:]
	}
	return nil
}

// applyChanges applies changes item by item, in the order of the log. The changes of an item are
// coalesced into its last version.
func (w *worker) applyChanges(ctx context.Context, jobs []job) error {
	return protocol.EachGroup(&w.items, jobs, func(same []*job) error { return w.applyItem(ctx, same) })
}

// applyInTurn applies each change of the batch alone, once the earlier changes of its item and its
// rows are applied: removals that take whole rows along have to come between the changes before and
// after them.
func (w *worker) applyInTurn(ctx context.Context) error {
	for i := range w.batch {
		j := &w.batch[i]
		if err := j.turn.wait(ctx); err != nil {
			return err
		}
		if j.op != nil {
			w.runOperation(ctx, j.op)
		} else {
			w.alone[0] = j
			if err := w.applyItem(ctx, w.alone[:]); err != nil {
				return err
			}
		}
		w.turns.finish(j.turn)
	}
	return nil
}

// applyItem applies changes of one item as one write. When that is refused, the changes are applied
// one by one, so that only those that are refused alone become dead letters (Rule 8).
func (w *worker) applyItem(ctx context.Context, jobs []*job) error {
	if len(jobs) > 1 && !w.o.Table.Program.CanCoalesce() {
		return w.applyOneByOne(ctx, jobs) // a history keeps every version
	}
	err := w.writeItem(ctx, jobs)
	switch out := outcome.OfChange(err); {
	case out.Action == outcome.DeadLetter && len(jobs) > 1 && out.Code != outcome.CodeParked:
		return w.applyOneByOne(ctx, jobs)
	case out.Action == outcome.DeadLetter:
		err = w.storeDeadLetters(ctx, jobs, out)
	case err == nil:
		w.noteWritten(jobs)
	}
	if err != nil {
		return err
	}
	// Rule 1: only now that all of it is durable may the mark pass.
	for _, j := range jobs {
		j.entry.Ack(1)
	}
	return nil
}

// noteWritten counts a write that has become durable.
func (w *worker) noteWritten(jobs []*job) {
	if len(w.write.Rows) > 0 {
		w.letters.noteApplied()
	}
	w.quarantine.applied.Add(1)
	w.o.Stats.noteDurable(jobs, w.shared.now())
	w.o.Stats.Rows.Wrote(time.Now(), &w.write, &jobs[0].c, &jobs[len(jobs)-1].c)
}

func (w *worker) storeDeadLetters(ctx context.Context, jobs []*job, why outcome.Outcome) error {
	for _, j := range jobs {
		if err := w.letters.store(ctx, checkpoint.SinkBigtable, &j.c, j.entry.At.Seq, why); err != nil {
			return err
		}
		if err := w.dropOfCopies(ctx, &j.c); err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) applyOneByOne(ctx context.Context, jobs []*job) error {
	for i := range jobs {
		if err := w.applyItem(ctx, jobs[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// writeItem turns changes of one item into a write and applies it.
func (w *worker) writeItem(ctx context.Context, jobs []*job) (err error) {
	w.dec.Reset()
	program := w.o.Table.Program
	if len(jobs) == 1 {
		err = program.Change(w.dec, &jobs[0].c, &w.write)
	} else {
		w.group = w.group[:0]
		for i := range jobs {
			w.group = append(w.group, &jobs[i].c)
		}
		err = program.Coalesce(w.dec, w.group, &w.write)
	}
	if err != nil || len(w.write.Rows) == 0 {
		return err
	}
	// An item with a dead letter holds cells that later differences do not cover. Only a write that
	// replaces all of the item may follow; anything else waits with the letter for a resync of the
	// item.
	last := &jobs[len(jobs)-1].c
	if !w.write.Heals && w.letters.isDirty(last.KeyHash, last.Version) {
		return &transform.Refusal{Code: outcome.CodeDirty,
			What: "an earlier change of the item is a dead letter, and its rows are not functions of its key alone"}
	}
	inFlight := w.call.begin(tracing.Within(ctx, jobs[len(jobs)-1].entry.Span))
	err = w.call.end(ctx, inFlight, w.shared.bigtable.ApplyWhile(inFlight, w.o.Target, &w.write, w.o.MayWrite))
	if err != nil {
		return &outcome.SinkError{Err: err}
	}
	return nil
}
