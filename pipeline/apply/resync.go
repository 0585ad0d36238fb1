package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/transform"
)

// ResyncItem is one item as it was read from the table itself, by a scan, an export or a strong
// read. The caller has waited until every change up to the read is applied (ingest.Prove). Resync
// does not keep or change its slices.
type ResyncItem struct {
	Keys      []byte         // the key attributes as typed JSON
	Hash      uint64         // of the canonical key, as change.Change.KeyHash
	Item      []byte         // typed JSON; nil: the table does not hold the item
	Version   change.Version // of the write: Requested less ResyncMargin, or above the life's floor
	Requested change.Millis  // the service's clock when the item was read, not later than the request
	ReadAt    time.Time      // this process's clock then, with its monotonic part
	First     bool           // first backfill: a row without a guard of the item holds nothing of it
	Rows      [][]byte       // further rows that may hold the item
	Letters   bool           // retry the item's dead letters of every sink
	Copy      string         // the copy's id: if the item is refused, it becomes a dead letter of the copy
	// Future is a guard of the item in the future, left by a broken clock; 0: there is none. Rows
	// that have a guard with exactly this version are replaced, guard included, if the version is
	// more than Lead away. Lead is how far versions may run ahead.
	Future change.Version
	Lead   time.Duration
	// GapsUntil returns the end of the latest gap that was found; nil: gaps are not looked for. An
	// item that was read before may have been deleted there.
	GapsUntil func() change.Millis
}

// ResyncOutcome is the result of the resync of one item.
type ResyncOutcome struct {
	Written int // rows
	Equal   int // rows that were read and held what they should
	Left    int // rows of the write that the item must not be in: their cells of it are deleted
	Skipped int // rows that hold this version of the item or a later one
	// Hot is the time of the service from which on the item may be read and resynced again, because
	// it has changed close before the read or since; 0 when the rows agree with what was read. Its
	// rows are as the stream made them.
	Hot change.Millis
	// Replaced is set when a row's guard in the future was replaced. Changes after the read may
	// have lost to that guard and be in no row: the item must be read and resynced once more.
	Replaced bool
	// Refused is why the mapping or Bigtable does not take the item, or why one of its dead letters
	// must be retried or dropped before it; nil when the item was written. When Refused is set, no
	// row was written.
	Refused *outcome.Outcome
	// Lettered is set when the refused item is stored as a dead letter of the copy.
	Lettered bool
	// LettersApplied counts the item's dead letters that were deleted: they were applied, or the
	// rows are true now.
	LettersApplied int
	// LettersLeft are the dead letters of the item that were tried and stay, LettersWaiting counts
	// those that were not tried because an earlier one was refused.
	LettersLeft    []LetterLeft
	LettersWaiting int
	// LettersLater counts the letters, left or waiting, that another reading makes needless, from
	// LettersUntil on: the rows are true, but the version of this reading is not above the letters.
	LettersLater int
	LettersUntil change.Millis
	Found        transform.ResyncFound // about the rows that were read
}

// LetterLeft is a dead letter that a resync could not apply. Until is the service's time from which
// on another reading of the item makes it needless, because its rows are true already; 0: the
// letter stays until its change is taken.
type LetterLeft struct {
	ID, Code, Reason string
	Until            change.Millis
}

// ErrStale means that the item was read too long ago to be written: the caller reads it again.
var ErrStale = errors.New("the item was read too long ago")

// ErrFenced means that the table is fenced for a cutover: its rows may belong to the application by
// now.
var ErrFenced = errors.New("the table is fenced")

const (
	// ResyncMargin and PageAge equal the constants of package protocol.
	ResyncMargin = protocol.ReadingMargin
	PageAge      = protocol.ReadingAge

	// laneTime is how long a resync may hold its lane while Bigtable does not answer. Then it goes
	// to the end of the lane, so that the changes of the stream come first. One that must look at
	// dead letters may take longer.
	laneTime       = 15 * time.Second
	laneTimeLetter = 2 * time.Minute
)

var (
	errPassEnded   = errors.New("the pass has ended")
	errYield       = errors.New("the resync gives its lane to the changes behind it")
	errMoreLetters = errors.New("the item got another dead letter while the resync waited")
)

// Resync makes the rows of one item true again, in the lane of the item: behind the changes that
// are there, and before those that come later. It blocks until that is durable. A halt or an outage
// of Bigtable does not end it: it goes on in the next pass of the sink, until the read is too old
// (ErrStale), ctx ends or the life does. Other errors concern this item's write only: the changes
// of the stream go on. After any error it may be called again. Callers bound how many items they
// resync at once; at most one waits in each lane, the others wait before it.
//
// Rule 12: while the sink stands at a fence, it returns ErrFenced.
func (s *Sink) Resync(ctx context.Context, item *ResyncItem) (ResyncOutcome, error) {
	if s.fence != nil {
		return ResyncOutcome{}, ErrFenced
	}
	left := PageAge - ageOf(item, s.shared.clock())
	if end, ok := ctx.Deadline(); !ok || time.Until(end) > left {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, left, ErrStale)
		defer cancel()
	}
	for {
		out, err := s.resyncInPass(ctx, item)
		again := errors.Is(err, errPassEnded) || errors.Is(err, errYield) || errors.Is(err, errMoreLetters)
		switch {
		case again && ctx.Err() != nil:
			return out, fmt.Errorf("resync item: %w", context.Cause(ctx))
		case again:
			continue
		case err != nil:
			return out, fmt.Errorf("resync item: %w", err)
		}
		return out, nil
	}
}

// WhileFresh returns a context that ends with ErrStale when items that were read at a time are too
// old. Resync makes one for each item unless its own ends early enough; one for all items of a page
// is cheaper. It ends a second early, so that a wall clock that has been adjusted a little makes no
// difference.
func WhileFresh(ctx context.Context, readAt time.Time) (context.Context, context.CancelFunc) {
	return context.WithDeadlineCause(ctx, readAt.Add(PageAge-time.Second), ErrStale)
}

// resyncInPass runs the operation in the current or the next pass.
func (s *Sink) resyncInPass(ctx context.Context, item *ResyncItem) (ResyncOutcome, error) {
	l, err := s.awaitLanes(ctx)
	if err != nil {
		return ResyncOutcome{}, err
	}
	o := &operation{item: item, done: make(chan struct{})}
	if err := l.findTurns(ctx, o); err != nil {
		return ResyncOutcome{}, err
	}
	if err := l.submitResync(ctx, o); err != nil {
		return ResyncOutcome{}, err
	}
	return o.wait(ctx, l.ended)
}

// awaitLanes returns the lanes of the running pass. Between two passes it waits for the next one.
func (s *Sink) awaitLanes(ctx context.Context) (*lanes, error) {
	for {
		s.mu.Lock()
		l, began := s.lanes, s.began
		s.mu.Unlock()
		if l != nil && ctx.Err() == nil {
			return l, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-s.ended:
			return nil, fmt.Errorf("sink %s has ended: %w", s.name, context.Canceled)
		case <-began:
		}
	}
}
