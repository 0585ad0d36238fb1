package clients

import (
	"errors"
	"fmt"
	"testing"

	"github.com/aws/smithy-go"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source"
)

// TestWhatAServiceAnswersIsTheEnvironment: an error that no caller has explained is not the
// command's fault, and has a hint.
func TestWhatAServiceAnswersIsTheEnvironment(t *testing.T) {
	for _, of := range []error{
		status.Error(codes.Internal, "a wrong answer"),
		&smithy.GenericAPIError{Code: "InternalServerError"},
		&source.Error{Op: "scan", Err: errors.New("cut off")},
		jetstream.ErrInvalidJetStreamResponse, nats.ErrNoResponders, nats.ErrConnectionClosed,
	} {
		got := Explain(fmt.Errorf("compare: %w", errors.Join(errors.New("other"), of)))
		if class, hint := failure.Of(got); class != failure.Unready || hint == "" || !errors.Is(got, of) {
			t.Errorf("%v: %v, hint %q", of, class, hint)
		}
	}
	own := errors.New("write report: short write")
	explained := failure.Usagef("give it", "no table: %w", nats.ErrTimeout)
	for _, as := range []error{nil, own, explained} {
		if got := Explain(as); got != as { //nolint:errorlint // the same error
			t.Errorf("%v became %v", as, got)
		}
	}
}
