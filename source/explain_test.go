package source

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/smithy-go"

	"github.com/tailrace-cdc/replicator/failure"
)

// TestExplainedErrorHasAHint where the error has none of its own, too.
func TestExplainedErrorHasAHint(t *testing.T) {
	plain := errors.New("plain")
	class, hint := failure.Of(Explain(plain))
	if class != failure.Unready || !strings.Contains(hint, "aws sts get-caller-identity") {
		t.Errorf("%s, %q", class, hint)
	}
	own := &Error{Class: failure.Denied, Hint: "grant it", Err: plain}
	if _, hint := failure.Of(Explain(own)); hint != "grant it" || !errors.Is(Explain(own), plain) {
		t.Errorf("%q", hint)
	}
}

// TestSilenceHasAHint: a call that ran out of time and one that was interrupted have the same
// class. Only the first one has a hint, which names the endpoint.
func TestSilenceHasAHint(t *testing.T) {
	for cause, want := range map[error]string{
		context.DeadlineExceeded: hints[failure.Transient], context.Canceled: "",
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if got := Hint(wrap(ctx, "describe table", errors.New("no answer"))); got != want {
			t.Errorf("%v: %q, want %q", cause, got, want)
		}
	}
}

// TestReportedErrorIsTheServicesOwn: status shows what DynamoDB answered, without the SDK's
// description of the call.
func TestReportedErrorIsTheServicesOwn(t *testing.T) {
	denied := &smithy.OperationError{ServiceID: "DynamoDB Streams", OperationName: "GetRecords",
		Err: &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not authorized"}}
	var got error
	s := &Source{opt: Options{Report: func(_ string, err error) { got = err }}}
	s.report("GetRecords", denied)
	if want := "GetRecords: AccessDeniedException: not authorized"; got.Error() != want || !errors.Is(got, denied) {
		t.Errorf("%v, want %s", got, want)
	}
}
