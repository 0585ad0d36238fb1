package raw

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
)

// NetworkFailure stores why the newest request got no reply: the address and the network's error. A
// reply clears it. It is safe for concurrent use.
type NetworkFailure struct{ why atomic.Pointer[error] }

// WithCause adds the stored network error to an error about a deadline. The SDK, which repeats
// requests, drops it.
func (f *NetworkFailure) WithCause(err error) error {
	why := f.why.Load()
	if why == nil || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, *why) {
		return err
	}
	return fmt.Errorf("%w (%w)", err, *why)
}

// Transport is an http.RoundTripper that stores in Failure why requests get no reply.
type Transport struct {
	Next    http.RoundTripper
	Failure *NetworkFailure
}

// RoundTrip sends the request by the next transport.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.Next.RoundTrip(r)
	switch {
	case err == nil:
		if t.Failure.why.Load() != nil {
			t.Failure.why.Store(nil)
		}
	case !errors.Is(r.Context().Err(), context.Canceled):
		why := fmt.Errorf("%s: %w", r.URL.Host, err)
		t.Failure.why.Store(&why)
	}
	return res, err
}

// CloseIdleConnections closes the idle connections of the next transport, for http.Client.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.Next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
