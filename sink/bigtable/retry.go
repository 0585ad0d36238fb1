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

// retryError makes the error for backoff.Retry: a permanent one unless err is transient, and one
// with a delay if the service requests a delay.
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

// newBackOff makes delays that grow from 20 ms to 2 s, so that all lanes write again within 3 s
// after an outage.
func newBackOff() backoff.BackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier, b.RandomizationFactor = 20*time.Millisecond, 2*time.Second, 1.7, 0.5
	return b
}

// interrupted returns an error of class Canceled: the caller's context ended. It contains the text
// of the call's last error.
func interrupted(ctx context.Context, last error) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w (%s)", ctx.Err(), cause, textOf(last))
	}
	return fmt.Errorf("%w (%s)", ctx.Err(), textOf(last))
}

// textOf returns the text of an error, to be used without wrapping it, because the class must come
// from the context.
func textOf(err error) string {
	if err == nil {
		return "no attempt was made"
	}
	return err.Error()
}

// orInterrupted corrects the class of an error of Google's client, which reports the end of the
// caller's context as a status of the service.
func orInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil && Classify(err) != failure.Canceled {
		return interrupted(ctx, err)
	}
	return err
}
