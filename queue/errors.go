package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/frame"
)

var (
	// ErrNoLog means that the table has no log in this queue.
	ErrNoLog = errors.New("no such log")
	// ErrHeld means that another owner holds the log and showed life until the caller's time was up.
	ErrHeld = errors.New("log is held by another owner")
	// ErrLost means that another owner has claimed the log. The writer is dead; claim again.
	ErrLost = errors.New("log was claimed by another owner")
	// ErrOutcomeUnknown means that nobody knows what the stream holds now. Drop what is in memory, then Recover.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrFull means that nothing was stored because the log is at its limit. Wait for trimming, append again.
	ErrFull = errors.New("log is full")
	// ErrTooLarge means that nothing was stored because the entry exceeds what the server accepts.
	ErrTooLarge = frame.ErrTooLarge
	// ErrEmptied means that the stream is not the one that was opened, or lost entries that it had: it was
	// deleted, re-created, emptied or put back to an older copy. An operator decides.
	ErrEmptied = errors.New("log was emptied or re-created")
	// ErrGap means that the entries after a mark were trimmed away, or that the mark lies beyond the end.
	ErrGap = errors.New("entries are missing")
	// ErrDamaged means that entries inside the log cannot be read; the error is a *DamageError. An operator decides.
	ErrDamaged = errors.New("log is damaged")
	// ErrChain means that the entries read so far are not the predecessors of what the stream holds.
	ErrChain = errors.New("hash chain is broken")
	// ErrLocked means that another process has the store open.
	ErrLocked = errors.New("store is in use by another process")
	// ErrNewer means that the stream was made by a newer format than this build reads.
	ErrNewer = errors.New("log has a newer format")
)

// FormatError says which format is needed. It matches ErrNewer.
type FormatError struct {
	What string
	Need int
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s has format %d, this build reads up to %d: use a newer replicator", e.What, e.Need, formatNumber)
}

// Is lets errors.Is(err, ErrNewer) find it.
func (e *FormatError) Is(target error) bool { return target == ErrNewer }

// JetStream's error codes that decide what an append came to (server/errors.json).
const (
	codeNoPeers         = 10005
	codeClusterNotReady = 10008
	codeNoResources     = 10023
	codeStorage         = 10047
	codeWrongMsgID      = 10070
	codeTooLarge        = 10054
	codeStreamNotFound  = 10059
	codeWrongSequence   = 10071
	codeStoreFailed     = 10077
	codeWrongSequenceR3 = 10164
	codeHeaderTooLarge  = 10097

	codeAccountResources      = 10002
	codeMaxStreams            = 10027
	codeNoJetStreamForAccount = 10039
	codeNoReplicas            = 10074
	codeNoJetStream           = 10076
	codeMaxStreamBytes        = 10122
)

type outcome byte

const (
	stored outcome = iota
	inDoubt
	fenced   // refused: the last sequence is another one
	full     // refused: at the limit
	tooLarge // refused: will never fit
	gone     // the stream is not there
)

// classify says what an append's error means. Anything unknown is doubt: the safe reading.
func classify(err error) outcome {
	if err == nil {
		return stored
	}
	if errors.Is(err, nats.ErrMaxPayload) {
		return tooLarge
	}
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return inDoubt // time-out, no responders, closed connection
	}
	switch api.ErrorCode {
	case codeWrongSequence, codeWrongSequenceR3, codeWrongMsgID:
		return fenced
	case codeTooLarge, codeHeaderTooLarge:
		return tooLarge
	case codeStreamNotFound:
		return gone
	case codeNoResources, codeStorage:
		return full
	case codeStoreFailed:
		// The same code covers the limit, which stores nothing, and any other failure of the store, such as
		// a full disk, which may have stored.
		if strings.Contains(api.Description, "maximum") {
			return full
		}
	}
	return inDoubt
}

// saysNoSpace tells whether an error of the server, which comes as text, is one of a full volume.
func saysNoSpace(text string) bool {
	return strings.Contains(text, unix.ENOSPC.Error()) || strings.Contains(text, unix.EDQUOT.Error())
}

// codeOf returns JetStream's code, 0 for an error that is not its own.
func codeOf(err error) jetstream.ErrorCode {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.ErrorCode
	}
	return 0
}

// Classify returns what a caller can do about an error of this package. The sentinels above say more than their class:
// look for ErrFull, ErrHeld, ErrLost and ErrOutcomeUnknown first.
//
//	Transient  the server is away, electing, or slow: ask again
//	Denied     the server refuses the credentials, or the account has no JetStream
//	Missing    ErrNoLog
//	Gone       ErrEmptied, ErrGap, ErrNoLetter: what was asked for does not exist any more
//	Rejected   ErrTooLarge, and an append after another sequence than the log's last
//	Canceled   the caller's context was canceled; one that ran out of time is Transient
//	Fatal      everything else, a full log too: asking again gives the same error
func Classify(err error) failure.Class {
	switch how := classify(err); {
	case err == nil:
		return failure.None
	case how == inDoubt && mayPass(err):
		return failure.Transient
	case errors.Is(err, ErrDenied), codeOf(err) == codeNoJetStreamForAccount, codeOf(err) == codeNoJetStream:
		return failure.Denied
	case errors.Is(err, ErrNoLog):
		return failure.Missing
	case how == gone, errors.Is(err, ErrEmptied), errors.Is(err, ErrGap), errors.Is(err, ErrNoLetter):
		return failure.Gone
	case how == tooLarge, how == fenced, errors.Is(err, ErrTooLarge):
		return failure.Rejected
	case errors.Is(err, context.Canceled):
		return failure.Canceled
	}
	return failure.Fatal
}

// transient reports whether the same request may succeed when it is sent again.
func transient(err error) bool { return Classify(err) == failure.Transient }

// passing are the errors of the client library, and of this package's readers, after which a request is sent again.
var passing = []error{
	errIdle, errDropped, errNoLeader, errUnderWay,
	nats.ErrNoResponders, nats.ErrTimeout, nats.ErrDisconnected, nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded,
	jetstream.ErrNoStreamResponse, jetstream.ErrNoHeartbeat, jetstream.ErrConsumerDeleted, jetstream.ErrConsumerNotFound,
	context.DeadlineExceeded,
}

// mayPass reports whether an error without a definite outcome is one of a server that is away, electing, or slow.
func mayPass(err error) bool {
	if api := (*jetstream.APIError)(nil); errors.As(err, &api) {
		if api.ErrorCode == codeNoJetStream || api.ErrorCode == codeNoJetStreamForAccount {
			return false
		}
		return api.Code == 503 || api.Code == 429 || api.ErrorCode == codeClusterNotReady ||
			saysNoSpace(api.Description) // the store is opened again
	}
	return slices.ContainsFunc(passing, func(known error) bool { return errors.Is(err, known) })
}
