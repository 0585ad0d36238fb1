package queue

import (
	"errors"
	"io/fs"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
	"github.com/tailrace-cdc/replicator/queue/embedded"
	"github.com/tailrace-cdc/replicator/queue/frame"
)

var (
	// ErrNoLog means that the table has no log in this queue.
	ErrNoLog = errors.New("no such log")
	// ErrHeld means that the log's owner kept appending until the context of Claim ended.
	ErrHeld = errors.New("log is held by another owner")
	// ErrLost means that another owner has claimed the log. This Writer cannot append any more:
	// call Claim again.
	ErrLost = errors.New("log was claimed by another owner")
	// ErrOutcomeUnknown means that an append may or may not have been stored. Discard what is in
	// memory, then Recover.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrFull means that nothing was stored because the log is at its limit. Wait for trimming,
	// append again.
	ErrFull = conn.ErrFull
	// ErrTooLarge means that nothing was stored because the entry exceeds what the server accepts.
	ErrTooLarge = frame.ErrTooLarge
	// ErrEmptied means that the stream is not the one that was opened, or lost entries that it had:
	// it was deleted, re-created, emptied or put back to an older copy. An operator decides.
	ErrEmptied = errors.New("log was emptied or re-created")
	// ErrGap means that the entries after a mark were trimmed away, or that the mark lies beyond
	// the end.
	ErrGap = errors.New("entries are missing")
	// ErrDamaged means that entries inside the log cannot be read; the error is a *DamageError. An
	// operator decides.
	ErrDamaged = errors.New("log is damaged")
	// ErrChain means that the entries read so far are not the predecessors of what the stream
	// holds.
	ErrChain = errors.New("hash chain is broken")
	// ErrListing means that a listing of the logs lacks one, or is no listing.
	ErrListing = conn.ErrListing
	// ErrOldServer means that the server is older than what the logs need.
	ErrOldServer = conn.ErrOldServer
	// ErrDenied means that the server refuses this client: wrong user, password, token or
	// certificate.
	ErrDenied = conn.ErrDenied
	// ErrUnreachable means that no server could be connected to.
	ErrUnreachable = conn.ErrUnreachable
	// ErrGivenUp means that the connection is closed for good: the process must be started again.
	ErrGivenUp = conn.ErrGivenUp
	// ErrLocked means that another process has the store open.
	ErrLocked = embedded.ErrLocked
	// ErrNoSpace means that the volume of the embedded store is full, so that not even the store
	// can be opened.
	ErrNoSpace = embedded.ErrNoSpace
)

// Classify returns what a caller can do about an error of this package. The sentinels above say more than their class:
// look for ErrFull, ErrHeld, ErrLost and ErrOutcomeUnknown first.
//
//	Transient  the server is away, electing, or slow: try again
//	Denied     the server refuses the credentials, or the account has no JetStream
//	Missing    ErrNoLog
//	Gone       ErrEmptied, ErrGap, deadletter.ErrNotFound: what was requested no longer exists
//	Rejected   ErrTooLarge, and an append after another sequence than the log's last
//	Canceled   the caller's context was canceled; one that ran out of time is Transient
//	Fatal      everything else, a full log too: asking again gives the same error
func Classify(err error) failure.Class {
	class := conn.Classify(err)
	switch {
	case class != failure.Fatal:
		return class
	case errors.Is(err, ErrNoLog):
		return failure.Missing
	case errors.Is(err, ErrEmptied), errors.Is(err, ErrGap), errors.Is(err, deadletter.ErrNotFound):
		return failure.Gone
	case errors.Is(err, ErrTooLarge):
		return failure.Rejected
	}
	return failure.Fatal
}

// Answered reports whether an error is one that a request to the queue's server ended with, in
// whatever it is wrapped.
func Answered(err error) bool { return conn.Answered(err) }

// Explain adds class and hint to an error of opening the queue that ends a command. dir is the
// directory of the embedded queue, "" for an external server.
func Explain(dir string, err error) error {
	hint := "the server of queue.url answers, but cannot keep logs: the message names the setting"
	switch {
	case errors.Is(err, ErrLocked):
		hint = "the process with that pid has " + dir + " open: stop it, or set another queue.dir"
	case errors.Is(err, ErrNoSpace):
		hint = "make room on the volume of " + dir +
			", or enlarge it; then start again: see TailraceDiskLow in docs/operations.md"
	case errors.Is(err, fs.ErrPermission):
		hint = "run it as the user that owns " + dir
	case errors.Is(err, ErrOldServer):
		hint = "update the NATS servers, one after the other"
	case errors.Is(err, ErrDenied):
		hint = "compare the user, password or token in queue.url, or the file of queue.creds, with the server's"
	case dir != "":
		hint = "the embedded queue in " + dir + " did not start: see docs/operations.md"
	case errors.Is(err, ErrUnreachable):
		hint = "is queue.url right, is the server up, and does it accept connections from this machine (TLS: queue.tls)?"
	}
	return failure.With(failure.Unready, hint, err)
}
