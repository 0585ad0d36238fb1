package bigtable

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Kind says what an error of this package asks of its caller.
type Kind uint8

const (
	// None is the kind of a nil error.
	None Kind = iota
	// Transient errors pass by themselves; Apply returns them only when its context ended first.
	Transient
	// Refused changes will never be taken: errors.As gives the *Rejected to make a dead letter of.
	Refused
	// Denied means credentials or permissions; the same call may succeed once somebody has granted them.
	Denied
	// Missing means that the table or a column family is not there yet; `schema --apply` makes it.
	Missing
	// Canceled means that the caller's own context ended.
	Canceled
	// Fatal is everything else: halt the table, say so, try again later.
	Fatal
)

var kindNames = [...]string{"ok", "transient", "rejected", "denied", "missing", "canceled", "fatal"}

// String gives the word used in metrics and logs.
func (k Kind) String() string { return kindNames[k] }

// Codes of a Rejected: stable words, kept in dead letters and counted by metrics.
const (
	CodeTooOld    = "too_old"         // older than its tombstone may live: resync the item
	CodeRowKey    = "row_key"         // empty or longer than the service takes
	CodeFamily    = "family"          // no family named
	CodeQualifier = "qualifier"       // longer than the service takes
	CodeCell      = "cell_too_large"  // value larger than the service takes
	CodeMutations = "mutations"       // more mutations in a row than the service takes
	CodeRequest   = "request_too_big" // the row's request exceeds the size of a call
	CodeTimestamp = "timestamp"       // not representable, or an empty range
	CodeMalformed = "malformed"       // the write contradicts itself
	CodeService   = "refused"         // the service said InvalidArgument or OutOfRange
)

// Rejected is a change that Bigtable will never take. Nothing of the refused row was written, but rows of
// the same write before it may have been: the item is dirty until its next change or a resync.
type Rejected struct {
	Code   string // one of the Code constants
	Reason string // for people; may quote the service
}

func (r *Rejected) Error() string { return "rejected (" + r.Code + "): " + r.Reason }

func rejectf(code, format string, args ...any) *Rejected {
	return &Rejected{Code: code, Reason: fmt.Sprintf(format, args...)}
}

// Classify tells what to do about an error returned by this package.
func Classify(err error) Kind {
	if err == nil {
		return None
	}
	var rejected *Rejected
	var stuck *stuckError
	switch {
	case errors.As(err, &rejected):
		return Refused
	case errors.As(err, &stuck):
		return Fatal
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Canceled
	}
	var st interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &st) {
		return Fatal
	}
	return kindOf(st.GRPCStatus().Code())
}

// kindOf sorts the service's codes. FailedPrecondition is an app profile without single-row transactions
// or a table in the wrong state, never the fault of one change: it must not turn changes into dead letters.
func kindOf(code codes.Code) Kind {
	switch code {
	case codes.OK:
		return None
	case codes.InvalidArgument, codes.OutOfRange:
		return Refused
	case codes.PermissionDenied, codes.Unauthenticated:
		return Denied
	case codes.NotFound:
		return Missing
	case codes.FailedPrecondition, codes.Unimplemented, codes.DataLoss, codes.AlreadyExists:
		return Fatal
	default: // Unavailable, DeadlineExceeded, Aborted, ResourceExhausted, Canceled by the server, Internal, Unknown
		return Transient
	}
}

// vague codes are worth a few tries but not endless ones: a server that answers them every time is broken
// or is trying to say something that has no code.
func vague(code codes.Code) bool { return code == codes.Internal || code == codes.Unknown }

// stuckError ends the retries of a call that kept failing with a vague code.
type stuckError struct {
	tries int
	last  error
}

func (e *stuckError) Error() string {
	return fmt.Sprintf("refused without a reason %d times: %v", e.tries, e.last)
}
func (e *stuckError) Unwrap() error { return e.last }
