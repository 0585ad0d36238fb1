package archive

import (
	"context"
	"errors"
	"net/http"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/failure"
)

// storeFailed is JetStream's code for a stream at its limit and for a store that cannot write
// (server/errors.json).
const storeFailed = 10077

// tooLarge is JetStream's code for a message that is larger than the stream allows.
const tooLarge = 10054

// isTooLarge reports whether a stream will never take a message of this size.
func isTooLarge(err error) bool {
	api := (*jetstream.APIError)(nil)
	return errors.As(err, &api) && api.ErrorCode == tooLarge
}

// ErrAway means that the archive takes nothing now, or that it is unknown what it took: the same
// may be stored again later.
var ErrAway = errors.New("the archive takes nothing now")

// transient lists the errors of a server that is away, electing or busy, or that did not
// acknowledge in time.
var transient = []error{
	nats.ErrNoResponders, jetstream.ErrNoStreamResponse, nats.ErrTimeout, nats.ErrDisconnected,
	nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded, nats.ErrStaleConnection,
	jetstream.ErrTooManyStalledMsgs, jetstream.ErrAsyncPublishTimeout, context.DeadlineExceeded,
}

// Classify returns the class of an error that Write returned: None, Transient, Canceled or Fatal. A
// full stream or disk and a directory that cannot be written are Fatal, because an operator has to
// act.
func Classify(err error) failure.Class {
	if err == nil {
		return failure.None
	}
	if errors.Is(err, ErrAway) {
		return failure.Transient
	}
	var api *jetstream.APIError
	if errors.As(err, &api) {
		busy := api.Code == http.StatusServiceUnavailable && api.ErrorCode != storeFailed
		if busy || api.Code == http.StatusTooManyRequests {
			return failure.Transient
		}
		return failure.Fatal
	}
	for _, passing := range transient {
		if errors.Is(err, passing) {
			return failure.Transient
		}
	}
	if errors.Is(err, context.Canceled) {
		return failure.Canceled
	}
	return failure.Fatal
}
