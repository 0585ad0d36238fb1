package source

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source/raw"
)

var (
	// ErrTrimmed means that the next record after a position is older than the stream's 24 hours:
	// it is lost.
	ErrTrimmed = errors.New("records were trimmed before they were read")
	// ErrShardGone means that the service does not know the shard any more.
	ErrShardGone = errors.New("the shard is gone")
	// ErrRepeatedCursor means that a listing returned the cursor of an earlier page.
	ErrRepeatedCursor = errors.New("listing repeats a cursor")
	// ErrNoDate means that a reply has no Date header, so that the time of the reading is unknown.
	// It is Transient: the caller reads again.
	ErrNoDate = raw.ErrNoDate
	// ErrDateDropped means that the Date of a reply is far from the service's time, as earlier
	// replies show it. It is Transient as well.
	ErrDateDropped = raw.ErrDateDropped
)

// Error is a call that was refused or failed, with its class and what to do about it.
type Error struct {
	Op    string // "describe table Orders"
	Class failure.Class
	Hint  string // may be empty
	Err   error
}

// Error returns the service's own code and message, or why it could not be reached, without the
// SDK's description of the call, which Unwrap returns.
func (e *Error) Error() string {
	if isCredentials(e.Err) {
		return e.Op + ": " + credentialsText(e.Err)
	}
	if api := (smithy.APIError)(nil); errors.As(e.Err, &api) && api.ErrorMessage() != "" {
		return fmt.Sprintf("%s: %s: %s", e.Op, api.ErrorCode(), api.ErrorMessage())
	}
	if send := (*smithyhttp.RequestSendError)(nil); errors.As(e.Err, &send) && send.Err != nil { // nothing answered
		return fmt.Sprintf("%s: %v", e.Op, send.Err)
	}
	return fmt.Sprintf("%s: %v", e.Op, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// GapError ends a Reader because the service answers that its position cannot be read any more. It
// wraps ErrTrimmed or ErrShardGone.
//
// Rules 8 and 13: it is never turned into a silent jump to the trim horizon, and one answer proves
// no loss. The caller has it confirmed, and records a gap or lets the reader read on.
type GapError struct {
	Feed     change.Feed
	Position change.Position       // up to which the feed was read
	After    change.SequenceNumber // the last record that was read, also one that was skipped; empty: none
	From, To change.Millis         // what would be lost was created between these; From is 0 when nothing is known
	Horizon  Horizon               // for ErrTrimmed: begun after the answer
	Err      error
}

// Horizon is what a read from the trim horizon of a shard showed.
type Horizon struct {
	First   change.SequenceNumber // of the first record; empty: there was none, or the read failed
	Created change.Millis         // of that record
	Nothing bool                  // the service answers that nothing of the shard can be read
}

func (e *GapError) Error() string {
	return fmt.Sprintf("read shard %s after %q, records created from %s to %s: %v",
		e.Feed.Shard, e.Position.After, stamp(e.From), stamp(e.To), e.Err)
}

// Trimmed reports whether the answer was that records are trimmed, not that the shard is gone.
func (e *GapError) Trimmed() bool { return errors.Is(e.Err, ErrTrimmed) }

func (e *GapError) Unwrap() error { return e.Err }

func stamp(ms change.Millis) string {
	if ms == 0 {
		return "an unknown time"
	}
	return ms.Time().UTC().Format(time.RFC3339)
}

var deniedCodes = map[string]bool{
	"AccessDeniedException": true, "AccessDenied": true, "UnrecognizedClientException": true,
	"InvalidSignatureException": true, "SignatureDoesNotMatch": true, "IncompleteSignature": true,
	"IncompleteSignatureException": true, "MissingAuthenticationToken": true,
	"MissingAuthenticationTokenException": true, "InvalidClientTokenId": true, "NotAuthorized": true,
	"OptInRequired": true, "KMSAccessDeniedException": true, "RequestExpired": true, "InvalidAccessKeyId": true,
}

var throttles = retry.IsErrorThrottles(retry.DefaultThrottles)

// Classify returns the class of an error that this package or the AWS SDK returned. Trimmed records
// are Gone, as shards, streams and tables that do not exist any more are; errors.Is with ErrTrimmed
// distinguishes them.
func Classify(err error) failure.Class {
	var own *Error
	switch {
	case err == nil:
		return failure.None
	case errors.As(err, &own):
		return own.Class
	case isTrimmed(err), errors.Is(err, ErrShardGone):
		return failure.Gone
	case errors.Is(err, ErrRepeatedCursor):
		return failure.Transient
	case errors.Is(err, context.Canceled):
		return failure.Canceled
	case isRetryable(err):
		return failure.Transient
	}
	if api := smithy.APIError(nil); errors.As(err, &api) && !isCredentials(err) {
		return classifyAPI(api, err)
	}
	return classifyTransport(err)
}

// isRetryable reports whether an error declares itself retryable: ours about a malformed reply, and
// the SDK's about a signature that was refused because our clock is wrong, which the SDK corrects
// for the next call.
func isRetryable(err error) bool {
	var v interface{ RetryableError() bool }
	return errors.As(err, &v) && v.RetryableError()
}

// classifyAPI returns the class of an error that the service returned.
func classifyAPI(api smithy.APIError, err error) failure.Class {
	var status *smithyhttp.ResponseError
	switch code := api.ErrorCode(); {
	case code == "ResourceNotFoundException":
		return failure.Gone
	case code == "ExpiredIteratorException", expiredCodes[code]:
		return failure.Transient
	case code == "LimitExceededException", throttles.IsErrorThrottle(err).Bool():
		return failure.Throttled
	case deniedCodes[code]:
		return failure.Denied
	case code == "InternalServerError", code == "InternalFailure", code == "ServiceUnavailable":
		return failure.Transient
	case errors.As(err, &status) && status.HTTPStatusCode() >= 500:
		return failure.Transient
	case errors.As(err, &status) && status.HTTPStatusCode() == 429:
		return failure.Throttled
	case errors.As(err, &status) && (status.HTTPStatusCode() == 401 || status.HTTPStatusCode() == 403):
		return failure.Denied
	}
	return failure.Fatal
}

// classifyTransport returns the class of an error without a reply of the service.
func classifyTransport(err error) failure.Class {
	var (
		send   *smithyhttp.RequestSendError
		netErr net.Error
		status *smithyhttp.ResponseError
		decode *smithy.DeserializationError
	)
	switch {
	case isCredentials(err):
		return credentialsClass(err)
	case errors.As(err, &send), errors.As(err, &netErr), errors.As(err, &decode),
		errors.Is(err, context.DeadlineExceeded):
		return failure.Transient
	case errors.As(err, &status) && status.HTTPStatusCode() >= 500:
		return failure.Transient
	}
	return failure.Fatal
}

var hints = map[failure.Class]string{
	failure.Throttled: "another reader may share the stream: DynamoDB allows two readers a shard, one for global tables",
	failure.Gone:      "check the table's name, the region and the endpoint; a stream outlives its table by a day at most",
	failure.Denied: "check the credentials and the policy: DescribeTable, DescribeTimeToLive, Scan and " +
		"BatchGetItem on the table, DescribeStream, GetShardIterator and GetRecords on its stream",
	failure.Transient: "check that the endpoint answers",
}

// hintMalformed is the hint of a reply that is not one of DynamoDB.
const hintMalformed = "replies are not whole: check whether a proxy between the replicator and DynamoDB changes them"

// Hint returns what an operator can do about the error, or "".
func Hint(err error) string {
	var own *Error
	if errors.As(err, &own) && own.Hint != "" {
		return own.Hint
	}
	return hintOf(Classify(err), err)
}

// Refused reports whether a call failed for credentials that are missing, have expired, or lack a
// permission. Those that have expired are renewed by others as a rule, so the class alone is
// Transient.
func Refused(err error) bool { return Classify(err) == failure.Denied || Unauthenticated(err) }

// Unauthenticated reports whether a call failed for the credentials themselves: there are none, or
// they have expired, or the signature is refused. No permission mends that.
func Unauthenticated(err error) bool {
	code := codeOf(err)
	return isCredentials(err) || expiredCodes[code] || skewCodes[code]
}

// hintOf returns what an operator can do about an error with the given class, or "".
func hintOf(class failure.Class, err error) string {
	switch code := codeOf(err); {
	case isCredentials(err):
		return credentialsHint(err)
	case expiredCodes[code]:
		return "the session token has expired: renew it (`aws sso login`, new AWS_* variables, the pod's role); " +
			"reading goes on by itself"
	case skewCodes[code]:
		return "DynamoDB refuses the signature: is this machine's clock right, and the secret key?"
	}
	if isTrimmed(err) {
		return ""
	}
	if bad := (*raw.MalformedError)(nil); errors.As(err, &bad) {
		return hintMalformed
	}
	if class == failure.Canceled && errors.Is(err, context.DeadlineExceeded) { // the caller waited no longer
		class = failure.Transient
	}
	return hints[class]
}

// wrap returns the error of a call as an *Error, with class and hint. op is "verb noun". Once ctx
// has ended the class is Canceled, whatever err is.
func wrap(ctx context.Context, op string, err error) error {
	if ctx.Err() != nil {
		return &Error{Op: op, Class: failure.Canceled, Err: context.Cause(ctx)}
	}
	if own := (*Error)(nil); errors.As(err, &own) {
		return err
	}
	class := Classify(err)
	return &Error{Op: op, Class: class, Hint: hintOf(class, err), Err: err}
}

// classLabel returns the class of an error as the metrics spell it, with "trimmed" apart from
// "gone".
func classLabel(err error) string {
	if isTrimmed(err) {
		return "trimmed"
	}
	return Classify(err).String()
}

// isTrimmed reports whether an error, the service's or our own, means that the requested records
// were trimmed.
func isTrimmed(err error) bool {
	return errors.Is(err, ErrTrimmed) || isCode(err, "TrimmedDataAccessException")
}

func isCode(err error, code string) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == code
}

func isExpired(err error) bool {
	var e *streamtypes.ExpiredIteratorException
	return errors.As(err, &e) || isCode(err, "ExpiredIteratorException")
}

func isValidation(err error) bool { return isCode(err, "ValidationException") }

// Answered reports whether an error is one that a call to DynamoDB ended with, in whatever it is
// wrapped.
func Answered(err error) bool {
	var own *Error
	var api smithy.APIError
	var call *smithy.OperationError
	return errors.As(err, &own) || errors.As(err, &api) || errors.As(err, &call)
}

// Explain adds class and hint to an error of DynamoDB that ends a command.
func Explain(err error) error {
	hint := Hint(err)
	if hint == "" {
		hint = "are region, endpoint and credentials right? `aws sts get-caller-identity` shows who you are"
	}
	return failure.With(failure.Unready, hint, err)
}
