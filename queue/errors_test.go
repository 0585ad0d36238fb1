package queue

import (
	"context"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
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
		{conn.ErrIdle, failure.Transient},
		{conn.ErrNoLeader, failure.Transient},
		{nats.ErrTimeout, failure.Transient},
		{nats.ErrNoResponders, failure.Transient},
		{context.DeadlineExceeded, failure.Transient},
		{fmt.Errorf("%w: %w", ErrOutcomeUnknown, nats.ErrTimeout), failure.Transient},
		{api(503, conn.CodeClusterNotReady, "not ready"), failure.Transient},
		{api(500, conn.CodeStoreFailed, "write: no space left on device"), failure.Transient},
		{api(503, conn.CodeNoJetStream, "JetStream not enabled"), failure.Denied},
		{api(503, conn.CodeNoJetStreamForAccount, "JetStream not enabled for account"), failure.Denied},
		{ErrDenied, failure.Denied},
		{ErrNoLog, failure.Missing},
		{api(404, conn.CodeStreamNotFound, "stream not found"), failure.Gone},
		{ErrEmptied, failure.Gone},
		{ErrGap, failure.Gone},
		{deadletter.ErrNotFound, failure.Gone},
		{ErrTooLarge, failure.Rejected},
		{&frame.TooLargeError{}, failure.Rejected},
		{nats.ErrMaxPayload, failure.Rejected},
		{api(400, conn.CodeWrongSequence, "wrong last sequence"), failure.Rejected},
		{fmt.Errorf("%w: %w", ErrOutcomeUnknown, api(400, conn.CodeWrongMsgID, "wrong last msg ID")), failure.Rejected},
		{context.Canceled, failure.Canceled},
		{ErrFull, failure.Fatal},
		{api(503, conn.CodeStoreFailed, "maximum bytes exceeded"), failure.Fatal},
		{api(503, conn.CodeNoResources, "insufficient resources"), failure.Fatal},
		{ErrHeld, failure.Fatal},
		{ErrLost, failure.Fatal},
		{ErrChain, failure.Fatal},
		{&DamageError{}, failure.Fatal},
		{&conn.FormatError{}, failure.Fatal},
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
