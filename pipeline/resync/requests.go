package resync

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

// Requests serves the requests of commands to the owner of a table: resync single items, or retry
// their dead letters. Several chunks are done at once. The next life does a chunk again if its
// outcome was not stored. That changes nothing: every write is conditional.
type Requests struct {
	Options
	Program *transform.Program
	Client  *bigtable.Client // of the target; read where an item's key does not show its rows
	// Archived tries the dead letters of an item again in a table without a target, by its
	// canonical key.
	Archived func(ctx context.Context, key []byte) (apply.ResyncOutcome, error)
	Poll     time.Duration // between two looks for a request; default 1 s
	// Foreign deletes cells that belong to no item, and returns what became of each column.
	Foreign func(ctx context.Context, asked []request.Item) (*request.Outcome, error)
	// Heal makes archival events of what gaps lost.
	Heal func(ctx context.Context, order *request.HealOrder) (*request.Outcome, error)

	named named
	hand  *itemHand
	work  inWork
	after uint64 // the newest chunk that was begun, by its place in the store; 0: look at all
}

// chunks are the requests of a table: *request.Store.
type chunks interface {
	NextAfter(ctx context.Context, now time.Time, after uint64) (*request.Chunk, uint64, error)
	Waiting(ctx context.Context, c *request.Chunk) ([]*request.Chunk, error)
	Finish(ctx context.Context, c *request.Chunk, o *request.Outcome) error
}

// Run serves requests until ctx ends; nil then. What fails is tried again: the stream does not need
// it.
func (r *Requests) Run(ctx context.Context) error {
	if r.Poll == 0 {
		r.Poll = time.Second
	}
	r.hand = newItemHand()
	r.loop(ctx, nil)
	return nil
}

// loop serves requests until ctx ends, from store, or from the log's when that is nil. It returns
// when no chunk is in work any more: what it writes belongs to this life.
func (r *Requests) loop(ctx context.Context, store chunks) {
	defer r.work.all.Wait()
	for fails := 0; ctx.Err() == nil; {
		busy, err := r.serve(ctx, &store)
		pause := r.Poll
		switch {
		case err != nil && ctx.Err() != nil: // it was cut off
		case err != nil:
			fails++
			pause += failure.Backoff(fails)
			r.Logger.Warn("serve a request: will be retried", zap.Error(err))
		case busy:
			fails, pause = 0, 0
		}
		r.logSlow()
		_ = failure.Pause(ctx, pause) // fails when ctx ends, which ends the loop
	}
}

// serve begins the oldest request that is not being done. It returns false when none waits.
func (r *Requests) serve(ctx context.Context, store *chunks) (busy bool, err error) {
	if *store == nil {
		s, err := r.Log.ExistingRequests(ctx)
		if s == nil || err != nil {
			return false, err
		}
		*store = s
	}
	switch {
	case r.work.full():
		return false, nil
	case r.Status() == nil:
		r.after = 0 // so that outcomes that nobody fetches are deleted some day
	}
	c, at, err := (*store).NextAfter(ctx, r.Now().Time(), r.after)
	if c == nil || err != nil {
		return false, err
	}
	if err := r.nameRows(ctx, *store, c); err != nil {
		return false, err
	}
	r.begin(ctx, *store, c)
	r.after = at
	return true, nil
}

// begin works on a chunk until it is done or ctx ends. What fails is tried again: the stream does
// not need it.
func (r *Requests) begin(ctx context.Context, store chunks, c *request.Chunk) {
	w := &chunkWork{Chunk: c, rows: r.named.rows[c.ID], items: &Items{o: &r.Options, hand: r.hand}, began: time.Now()}
	r.work.add(w)
	r.work.all.Go(func() {
		defer r.work.remove(w)
		for fails := 1; ctx.Err() == nil; fails++ {
			err := r.finish(ctx, store, w)
			if err == nil || ctx.Err() != nil {
				return
			}
			w.items.note("it is tried again: "+err.Error(), 0)
			r.Logger.Warn("serve a request: will be retried", zap.String("request", c.ID), zap.Error(err))
			_ = failure.Pause(ctx, failure.Backoff(fails)) // fails when ctx ends, which ends the loop
		}
	})
}

// refusedAgain is the time between a refusal and the second question.
const refusedAgain = 200 * time.Millisecond

// finish does a chunk and stores its outcome.
//
// Rule 13: a refusal is stored only if the same is refused once more.
func (r *Requests) finish(ctx context.Context, store chunks, w *chunkWork) error {
	out, err := r.do(ctx, w)
	if refusal(err) != nil && failure.Pause(ctx, refusedAgain) == nil {
		out, err = r.do(ctx, w)
	}
	if failed := refusal(err); failed != nil {
		out, err = failed, nil
	}
	if err != nil {
		return err
	}
	out.Done = r.Now().Time().UTC()
	if err := store.Finish(ctx, w.Chunk, out); err != nil {
		return err
	}
	r.Logger.Info("a request is done", zap.String("request", w.ID), zap.String("what", w.What), zap.String("by", w.By),
		zap.Int("items", len(w.Items)), zap.Int64("written", out.Written), zap.Int64("letters", out.Applied),
		zap.Int64("refused", out.Refused))
	return nil
}

