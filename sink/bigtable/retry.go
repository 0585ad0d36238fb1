package bigtable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	"github.com/tailrace-cdc/replicator/failure"
)

// retryError tells backoff what comes after err: nothing, the service's own wish, or the usual pause.
func retryError(err error) error {
	if err == nil {
		return nil
	}
	if Classify(err) != failure.Transient {
		return backoff.Permanent(err)
	}
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok && info.RetryDelay.AsDuration() > 0 {
			return &backoff.RetryAfterError{Duration: min(info.RetryDelay.AsDuration(), time.Minute)}
		}
	}
	return err
}

// newBackOff grow from 20 ms to 2 s: an outage ends for all lanes within 3 s of the service's return.
func newBackOff() backoff.BackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier, b.RandomizationFactor = 20*time.Millisecond, 2*time.Second, 1.7, 0.5
	return b
}

// interrupted says that the caller's context ended, and what the call was doing then.
func interrupted(ctx context.Context, last error) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w (%s)", ctx.Err(), cause, textOf(last))
	}
	return fmt.Errorf("%w (%s)", ctx.Err(), textOf(last))
}

// textOf says what an error says without wrapping it: its kind must not hide that the context ended.
func textOf(err error) string {
	if err == nil {
		return "no attempt was made"
	}
	return err.Error()
}

// orInterrupted gives err its right kind where it came from Google's client, which reports the end of the
// caller's context as the service's status.
func orInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil && Classify(err) != failure.Canceled {
		return interrupted(ctx, err)
	}
	return err
}
