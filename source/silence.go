package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
)

// silence is why the newest request got no reply: the address and the network's error. It is nil after a reply.
type silence struct{ why atomic.Pointer[error] }

// withCause adds the last network error to an error about a deadline. The SDK, which repeats requests, drops it.
func (s *silence) withCause(err error) error {
	why := s.why.Load()
	if why == nil || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, *why) {
		return err
	}
	return fmt.Errorf("%w (%w)", err, *why)
}

// silenceTransport records in silence why requests get no reply.
type silenceTransport struct {
	next    http.RoundTripper
	silence *silence
}

// RoundTrip sends the request by the next transport.
func (t *silenceTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(r)
	switch {
	case err == nil:
		if t.silence.why.Load() != nil {
			t.silence.why.Store(nil)
		}
	case !errors.Is(r.Context().Err(), context.Canceled):
		why := fmt.Errorf("%s: %w", r.URL.Host, err)
		t.silence.why.Store(&why)
	}
	return res, err
}

// CloseIdleConnections closes the idle connections of the next transport, for http.Client.
func (t *silenceTransport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
