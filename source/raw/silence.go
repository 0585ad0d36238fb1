package raw

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
)

// Silence is why the newest request got no reply: the address and the network's error. It is nil after a reply.
type Silence struct{ why atomic.Pointer[error] }

// WithCause adds the last network error to an error about a deadline. The SDK, which repeats requests, drops it.
func (s *Silence) WithCause(err error) error {
	why := s.why.Load()
	if why == nil || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, *why) {
		return err
	}
	return fmt.Errorf("%w (%w)", err, *why)
}

// Transport records in Silence why requests get no reply.
type Transport struct {
	Next    http.RoundTripper
	Silence *Silence
}

// RoundTrip sends the request by the next transport.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.Next.RoundTrip(r)
	switch {
	case err == nil:
		if t.Silence.why.Load() != nil {
			t.Silence.why.Store(nil)
		}
	case !errors.Is(r.Context().Err(), context.Canceled):
		why := fmt.Errorf("%s: %w", r.URL.Host, err)
		t.Silence.why.Store(&why)
	}
	return res, err
}

// CloseIdleConnections closes the idle connections of the next transport, for http.Client.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.Next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
