package apply

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
	"github.com/tailrace-cdc/replicator/sink/archive"
	"github.com/tailrace-cdc/replicator/transform"
)

// SinkSubject is the sink that publishes what the archive's stream holds.
const SinkSubject = archiving.SinkSubject

// StoreEvent makes a dead letter of an event that the archive's subject will never take, or returns
// the sink's halt. body is the event as it would be published.
//
// Rule 8: nothing is dropped in silence. A replay stores it once, because its id is the record's
// own.
func (l *DeadLetters) StoreEvent(ctx context.Context, e *transform.Event, body []byte, code, reason string) error {
	if l.o.Table.Halts {
		return &outcome.HaltError{Code: code, Reason: reason}
	}
	key, err := l.o.Table.canonical(new(change.Decoder), []byte(e.Subject))
	if err != nil {
		return fmt.Errorf("store dead letter of an event: %w", err)
	}
	letter := deadletter.NewOfEvent(l.o.Source, SinkSubject, deadletter.Event{
		Feed: change.Feed{Stream: e.Stream, Shard: e.Shard}, Seq: e.Sequence, Version: e.Version, Created: e.Created,
		TTL: e.Class == transform.ClassTTL, Keys: []byte(e.Subject), Canonical: key, Body: body,
	}, code, reason, l.shared.now().Time())
	known, err := l.keep(ctx, letter, []byte(e.Subject))
	if err != nil {
		return fmt.Errorf("store dead letter of an event: %w", err)
	}
	if !known && l.logged.Allow() {
		l.o.Logger.Error("dead letter: an event is refused for good", zap.Inline(letter))
	}
	return nil
}

// publishLetter publishes the event of a letter.
func (x *resyncing) publishLetter(ctx context.Context, l *heldLetter) error {
	if x.o.Archive == nil {
		return errNoSubject
	}
	id := (&transform.Event{Stream: l.Feed.Stream, Shard: l.Feed.Shard, Sequence: l.Seq}).ID()
	err := x.o.Archive.Publish(ctx, archive.Message{ID: id, Body: l.Raw})
	large := (*archiving.UnpublishableError)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &large):
		return &transform.Refusal{Code: archiving.CodeTooLarge, What: large.Error()}
	case errors.Is(err, archiving.ErrNoSubject):
		return errNoSubject
	}
	return &outcome.SinkError{Err: err}
}

var errNoSubject = &transform.Refusal{
	Code: "archive", What: "the configuration has no archive.subject: set it, or drop the letter",
}
