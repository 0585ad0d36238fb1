package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// reported are the calls without which nothing is read. Others may be refused for ever and harm nothing.
var reported = map[string]bool{"DescribeTable": true, "DescribeStream": true, "GetShardIterator": true, "GetRecords": true}

// report tells how a call ended. What is trimmed, gone or expired the service has said: it answers.
func (s *Source) report(op string, err error) {
	if !reported[op] {
		return
	}
	switch Classify(err) {
	case Canceled:
		return
	case Trimmed, Gone:
		err = nil
	case Fatal:
		if isValidation(err) {
			err = nil
		}
	case Transient:
		if isExpired(err) {
			err = nil
		}
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", op, s.because(err))
	}
	s.opt.Report(op, err)
}

// because adds to an error about a deadline why no request before it was answered: the SDK, which repeats them,
// forgets that.
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
