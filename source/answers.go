package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/tailrace-cdc/replicator/failure"
)

// reported are the calls that reading needs. Others may fail for ever without making a table not ready.
var reported = map[string]bool{"DescribeTable": true, "DescribeStream": true, "GetShardIterator": true, "GetRecords": true}

// report passes on how a call ended. That something is trimmed, gone or expired is an answer: the service does not fail.
func (s *Source) report(op string, err error) {
	if !reported[op] {
		return
	}
	switch Classify(err) {
	case failure.Canceled:
		return
	case failure.Gone:
		err = nil
	case failure.Fatal:
		if isValidation(err) {
			err = nil
		}
	case failure.Transient:
		if isExpired(err) {
			err = nil
		}
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", op, s.because(err))
	}
	s.opt.Report(op, err)
}

// because adds the last network error to an error about a deadline: the SDK, which repeats requests, does not keep it.
func (s *Source) because(err error) error {
	why := s.silence.Load()
	if why == nil || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, *why) {
		return err
	}
	return fmt.Errorf("%w (%w)", err, *why)
}

// answers notes which requests are not answered, and why: the address and what the network said.
type answers struct {
	s    *Source
	next http.RoundTripper
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := a.next.RoundTrip(r)
	switch {
	case err == nil:
		if a.s.silence.Load() != nil {
			a.s.silence.Store(nil)
		}
	case !errors.Is(r.Context().Err(), context.Canceled):
		why := fmt.Errorf("%s: %w", r.URL.Host, err)
		a.s.silence.Store(&why)
	}
	return res, err
}

// CloseIdleConnections lets http.Client close those of the transport.
func (a *answers) CloseIdleConnections() {
	if c, ok := a.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
