// Package outcome decides what an error does to a table, to one of its sinks, or to a single
// change: start again from the stored state, stand by, halt, try again later, store a dead letter.
// The clients of the services classify their errors (failure.Class); only this package turns a
// class into an action, for the daemon and for `dlq retry` alike.
package outcome

import (
	"context"
	"errors"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/archive"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

// Action is what happens after an error.
type Action uint8

// The actions.
const (
	Proceed    Action = iota // there is no error
	Drained                  // the caller's context ended, and the work with it
	Again                    // Rule 4: drop what is in memory and start again from the stored state
	StandBy                  // another process owns the log: wait until it is free
	Retry                    // keep everything and try the same again later; the rest of the table goes on
	Halt                     // stop the table or the sink, record why, and try again every Periods.Retry
	DeadLetter               // store the change as a dead letter and go on with the next one
	Escalate                 // the error concerns more than was asked about: return it to whoever runs the whole
)

var names = [...]string{"proceed", "drained", "again", "stand by", "retry", "halt", "dead letter", "escalate"}

func (a Action) String() string { return names[a] }

// Outcome is an action with the code and the reason of a halt or a dead letter.
type Outcome struct {
	Action Action
	Code   string // one of a fixed set of words; empty unless Action is Halt, Retry or DeadLetter
	Reason string // for people
	Entry  uint64 // Halt: the log entry that cannot be passed; 0 unknown
	// Held is true in a Halt before a change that the sink will never take.
	Held bool
	// Refused is set when the table's stored state belongs to something else: when that holds for
	// all tables, the process ends instead of trying again.
	Refused bool
}

// Pipeline stands in a halt for the pipeline itself, where no sink is at fault.
const Pipeline = checkpoint.SinkPipeline

// Codes that this package gives to halts and dead letters.
const (
	CodeAway      = "away"    // the sink did not answer for Periods.Retry
	CodePremise   = "premise" // a setting of an outside system makes it unsafe to write
	CodeUnknown   = "doubt"   // the outcome of writes to the log stayed unknown
	CodeParked    = "parked"  // Bigtable neither took nor refused a row for an hour
	CodeDirty     = "dirty"   // an earlier change of the item is a dead letter
	CodeMalformed = "malformed"
	CodeRefused   = "log_refused" // the table's stored state is that of something else
	// CodeRefusedAll is the code of a halt, and never of a letter: Bigtable refuses every change.
	CodeRefusedAll = "refused_all"
)

// Codes of halts that follow from the class of an error.
var (
	CodeMissing    = failure.Missing.String()          // Bigtable lacks a table or family
	CodeSourceGone = "source_" + failure.Gone.String() // DynamoDB does not have the table
)

// Codes of refusals that have one of their own.
const (
	CodeLogOlder   = "log_older"   // the log is an older copy of the one that was read into
	CodeLogLost    = "log_lost"    // the log is gone or another one, although changes were read into it
	CodeLogUnread  = "log_unread"  // the volume of the log gives input/output errors
	CodeRowMissing = "row_missing" // the log holds changes, and the pipeline's row of the table is gone
	CodeMapping    = "mapping"     // the rows were written with another mapping
)

// ByRow reports whether the code of a halt follows from what the pipeline's row of the table holds.
func ByRow(code string) bool {
	return code == CodeRowMissing || code == CodeLogLost || code == CodeLogOlder || code == CodeRefused ||
		code == CodeMapping
}

// HaltError stops a table or a sink until an operator acts or the cause goes away.
type HaltError struct {
	Code   string
	Entry  uint64 // the log entry that cannot be passed; 0 for a table
	Reason string
	Held   bool // the entry has a change that the sink will never take
}

func (e *HaltError) Error() string { return "halt (" + e.Code + "): " + e.Reason }

// RefusedError means that a table's stored state is not this pipeline's, and holds what to do.
type RefusedError struct {
	What string
	Hint string
	Code string // of the halt; "": log_refused
}

func (e *RefusedError) Error() string { return e.What }

// StaleError means that what is known about the pipeline's row or the table's stream is out of
// date: it must be read again before the table goes on.
type StaleError struct{ Err error }

func (e *StaleError) Error() string { return e.Err.Error() }

func (e *StaleError) Unwrap() error { return e.Err }

// SinkError marks an error as a sink's, whatever it wraps: the archive may publish to the server
// that also keeps the log, and its time-outs say nothing about the log.
type SinkError struct{ Err error }

func (e *SinkError) Error() string { return e.Err.Error() }

func (e *SinkError) Unwrap() error { return e.Err }

// ErrNotListed means that a new stream has no complete listing yet: its shards would be taken for
// later ones.
var ErrNotListed = errors.New("the new stream has no complete listing yet")

// OfTable decides about an error that ended a table's life, or kept it from beginning: Drained,
// StandBy, Again or Halt.
func OfTable(ctx context.Context, err error) Outcome {
	var (
		halt    *HaltError
		refused *RefusedError
		src     *source.Error
	)
	switch {
	case ctx.Err() != nil:
		return Outcome{Action: Drained}
	case errors.Is(err, queue.ErrLost), errors.Is(err, queue.ErrHeld):
		return Outcome{Action: StandBy}
	case err == nil, outdated(err):
		return Outcome{Action: Again, Refused: errors.As(err, &refused)}
	case errors.As(err, &halt):
		return Outcome{Action: Halt, Code: halt.Code, Reason: halt.Reason, Entry: halt.Entry}
	case errors.As(err, &refused):
		return Outcome{Action: Halt, Code: haltCode(err), Reason: err.Error() + "; " + refused.Hint, Refused: true}
	case errors.As(err, &src) && source.Hint(src) != "":
		return Outcome{Action: Halt, Code: haltCode(err), Reason: err.Error() + "; " + source.Hint(src)}
	case bucket.Hint(err) != "": // the row of a table without a target
		return Outcome{Action: Halt, Code: haltCode(err), Reason: err.Error() + "; " + bucket.Hint(err)}
	}
	return Outcome{Action: Halt, Code: haltCode(err), Reason: withRemedy(err, err.Error())}
}

// withRemedy adds to a reason what makes a table or family that Bigtable lacks, or the role that
// the account lacks.
func withRemedy(err error, reason string) string {
	switch bigtable.Classify(err) {
	case failure.Denied:
		return reason + "; the account needs roles/bigtable.user: see docs/credentials.md"
	case failure.Missing:
		return reason + "; `replicator schema --apply`, with the --config of `run`, makes the tables and families that " +
			"the mappings need"
	}
	return reason
}

// outdated reports whether an error means that memory and store may differ, so that only the stored
// state counts (Rule 4).
func outdated(err error) bool {
	stale := (*StaleError)(nil)
	return errors.As(err, &stale) || errors.Is(err, queue.ErrOutcomeUnknown) || errors.Is(err, queue.ErrChain) ||
		errors.Is(err, queue.ErrGap) || queue.Classify(err) == failure.Transient
}

// haltCode returns the code of a table's halt.
func haltCode(err error) string {
	var (
		refused *RefusedError
		corrupt *checkpoint.CorruptError
		old     *checkpoint.FormatError
		src     *source.Error
		stored  *bucket.Error
	)
	switch {
	case errors.As(err, &refused) && refused.Code != "":
		return refused.Code
	case errors.As(err, &refused), errors.Is(err, queue.ErrEmptied), errors.Is(err, queue.ErrUnopened):
		return CodeRefused
	case errors.Is(err, queue.ErrVolume):
		return CodeLogUnread
	case errors.Is(err, queue.ErrDamaged):
		return "log_damaged"
	case errors.As(err, &corrupt):
		return "log_corrupt"
	case errors.As(err, &old):
		return "log_format"
	case errors.As(err, &src):
		return "source_" + src.Class.String()
	case errors.As(err, &stored):
		return "archive_" + stored.Class.String()
	case bigtable.Classify(err) == failure.Missing:
		return CodeMissing
	}
	return "error"
}

// OfSink decides about an error that ended a sink's pass over the log: Proceed, Drained, Retry,
// Halt, or Escalate when the log is lost or what it holds is unknown.
func OfSink(ctx context.Context, err error) Outcome {
	var (
		halt *HaltError
		own  *SinkError
	)
	switch {
	case err == nil:
		return Outcome{}
	case ctx.Err() != nil:
		return Outcome{Action: Drained}
	case errors.As(err, &halt):
		return Outcome{Action: Halt, Code: halt.Code, Reason: halt.Reason, Entry: halt.Entry, Held: halt.Held}
	case errors.As(err, &own):
		return ofSinkError(own.Err, err.Error())
	case outdated(err), errors.Is(err, queue.ErrEmptied), errors.Is(err, queue.ErrLost), errors.Is(err, queue.ErrVolume):
		return Outcome{Action: Escalate}
	}
	// An entry that cannot be unpacked, or a dead letter that cannot be stored.
	return Outcome{Action: Halt, Code: failure.Fatal.String(), Reason: err.Error()}
}

// ofSinkError decides about an error that Bigtable or the archive returned.
func ofSinkError(err error, reason string) Outcome {
	if archive.Classify(err) == failure.Transient {
		return Outcome{Action: Retry, Code: CodeAway, Reason: reason}
	}
	switch class := bigtable.Classify(err); class {
	case failure.Transient, failure.Canceled:
		return Outcome{Action: Retry, Code: CodeAway, Reason: reason}
	default:
		return Outcome{Action: Halt, Code: class.String(), Reason: withRemedy(err, reason)}
	}
}

// OfChange decides about an error of applying one change: DeadLetter when mapping, Bigtable or the
// change itself make sure that it will never be applied, Escalate for any other error, because it
// does not concern this change alone.
func OfChange(err error) Outcome {
	var (
		byMapping *transform.Refusal
		bySink    *bigtable.RejectedError
	)
	switch {
	case err == nil:
		return Outcome{}
	case errors.As(err, &byMapping):
		return Outcome{Action: DeadLetter, Code: byMapping.Code, Reason: byMapping.What}
	case errors.As(err, &bySink):
		return Outcome{Action: DeadLetter, Code: bySink.Code, Reason: bySink.Reason}
	case errors.Is(err, change.ErrMalformed):
		return Outcome{Action: DeadLetter, Code: CodeMalformed, Reason: err.Error()}
	}
	return Outcome{Action: Escalate}
}

// OfListing decides about an error of listing shards or describing the table: the next listing may
// succeed, unless the log refused what was found.
func OfListing(ctx context.Context, err error) Outcome {
	switch {
	case err == nil:
		return Outcome{}
	case ctx.Err() != nil:
		return Outcome{Action: Drained}
	case bigtable.Classify(err) == failure.Transient, errors.Is(err, ErrNotListed), source.Classify(err) != failure.Fatal:
		return Outcome{Action: Retry}
	}
	return Outcome{Action: Escalate}
}

// OfRow decides about an error of reading, confirming or raising the pipeline's row in Bigtable:
// Halt when the row contradicts what is known, Again when another owner has changed it, Retry while
// Bigtable does not answer.
func OfRow(ctx context.Context, err error) Outcome {
	var (
		refused *RefusedError
		newer   *bigtable.NewerFormatError
	)
	switch {
	case err == nil:
		return Outcome{}
	case ctx.Err() != nil:
		return Outcome{Action: Drained}
	case errors.As(err, &refused):
		return Outcome{Action: Halt, Code: haltCode(err), Reason: err.Error(), Refused: true}
	case errors.As(err, &newer):
		return Outcome{Action: Halt, Code: haltCode(err), Reason: err.Error()}
	case outdated(err):
		return Outcome{Action: Again}
	}
	return Outcome{Action: Retry}
}

// OfDeadLetters decides about an error of looking at the dead letter store beside the work of a
// life.
func OfDeadLetters(ctx context.Context, err error) Outcome {
	switch {
	case err == nil:
		return Outcome{}
	case ctx.Err() != nil:
		return Outcome{Action: Drained}
	case outdated(err):
		return Outcome{Action: Retry}
	}
	return Outcome{Action: Escalate}
}
