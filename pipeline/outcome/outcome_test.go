package outcome

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

func ofSource(class failure.Class) error {
	return &source.Error{Op: "list shards", Class: class, Err: errors.New("refused")}
}

func ofBigtable(code codes.Code) error { return status.Error(code, "refused") }

// The whole answer of the package: each kind of error of source, queue, sinks, archive and mapping,
// where it ends a table's life, where it ends a sink's pass (as a sink's own error, too), and where
// it is about one change.
func TestOutcomeOfEveryKindOfError(t *testing.T) {
	const end, halt, letter = Escalate, Halt, DeadLetter
	tests := []struct {
		name                     string
		err                      error
		table, sink, own, change Action
		tableCode, ownCode       string
	}{
		{"none", nil, Again, Proceed, Proceed, Proceed, "", ""},

		{"source transient", ofSource(failure.Transient), halt, halt, halt, end, "source_transient", "fatal"},
		{"source throttled", ofSource(failure.Throttled), halt, halt, halt, end, "source_throttled", "fatal"},
		{"source denied", ofSource(failure.Denied), halt, halt, halt, end, "source_denied", "fatal"},
		{"source gone", ofSource(failure.Gone), halt, halt, halt, end, "source_gone", "fatal"},
		{"source rejected", ofSource(failure.Rejected), halt, halt, halt, end, "source_rejected", "fatal"},
		{"source fatal", ofSource(failure.Fatal), halt, halt, halt, end, "source_fatal", "fatal"},
		{"stream not listed", &StaleError{ErrNotListed}, Again, end, halt, end, "", "fatal"},

		{"log held", queue.ErrHeld, StandBy, halt, halt, end, "", "fatal"},
		{"log lost", queue.ErrLost, StandBy, end, halt, end, "", "fatal"},
		{"outcome unknown", queue.ErrOutcomeUnknown, Again, end, halt, end, "", "fatal"},
		{"entries trimmed", queue.ErrGap, Again, end, halt, end, "", "fatal"},
		{"chain broken", queue.ErrChain, Again, end, halt, end, "", "fatal"},
		{"server away", nats.ErrNoResponders, Again, end, Retry, end, "", CodeAway},
		{"acknowledgement late", nats.ErrTimeout, Again, end, Retry, end, "", CodeAway},
		{"log emptied", queue.ErrEmptied, halt, end, halt, end, "log_refused", "fatal"},
		{"log damaged", queue.ErrDamaged, halt, halt, halt, end, "log_damaged", "fatal"},
		{"log unread", &queue.VolumeError{Why: os.ErrInvalid}, halt, end, halt, end, CodeLogUnread, "fatal"},
		{"log full", queue.ErrFull, halt, halt, halt, end, "error", "fatal"},
		{"entry too large", queue.ErrTooLarge, halt, halt, halt, end, "error", "fatal"},
		{"entry corrupt", &checkpoint.CorruptError{}, halt, halt, halt, end, "log_corrupt", "fatal"},
		{"format too new", &checkpoint.FormatError{Need: 2, Have: 1}, halt, halt, halt, end, "log_format", "fatal"},
		{"state refused", &RefusedError{What: "another log", Hint: "bring it back"}, halt, halt, halt, end, "log_refused",
			"fatal"},
		{"log is older", &RefusedError{What: "an older copy", Code: CodeLogOlder}, halt, halt, halt, end, CodeLogOlder,
			"fatal"},
		{"row changed", &StaleError{bigtable.ErrStateChanged}, Again, end, halt, end, "", "fatal"},

		{"bigtable away", ofBigtable(codes.Unavailable), halt, halt, Retry, end, "error", CodeAway},
		{"bigtable busy", ofBigtable(codes.ResourceExhausted), halt, halt, Retry, end, "error", CodeAway},
		{"call canceled", context.Canceled, halt, halt, Retry, end, "error", CodeAway},
		{"bigtable denied", ofBigtable(codes.PermissionDenied), halt, halt, halt, end, "error", "denied"},
		{"table missing", ofBigtable(codes.NotFound), halt, halt, halt, end, "missing", "missing"},
		{"bigtable fatal", ofBigtable(codes.FailedPrecondition), halt, halt, halt, end, "error", "fatal"},

		{"archive full", &jetstream.APIError{Code: 503, ErrorCode: 10077}, Again, end, halt, end, "", "fatal"},
		{"archive busy", &jetstream.APIError{Code: 503}, Again, end, Retry, end, "", CodeAway},

		{"mapping refuses", &transform.Refusal{Code: "no_rule", What: "none"}, halt, halt, halt, letter, "error", "fatal"},
		{"bigtable rejects", &bigtable.RejectedError{Code: bigtable.CodeTooOld}, halt, halt, halt, letter, "error",
			"rejected"},
		{"change malformed", change.ErrMalformed, halt, halt, halt, letter, "error", "fatal"},

		{"halt", &HaltError{Code: "log_damaged", Entry: 7}, halt, halt, halt, end, "log_damaged", "log_damaged"},
		{"anything else", errors.New("no idea"), halt, halt, halt, end, "error", "fatal"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, err := t.Context(), tt.err
			if err != nil {
				err = fmt.Errorf("do something: %w", err)
			}
			table, sink, about := OfTable(ctx, err), OfSink(ctx, err), OfChange(err)
			if named := strings.Contains(table.Reason, "roles/bigtable.user"); named != (tt.name == "bigtable denied") {
				t.Errorf("the reason is %q", table.Reason)
			}
			if named := strings.Contains(table.Reason, "schema --apply"); named != (tt.name == "table missing") {
				t.Errorf("the reason names schema --apply: %v, %q", named, table.Reason)
			}
			var own Outcome
			if err != nil {
				own = OfSink(ctx, &SinkError{err})
			}
			if named := strings.Contains(own.Reason, "schema --apply"); named != (tt.name == "table missing") {
				t.Errorf("the sink's reason names schema --apply: %v, %q", named, own.Reason)
			}
			if table.Action != tt.table || table.Code != tt.tableCode {
				t.Errorf("table: %+v, want %s %q", table, tt.table, tt.tableCode)
			}
			if sink.Action != tt.sink {
				t.Errorf("sink: %+v, want %s", sink, tt.sink)
			}
			if own.Action != tt.own || own.Code != tt.ownCode {
				t.Errorf("the sink's own: %+v, want %s %q", own, tt.own, tt.ownCode)
			}
			if about.Action != tt.change {
				t.Errorf("change: %+v, want %s", about, tt.change)
			}
			over, cancel := context.WithCancel(ctx)
			cancel()
			if a := OfTable(over, err).Action; a != Drained {
				t.Errorf("table after its context ended: %s, want %s", a, Drained)
			}
			if a := OfSink(over, err).Action; err != nil && a != Drained {
				t.Errorf("sink after its context ended: %s, want %s", a, Drained)
			}
		})
	}
}

