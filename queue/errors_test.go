package queue

import (
	"context"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/frame"
)

// TestErrorsHaveAClass lists the errors that callers of this package meet, wrapped as they are.
func TestErrorsHaveAClass(t *testing.T) {
	api := func(status int, code jetstream.ErrorCode, text string) error {
		return &jetstream.APIError{Code: status, ErrorCode: code, Description: text}
	}
	for _, test := range []struct {
		err  error
		want failure.Class
	}{
		{nil, failure.None},
		{errIdle, failure.Transient},
		{errNoLeader, failure.Transient},
		{nats.ErrTimeout, failure.Transient},
		{nats.ErrNoResponders, failure.Transient},
		{context.DeadlineExceeded, failure.Transient},
		{fmt.Errorf("%w: %w", ErrOutcomeUnknown, nats.ErrTimeout), failure.Transient},
		{api(503, codeClusterNotReady, "not ready"), failure.Transient},
		{api(500, codeStoreFailed, "write: no space left on device"), failure.Transient},
		{api(503, codeNoJetStream, "JetStream not enabled"), failure.Denied},
		{api(503, codeNoJetStreamForAccount, "JetStream not enabled for account"), failure.Denied},
		{ErrDenied, failure.Denied},
		{ErrNoLog, failure.Missing},
		{api(404, codeStreamNotFound, "stream not found"), failure.Gone},
		{ErrEmptied, failure.Gone},
		{ErrGap, failure.Gone},
		{ErrNoLetter, failure.Gone},
		{ErrTooLarge, failure.Rejected},
		{&frame.TooLargeError{}, failure.Rejected},
		{nats.ErrMaxPayload, failure.Rejected},
		{api(400, codeWrongSequence, "wrong last sequence"), failure.Rejected},
		{fmt.Errorf("%w: %w", ErrOutcomeUnknown, api(400, codeWrongMsgID, "wrong last msg ID")), failure.Rejected},
		{context.Canceled, failure.Canceled},
		{ErrFull, failure.Fatal},
		{api(503, codeStoreFailed, "maximum bytes exceeded"), failure.Fatal},
		{api(503, codeNoResources, "insufficient resources"), failure.Fatal},
		{ErrHeld, failure.Fatal},
		{ErrLost, failure.Fatal},
		{ErrChain, failure.Fatal},
		{&DamageError{}, failure.Fatal},
		{&FormatError{}, failure.Fatal},
		{ErrLocked, failure.Fatal},
	} {
		if got := Classify(test.err); got != test.want {
			t.Errorf("%v: class %v, want %v", test.err, got, test.want)
		}
		if test.err == nil {
			continue
		}
		if got := Classify(fmt.Errorf("open log of Orders: %w", test.err)); got != test.want {
			t.Errorf("%v, wrapped: class %v, want %v", test.err, got, test.want)
		}
	}
}
