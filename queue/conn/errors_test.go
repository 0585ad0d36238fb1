package conn

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TestOutcomeOfAPublish lists the outcomes: only a refusal that stores nothing is definite,
// everything else is Unknown.
func TestOutcomeOfAPublish(t *testing.T) {
	api := func(code jetstream.ErrorCode, text string) error {
		return fmt.Errorf("publish: %w", &jetstream.APIError{Code: 500, ErrorCode: code, Description: text})
	}
	for _, test := range []struct {
		err  error
		want Outcome
	}{
		{nil, Stored},
		{nats.ErrTimeout, Unknown},
		{nats.ErrNoResponders, Unknown},
		{context.Canceled, Unknown},
		{errors.New("of another kind"), Unknown},
		{api(CodeClusterNotReady, "not ready"), Unknown},
		{api(CodeStoreFailed, "write: no space left on device"), Unknown},
		{api(CodeStoreFailed, "maximum bytes exceeded"), Full},
		{api(CodeNoResources, "insufficient resources"), Full},
		{api(CodeStorage, "insufficient storage"), Full},
		{api(CodeWrongSequence, "wrong last sequence"), Fenced},
		{api(CodeWrongSequenceR3, "wrong last sequence"), Fenced},
		{api(CodeWrongMsgID, "wrong last msg ID"), Fenced},
		{nats.ErrMaxPayload, TooLarge},
		{api(CodeTooLarge, "message size exceeds maximum"), TooLarge},
		{api(CodeHeaderTooLarge, "header size exceeds maximum"), TooLarge},
		{api(CodeStreamNotFound, "stream not found"), StreamGone},
	} {
		if got := OutcomeOf(test.err); got != test.want {
			t.Errorf("%v: outcome %d, want %d", test.err, got, test.want)
		}
	}
}
