package archive

import (
	"context"
	"errors"
	"net/http"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// storeFailed is JetStream's code for a stream at its limit and for a store that cannot write (server/errors.json).
const storeFailed = 10077

// Transient tells whether an error of Write may pass by itself: the server is away, electing, busy, or did not
// acknowledge in time. A full stream or disk and a directory that cannot be written are not: somebody has to act.
func Transient(err error) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.ErrorCode != storeFailed && api.Code == http.StatusServiceUnavailable || api.Code == http.StatusTooManyRequests
	}
	for _, passing := range []error{
		nats.ErrNoResponders, jetstream.ErrNoStreamResponse, nats.ErrTimeout, nats.ErrDisconnected, nats.ErrConnectionReconnecting,
		nats.ErrReconnectBufExceeded, nats.ErrStaleConnection, jetstream.ErrTooManyStalledMsgs, jetstream.ErrAsyncPublishTimeout,
		context.DeadlineExceeded,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}
