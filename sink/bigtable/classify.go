package bigtable

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
)

// The codes of a RejectedError, which dead letters store and metrics count: they never change.
const (
	CodeTooOld    = "too_old"         // older than its tombstone may live: resync the item
	CodeRowKey    = "row_key"         // empty or longer than the service takes
	CodeFamily    = "family"          // without a family
	CodeQualifier = "qualifier"       // longer than the service takes
	CodeCell      = "cell_too_large"  // value larger than the service takes
	CodeMutations = "mutations"       // more mutations in a row than the service takes
	CodeRequest   = "request_too_big" // the row's request exceeds the size of a call
	CodeTimestamp = "timestamp"       // not representable, or an empty range
	CodeMalformed = "malformed"       // the write contradicts itself
	CodeService   = "refused"         // the service said InvalidArgument or OutOfRange
)

// errCredentials means that no credentials were found, or none that can be read.
var errCredentials = errors.New("find credentials")

// errAuthority means that the authorities of Options.CA cannot be read.
var errAuthority = errors.New("read bigtable.ca")

// RejectedError means that Bigtable will never take a change. The rejected row was not written, but
// earlier rows of the same write may have been. Then the item is dirty until its next change or a
// resync.
type RejectedError struct {
	Code   string // one of the Code constants
	Reason string // for people; may quote the service
}

func (e *RejectedError) Error() string { return "rejected (" + e.Code + "): " + e.Reason }

func rejectf(code, format string, args ...any) *RejectedError {
	return &RejectedError{Code: code, Reason: fmt.Sprintf(format, args...)}
}

// Classify returns the class of an error of this package. Rejected carries a *RejectedError where
// Apply returned it. Apply itself repeats writes that failed with a Transient error, until its
// context ends.
//
// A call that Bigtable throttles (ResourceExhausted) is Transient too: the concurrency limit and
// the backoff slow it down.
func Classify(err error) failure.Class {
	if err == nil {
		return failure.None
	}
	var rejected *RejectedError
	var stuck *stuckError
	var stale *StaleError
	switch {
	case errors.As(err, &rejected):
		return failure.Rejected
	case errors.As(err, &stuck):
		return failure.Fatal
	case errors.As(err, &stale), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return failure.Canceled
	}
	var st interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &st) {
		return failure.Fatal
	}
	return classOf(st.GRPCStatus().Code())
}

// classOf returns the class of a status code of the service. FailedPrecondition means an app
// profile without single-row transactions or a table in the wrong state. It is not caused by a
// change, so it must not make dead letters.
func classOf(code codes.Code) failure.Class {
	switch code {
	case codes.OK:
		return failure.None
	case codes.InvalidArgument, codes.OutOfRange:
		return failure.Rejected
	case codes.PermissionDenied, codes.Unauthenticated:
		return failure.Denied
	case codes.NotFound:
		return failure.Missing
	case codes.FailedPrecondition, codes.Unimplemented, codes.DataLoss, codes.AlreadyExists:
		return failure.Fatal
	default: // Unavailable, DeadlineExceeded, Aborted, ResourceExhausted, Canceled by the server, Internal, Unknown
		return failure.Transient
	}
}

// refusedByService reports whether the service, rather than this package, refused a write.
func refusedByService(err error) bool {
	var own *RejectedError
	return Classify(err) == failure.Rejected && !errors.As(err, &own)
}

// isVague reports whether a code does not show why the call failed. Such a call is repeated, but
// not for ever, because a server that always returns these codes is broken.
func isVague(code codes.Code) bool { return code == codes.Internal || code == codes.Unknown }

// stuckError ends the retries of a call that failed with a vague code each time.
type stuckError struct {
	tries int
	last  error
}

func (e *stuckError) Error() string {
	return fmt.Sprintf("refused without a reason %d times: %v", e.tries, e.last)
}
func (e *stuckError) Unwrap() error { return e.last }

// Answered reports whether an error is one that a call to Bigtable ended with, in whatever it is
// wrapped.
func Answered(err error) bool {
	var st interface{ GRPCStatus() *status.Status }
	return errors.As(err, &st)
}

// Explain adds class and hint to an error of Bigtable that ends a command.
func Explain(err error) error {
	hint := "are bigtable.project and bigtable.instance right, and is the service reachable from here?"
	switch Classify(err) {
	case failure.Denied:
		hint = "the account needs roles/bigtable.user, and roles/bigtable.admin for schema --apply: see docs/credentials.md"
	case failure.Missing:
		hint = "`replicator schema --apply` makes the tables and families"
	}
	switch {
	case errors.As(err, new(*tableschema.RelaxedError)):
		hint = "`replicator schema --apply --force` ignores Bigtable's warning; what it warns of: " +
			"docs/day-one.md, Bigtable before the first write"
	case errors.Is(err, errAuthority):
		hint = "bigtable.ca names a PEM file with the authority of the endpoint's certificate"
	case errors.As(err, new(x509.UnknownAuthorityError)):
		hint = "set bigtable.ca to the PEM file of the authority that has signed the endpoint's certificate"
	case errors.Is(err, errCredentials):
		hint = "gcloud auth application-default login, or the credentials of a service account: " +
			"see docs/credentials.md; for the sandbox: eval \"$(replicator sandbox env)\""
	}
	return failure.With(failure.Unready, hint, err)
}