// Work beside the write loop ends the life only with an answer: as long as there is none, the rest
// of the table goes on.
func TestOutcomeBesideTheWriteLoop(t *testing.T) {
	tests := []struct {
		name                  string
		err                   error
		listing, row, letters Action
	}{
		{"none", nil, Proceed, Proceed, Proceed},
		{"source away", ofSource(failure.Transient), Retry, Retry, Escalate},
		{"source denied", ofSource(failure.Denied), Retry, Retry, Escalate},
		{"source fatal", ofSource(failure.Fatal), Escalate, Retry, Escalate},
		{"stream not listed", ErrNotListed, Retry, Retry, Escalate},
		{"bigtable away", ofBigtable(codes.Unavailable), Retry, Retry, Escalate},
		{"state refused", &RefusedError{What: "another log"}, Escalate, Halt, Escalate},
		{"row of a newer format", &bigtable.NewerFormatError{Have: 9, Know: 1}, Escalate, Halt, Escalate},
		{"row changed", &StaleError{bigtable.ErrStateChanged}, Escalate, Again, Retry},
		{"server away", nats.ErrNoResponders, Escalate, Again, Retry},
		{"log lost", queue.ErrLost, Escalate, Retry, Escalate},
		{"outcome unknown", queue.ErrOutcomeUnknown, Escalate, Again, Retry},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx := t.Context()
			if a := OfListing(ctx, tt.err).Action; a != tt.listing {
				t.Errorf("listing: %s, want %s", a, tt.listing)
			}
			if a := OfRow(ctx, tt.err).Action; a != tt.row {
				t.Errorf("row: %s, want %s", a, tt.row)
			}
			if a := OfDeadLetters(ctx, tt.err).Action; a != tt.letters {
				t.Errorf("dead letters: %s, want %s", a, tt.letters)
			}
		})
	}
}

// Only a state that belongs to something else is marked refused: when all tables are, the process
// ends with exit 3. A refusal that the next look at the store may take back is marked, too, and
// does not halt.
func TestOutcomeMarksRefusedState(t *testing.T) {
	refused := &RefusedError{What: "another log", Hint: "bring it back"}
	ctx := t.Context()
	if out := OfTable(ctx, refused); !out.Refused || out.Reason != "another log; bring it back" {
		t.Errorf("refused state: %+v", out)
	}
	if out := OfTable(ctx, &StaleError{refused}); !out.Refused || out.Action != Again {
		t.Errorf("refused state that may be out of date: %+v", out)
	}
	if out := OfRow(ctx, refused); !out.Refused {
		t.Errorf("refused row: %+v", out)
	}
	for _, err := range []error{&HaltError{Code: "log_damaged"}, queue.ErrEmptied, &StaleError{ErrNotListed}} {
		if out := OfTable(ctx, err); out.Refused {
			t.Errorf("%v: %+v", err, out)
		}
	}
	hinted := &source.Error{Op: "list", Class: failure.Denied, Hint: "grant it", Err: errors.New("no")}
	if out := OfTable(ctx, hinted); out.Reason != "list: no; grant it" {
		t.Errorf("reason of a halt by the source: %q", out.Reason)
	}
	gone := &bucket.Error{Op: "list", Class: failure.Missing, Hint: "make it", Err: errors.New("no bucket")}
	if out := OfTable(ctx, gone); out.Reason != "list: no bucket; make it" || out.Code != "archive_missing" {
		t.Errorf("halt of a table whose row is in a bucket that is gone: %+v", out)
	}
}
