package archiving

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/journal"
	"github.com/tailrace-cdc/replicator/sink/archive"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
)

// ErrStalled means that the archive's stream has no room for events, and that they are to become
// dead letters.
var ErrStalled = errors.New("the archive's stream is full")

// TooLargeError means that the event of a record fits into no message of the server.
type TooLargeError struct {
	Size int // bytes of its message
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the event has %d bytes, compressed: more than a message of the NATS server may have", e.Size)
}

// maxBatch is how many bytes of events go into one entry before compression.
const maxBatch = 4 << 20

// Store makes records durable in the archive's stream, in their order, and returns how many are.
// Records that are there already are left out, and count. It blocks for a while when the stream is
// not ready or is full. Errors: archive.ErrAway, ErrStalled, and *TooLargeError about the first
// record that is not stored. After any other error more records may be stored than it returns.
//
// Rule 1: the mark of the table's log passes a deletion only when this has returned.
func (a *Archiver) Store(ctx context.Context, records []ledger.Record) (stored int, err error) {
	for stored < len(records) {
		l, err := a.awaitLife(ctx)
		if err != nil {
			return stored, err
		}
		rest := records[stored:]
		if slices.ContainsFunc(rest, hasEvent) {
			if err := l.awaitRoom(ctx); err != nil {
				// What a full stream has already, before a mark that was lost, needs no room and is
				// no dead letter.
				if rest = rest[:l.had(rest)]; len(rest) == 0 {
					return stored, err
				}
			}
		}
		n := cut(rest, min(maxBatch, 4*l.w.journal.MaxMessage()))
		n, err = l.store(ctx, records[stored:stored+n])
		stored += n
		if err != nil {
			return stored, err
		}
	}
	return stored, nil
}

// hasEvent reports whether a record needs room for an event.
func hasEvent(r ledger.Record) bool { return r.Verdict == ledger.Keep || r.Verdict == ledger.Late }

// had returns how many of the first records add no event to the stream.
func (l *life) had(records []ledger.Record) (n int) {
	l.w.view(func(s *ledger.State) {
		for n < len(records) && s.Has(records[n]) {
			n++
		}
	})
	return n
}

// patience is how long Store waits before it returns archive.ErrAway: then the sink stores in the
// log why it waits, and a drain need not wait for it.
const patience = 5 * time.Second

// awaitLife waits until the stream takes records.
func (a *Archiver) awaitLife(ctx context.Context) (*life, error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case l := <-a.ready:
		return l, nil
	case <-late.C:
		return nil, fmt.Errorf("%w: its stream is not open: %s", archive.ErrAway, a.Status().Trouble)
	}
}

// cut returns how many records go into one entry.
func cut(records []ledger.Record, limit int) int {
	size := 0
	for n := range records {
		if size += len(records[n].Item) + len(records[n].Subject) + 200; size > limit && n > 0 {
			return n
		}
	}
	return len(records)
}

// store stores records in one entry, or, where they do not fit into a message, some of them; it
// returns how many.
func (l *life) store(ctx context.Context, records []ledger.Record) (int, error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	for n := len(records); ; n = (n + 1) / 2 {
		batch := l.w.state.NewBatch(layout.HourOf(l.a.o.Now().Time()))
		for _, r := range records[:n] {
			batch.Add(r)
		}
		if batch.Empty() {
			return n, nil
		}
		body, data := batch.Encode()
		if size := l.sizeOf(body, data); size > l.w.journal.MaxMessage()-headroom {
			if n > 1 {
				continue
			}
			return 0, &TooLargeError{Size: size}
		}
		if err := l.w.appendLocked(ctx, body, data); err != nil {
			return 0, l.a.fullIs(err)
		}
		l.a.noteHead(l.w.state)
		for class, n := range batch.Events() {
			l.a.o.Metrics.countEvents(l.a.o.Table, "stream", class, n)
		}
		return n, nil
	}
}

// fullIs returns what a full stream means for events.
func (a *Archiver) fullIs(err error) error {
	switch {
	case !errors.Is(err, journal.ErrFull):
		return err
	case a.o.Letters:
		return ErrStalled
	}
	return fmt.Errorf("%w: %w", archive.ErrAway, err)
}

// headroom is what the server needs of a message for subject and headers.
const headroom = 4 << 10

func (l *life) sizeOf(body *ledger.Events, data []byte) int {
	msg, err := ledger.Encode(body, ledger.Hash{}, nil)
	if err != nil {
		return 0 // the append returns the error
	}
	return len(msg) + len(data)
}

// awaitRoom waits while the stream has no room for events.
func (l *life) awaitRoom(ctx context.Context) error {
	for began := time.Now(); ; {
		full, err := l.w.fraction(ctx, time.Since(began) > time.Second/2)
		if err != nil {
			return err
		}
		stalled := full >= holdAt
		l.a.note(func(s *Status) { s.Stalled = stalled })
		if !stalled {
			return nil
		}
		if l.a.o.Letters {
			return ErrStalled
		}
		if time.Since(began) > patience {
			return fmt.Errorf("%w: %.0f %% of its stream's limit are in use; raise archive.max_bytes, or see why nothing "+
				"is written: `replicator status`", archive.ErrAway, 100*full)
		}
		if err := failure.Pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

// Passed notes that every deletion up to a time is in the archive's stream: the log was read so
// far, and the sink "archive" has passed it.
func (a *Archiver) Passed(through change.Millis) {
	if a.through.Swap(int64(through)) != int64(through) {
		a.wake()
	}
}

// wake makes runObjects look for due parts at once.
func (a *Archiver) wake() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.nudge)
	a.nudge = make(chan struct{})
}

func (a *Archiver) nudged() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.nudge
}
