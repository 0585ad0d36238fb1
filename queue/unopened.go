package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/queue/embedded"
)

// UnopenedError reports that the embedded store has a folder of a stream that the server has not
// opened. The stream is neither there nor gone: nothing may be made in its place before an operator
// decides.
type UnopenedError struct {
	Stream string
	Why    error
	hint   string
}

func (e *UnopenedError) Error() string {
	return fmt.Sprintf("stream %s is stored and cannot be opened: %v; %s", e.Stream, e.Why, e.hint)
}

// Unwrap lets errors.Is find the cause.
func (e *UnopenedError) Unwrap() error { return e.Why }

// Is lets errors.Is(err, ErrUnopened) find it.
func (e *UnopenedError) Is(target error) bool { return target == ErrUnopened }

// ErrUnopened is matched by every *UnopenedError.
var ErrUnopened = errors.New("stored stream cannot be opened")

// The ways out of an UnopenedError.
const (
	hintRecover = "put a good copy of the queue's volume back; without one, `replicator recover --all` sets its folder " +
		"aside and begins a new life above all versions"
	hintLetters = "put a good copy of the queue's volume back; without one, move the folder out of the store: the dead " +
		"letters in it are lost, so `replicator repair --table NAME` then"
	hintArchive = "put a good copy of the queue's volume back; without one, move the folder out of the store: events in " +
		"it that were not archived yet are lost"
	hintRequests = "move its folder out of the store: it holds only requests of commands"
)

// unopenedAsks is how often a stream with a folder is looked up before it counts as unopened: the
// server makes the folder of a new stream before it registers the stream.
const unopenedAsks = 10

// checkUnopened returns an *UnopenedError when the embedded store has a folder of a stream that the
// server does not have, and a *VolumeError when that folder cannot be read.
//
// Rule 13: the server's "not found" is no fact while the stream's folder is there.
func (q *Queue) checkUnopened(ctx context.Context, stream, hint string) error {
	if q.opts.Dir == "" {
		return nil
	}
	for range unopenedAsks {
		why := embedded.WhyUnopened(q.opts.Dir, stream)
		if why == nil {
			return nil
		}
		_, err := q.conn.JS.Stream(ctx, stream)
		if err == nil {
			return nil
		}
		if !errors.Is(err, jetstream.ErrStreamNotFound) {
			return fmt.Errorf("ask about stream %s: %w", stream, err)
		}
		if err := failure.Pause(ctx, conn.LeastPause); err != nil {
			return err
		}
	}
	why := embedded.WhyUnopened(q.opts.Dir, stream)
	if why == nil {
		return nil
	}
	if !errors.Is(why, embedded.ErrDescription) {
		return &VolumeError{Stream: stream, Why: why}
	}
	return &UnopenedError{Stream: stream, Why: why, hint: hint}
}

// SetAside moves the folder of a table's log, which the embedded server has not opened, out of its
// way, so that a new life can make another log. Nothing is deleted.
func (q *Queue) SetAside(unopened *UnopenedError) error {
	if q.embedded == nil {
		return unopened
	}
	return embedded.SetAside(q.opts.Dir, unopened.Stream)
}