// do resyncs the items of a chunk, and counts what became of them.
func (r *Requests) do(ctx context.Context, c *chunkWork) (*request.Outcome, error) {
	if c.What == request.Foreign && r.Foreign != nil && r.Archived == nil {
		return r.Foreign(ctx, c.Items)
	}
	if c.What == request.Heal && r.Heal != nil && c.Heal != nil {
		return r.Heal(ctx, c.Heal)
	}
	if r.Archived != nil && c.What != request.Letters {
		return &request.Outcome{Failed: "table " + r.Source + " has no target: there are no rows"}, nil
	}
	if c.What != request.Resync && c.What != request.Letters {
		return &request.Outcome{Failed: "the owner does not know the request " + c.What,
			Hint: "the replicator that owns the table is older than this command: upgrade it"}, nil
	}
	var wanted []Wanted
	at := map[string]int{}                // index in wanted; a chunk may name a key twice
	index := make([]int, 0, len(c.Items)) // of wanted[i] in c.Items
	out := &request.Outcome{}
	for i := range c.Items {
		key, err := canonicalKey(r.Info.Schema, c.Items[i].Key)
		if err != nil {
			failed := "item number " + strconv.Itoa(i+1) + " has no key of " + r.Source + ": " + err.Error()
			return &request.Outcome{Failed: failed}, nil //nolint:nilerr // the command shows it
		}
		w := Wanted{Key: key, Rows: c.Items[i].Rows, Letters: c.What == request.Letters, Future: c.Items[i].Future}
		if c.rows != nil {
			w.Rows = append(slices.Clip(w.Rows), c.rows[i]...)
		}
		if k, twice := at[string(key)]; twice {
			wanted[k].Rows = append(slices.Clip(wanted[k].Rows), w.Rows...)
			out.Equal++
			continue
		}
		at[string(key)] = len(wanted)
		wanted, index = append(wanted, w), append(index, i)
	}
	outcomes, err := r.resync(ctx, c, wanted)
	if err != nil {
		return nil, err
	}
	for i := range outcomes {
		if c.What == request.Letters {
			countLetters(out, index[i], &outcomes[i])
		}
		countOutcome(out, index[i], &outcomes[i])
	}
	out.Notes = out.Notes[:min(len(out.Notes), maxNotes)]
	return out, nil
}

func (r *Requests) resync(ctx context.Context, c *chunkWork, list []Wanted) (out []apply.ResyncOutcome, err error) {
	if r.Archived == nil {
		return c.items.Resync(ctx, list)
	}
	for i := range list {
		x, err := r.Archived(ctx, list[i].Key)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

// maxNotes bounds the notes of an outcome: one that does not fit into a message is never stored,
// and its chunk would be done again for ever, before all others.
const maxNotes = 1000

// refusal returns the outcome of a chunk that DynamoDB refuses to read, however often it is asked;
// nil for other errors.
func refusal(err error) *request.Outcome {
	var refused *source.Error
	if !errors.As(err, &refused) {
		return nil
	}
	switch refused.Class {
	case failure.Denied, failure.Rejected, failure.Missing, failure.Gone:
		return &request.Outcome{Failed: refused.Error(), Hint: refused.Hint}
	}
	return nil
}

// countLetters adds what became of the dead letters of one item.
func countLetters(out *request.Outcome, i int, o *apply.ResyncOutcome) {
	out.Refused += int64(len(o.LettersLeft))
	out.Waiting += int64(o.LettersWaiting)
	out.Later += int64(o.LettersLater)
	if until := wholeSecond(o.LettersUntil); until.After(out.Until) {
		out.Until = until
	}
	for _, l := range o.LettersLeft {
		out.Notes = append(out.Notes, request.Note{
			Item: i, Letter: l.ID, Code: l.Code, Reason: l.Reason, Until: wholeSecond(l.Until),
		})
	}
}

// wholeSecond returns the second that begins at a time or next after it, because the service's
// clock shows whole seconds: a reading in it is above what the time stands for. It is zero for 0.
func wholeSecond(t change.Millis) time.Time {
	if t == 0 {
		return time.Time{}
	}
	return ((t + 999) / 1000 * 1000).Time().UTC()
}

// countOutcome adds what became of one item.
func countOutcome(out *request.Outcome, i int, o *apply.ResyncOutcome) {
	out.Applied += int64(o.LettersApplied)
	switch {
	case o.Refused != nil && len(o.LettersLeft) > 0: // the letters say it
	case o.Refused != nil:
		out.Refused++
		out.Notes = append(out.Notes, request.Note{Item: i, Code: o.Refused.Code, Reason: o.Refused.Reason})
	case o.Hot > 0:
		out.Hot++
		out.Notes = append(out.Notes, request.Note{Item: i, Code: "hot", Until: o.Hot.Time().UTC(),
			Reason: "it has changed since it was read, or was about to"})
	case o.Written > 0:
		out.Written++
	default:
		out.Equal++
	}
	if o.Left > 0 {
		out.Left++
	}
}
