package conn

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/host"
)

var (
	// ErrDenied means that the server refuses this client: wrong user, password, token or
	// certificate.
	ErrDenied = errors.New("the NATS server refuses these credentials")
	// ErrOldServer means that the server is older than what the logs need.
	ErrOldServer = errors.New("the NATS server is too old")
	// ErrUnreachable means that no server could be connected to.
	ErrUnreachable = errors.New("no server can be reached")
	// ErrGivenUp means that the client library has given the connection up and does not connect
	// again.
	ErrGivenUp = errors.New("the connection to NATS was given up")
	// ErrFull means that nothing was stored because the stream is at its limit.
	ErrFull = errors.New("log is full")
	// ErrIdle means that no message came in time.
	ErrIdle = errors.New("no message yet")
	// ErrDropped means that a consumer skipped messages that the stream's leader has: the client
	// read too slowly and dropped them, or the consumer's replica lacks them. Read them again from
	// another consumer.
	ErrDropped = errors.New("messages were dropped before they were read")
	// ErrNoLeader means that a replica answered because the stream has no leader: its answer may be
	// old.
	ErrNoLeader = errors.New("stream has no leader now")
	// ErrListing means that a listing of streams lacks one, or is no listing.
	ErrListing = errors.New("not all streams were listed")
	// ErrAttemptPending means that the cluster has neither stored nor abandoned an earlier attempt
	// to store the same.
	ErrAttemptPending = errors.New("an earlier attempt is under way")
)

// The error codes of JetStream that decide the outcome and the class of an error
// (server/errors.json).
const (
	CodeNoPeers         = 10005
	CodeClusterNotReady = 10008
	CodeNoResources     = 10023
	CodeStorage         = 10047
	CodeWrongMsgID      = 10070
	CodeTooLarge        = 10054
	CodeStreamNotFound  = 10059
	CodeWrongSequence   = 10071
	CodeStoreFailed     = 10077
	CodeWrongSequenceR3 = 10164
	CodeHeaderTooLarge  = 10097

	CodeAccountResources      = 10002
	CodeMaxStreams            = 10027
	CodeNoJetStreamForAccount = 10039
	CodeNoReplicas            = 10074
	CodeNoJetStream           = 10076
	CodeMaxStreamBytes        = 10122
)

// Outcome is the result of a publish.
type Outcome byte

// The outcomes. Only Stored and Unknown may have stored the message.
const (
	Stored     Outcome = iota
	Unknown            // the acknowledgement is missing
	Fenced             // refused: the stream's last sequence or message id is another one
	Full               // refused: the stream is at its limit
	TooLarge           // refused: it will never fit
	StreamGone         // the stream does not exist
)

// OutcomeOf returns the outcome of a publish from its error. Every error that is not listed here is
// Unknown: then the caller has to read what is stored.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return Stored
	}
	if errors.Is(err, nats.ErrMaxPayload) {
		return TooLarge
	}
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return Unknown // time-out, no responders, closed connection
	}
	switch api.ErrorCode {
	case CodeWrongSequence, CodeWrongSequenceR3, CodeWrongMsgID:
		return Fenced
	case CodeTooLarge, CodeHeaderTooLarge:
		return TooLarge
	case CodeStreamNotFound:
		return StreamGone
	case CodeNoResources, CodeStorage:
		return Full
	case CodeStoreFailed:
		// The server uses this code for the stream's limit, when nothing was stored, and for any
		// other failure of the store, such as a full disk, when the message may have been stored.
		if strings.Contains(api.Description, "maximum") {
			return Full
		}
	}
	return Unknown
}

// Classify returns what a caller can do about an error of a request or publish. A full stream is
// Fatal: sending the same again gives the same error until something is deleted.
func Classify(err error) failure.Class {
	switch outcome := OutcomeOf(err); {
	case err == nil:
		return failure.None
	case outcome == Unknown && isTemporary(err):
		return failure.Transient
	case errors.Is(err, ErrDenied), codeOf(err) == CodeNoJetStreamForAccount, codeOf(err) == CodeNoJetStream:
		return failure.Denied
	case outcome == StreamGone:
		return failure.Gone
	case outcome == TooLarge, outcome == Fenced:
		return failure.Rejected
	case errors.Is(err, context.Canceled):
		return failure.Canceled
	}
	return failure.Fatal
}

// Answered reports whether an error is one that a request or publish ended with, or that no
// connection was made, in whatever it is wrapped.
func Answered(err error) bool {
	var own jetstream.JetStreamError
	return errors.As(err, &own) || errors.Is(err, ErrDenied) || errors.Is(err, ErrUnreachable) ||
		errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrMaxPayload) ||
		slices.ContainsFunc(temporaryErrors, func(known error) bool {
			return !errors.Is(known, context.DeadlineExceeded) && errors.Is(err, known)
		})
}

// Transient reports whether the same request may succeed when it is sent again.
func Transient(err error) bool { return Classify(err) == failure.Transient }

// temporaryErrors are the errors of the client library, and of this package, after which a request
// is sent again.
var temporaryErrors = []error{
	ErrIdle, ErrDropped, ErrNoLeader, ErrListing, ErrAttemptPending,
	nats.ErrNoResponders, nats.ErrTimeout, nats.ErrDisconnected, nats.ErrConnectionReconnecting,
	nats.ErrReconnectBufExceeded,
	jetstream.ErrNoStreamResponse, jetstream.ErrNoHeartbeat, jetstream.ErrConsumerDeleted, jetstream.ErrConsumerNotFound,
	context.DeadlineExceeded,
}

// isTemporary reports whether an error with an unknown outcome comes from a server that is away,
// electing, or slow.
func isTemporary(err error) bool {
	if api := (*jetstream.APIError)(nil); errors.As(err, &api) {
		if api.ErrorCode == CodeNoJetStream || api.ErrorCode == CodeNoJetStreamForAccount {
			return false
		}
		return api.Code == 503 || api.Code == 429 || api.ErrorCode == CodeClusterNotReady ||
			IsNoSpace(api.Description) // the embedded server opens its store again
	}
	return slices.ContainsFunc(temporaryErrors, func(known error) bool { return errors.Is(err, known) })
}

// IsNoSpace reports whether the text of a server's error means that its volume is full.
func IsNoSpace(text string) bool {
	return strings.Contains(text, host.ErrNoSpace.Error()) || strings.Contains(text, host.ErrQuota.Error())
}

// codeOf returns JetStream's code, 0 for an error that is not its own.
func codeOf(err error) jetstream.ErrorCode {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.ErrorCode
	}
	return 0
}
