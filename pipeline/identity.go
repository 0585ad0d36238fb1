package pipeline

import (
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// What a RefusedError says about a missing part of the stored state.
const (
	logMissing = "the log is empty or not there, although changes were read into it before"
	rowMissing = "the log holds changes, but the pipeline's row in " + bigtable.StateTable + " is missing"
)

// CheckLog returns why a log may not be used with a pipeline's row in Bigtable (nil: there is none), its table and its
// start; nil when it may. For a log that does not exist, s is the empty state.
func CheckLog(row *bigtable.State, s *checkpoint.State, want bigtable.Identity, start Start) *RefusedError {
	live := s.LiveStream()
	switch {
	// Rule 5: without the log it is unknown which versions were given out.
	case row != nil && row.Issued && live == nil:
		return refusedLog(logMissing)
	case row == nil && live != nil:
		return refusedLog(rowMissing)
	case row != nil && s.Epoch > 0 && s.Life < row.Life:
		return refusedLog(fmt.Sprintf("the log is of life %d, the pipeline is in life %d", s.Life, row.Life))
	case row != nil && live != nil && s.Streams[0].Floor < row.Floor:
		return refusedLog("the log begins with versions that an earlier life has given out")
	}
	return checkStored(s, want, start)
}

// checkStored is the part of CheckLog that needs the log alone.
func checkStored(s *checkpoint.State, want bigtable.Identity, start Start) *RefusedError {
	switch id := s.Identity; {
	case id == nil:
	case id.Pipeline != want.Pipeline || id.Table != want.Table:
		return refusedLog(fmt.Sprintf("the log belongs to pipeline %q, table %q (%s)", id.Pipeline, id.Table, id.TableID))
	case id.TableID != want.TableID:
		return recreated(want.Table, id.TableID, want.TableID)
	case id.Mapping != "" && !accepts(s, want.MappingHash):
		return otherMapping(want.Table)
	}
	if live := s.LiveStream(); live != nil && !start.began(s.Streams[0].Mode) {
		return &RefusedError{
			What: fmt.Sprintf("source.start is %s, but the pipeline started with %s", start.mode(), s.Streams[0].Mode),
			Hint: "the start position is used once; put it back, or begin a new pipeline with new target tables",
		}
	}
	return nil
}

// CheckIdentity returns why table, mapping or log may not be used with a pipeline's row in Bigtable; nil when they may.
func CheckIdentity(row *bigtable.State, want bigtable.Identity) *RefusedError {
	have := row.Identity
	switch {
	case have.TableID != want.TableID:
		return recreated(want.Table, have.TableID, want.TableID)
	case have.MappingHash != want.MappingHash:
		return otherMapping(want.Table)
	case have.Target != "" && have.Target != want.Target:
		return &RefusedError{
			What: fmt.Sprintf("the rows of %s are in %s since the pipeline started, not in %s",
				want.Table, have.Target, want.Target),
			Hint: "put the target back, or begin a new pipeline: a new target needs all items, not only those that change",
		}
	case !have.LogCreated.Equal(want.LogCreated) && row.Issued:
		return refusedLog(fmt.Sprintf("the log was created at %s, the pipeline's at %s: it is another one",
			want.LogCreated.Format(time.RFC3339), have.LogCreated.Format(time.RFC3339)))
	}
	return nil
}

// CheckTarget returns why a pipeline may not write to a target that belongs to owner, see bigtable.TargetOwner; nil
// when it may.
func CheckTarget(sink *bigtable.Client, pipeline, target, owner string) *RefusedError {
	if owner == "" || owner == pipeline {
		return nil
	}
	return &RefusedError{
		What: fmt.Sprintf("Bigtable table %s belongs to pipeline %q: two pipelines in one target would mix its rows",
			target, owner),
		Hint: fmt.Sprintf("choose another target. Only if %q will never run again: `replicator run --adopt` takes its rows "+
			"over; for an empty table `cbt deleterow %s '%s'` is enough",
			owner, bigtable.StateTable, sink.TargetKey(target)),
	}
}

func recreated(table, before, now string) *RefusedError {
	return &RefusedError{
		What: fmt.Sprintf("table %s was deleted and created again since the pipeline started (%s, now %s)",
			table, before, now),
		Hint: "its items are not the ones that were copied; begin a new pipeline with new target tables",
	}
}

func otherMapping(table string) *RefusedError {
	return &RefusedError{
		What: fmt.Sprintf("the mapping of %s is not the one its rows were written with", table),
		Hint: "`replicator mapping diff` says what the change does to the rows, and whether `mapping accept` is possible; " +
			"else put the mapping back, or begin a new pipeline with a new target table",
	}
}

func refusedLog(what string) *RefusedError {
	return &RefusedError{
		What: what,
		Hint: "versions must grow across lives, so a lost log is not started over in silence: " +
			"bring the queue's volume back; where it is gone, `replicator recover` begins a new life above all versions " +
			"and compares the whole table",
	}
}

// mode returns how the start is spelled in the log.
func (s Start) mode() string {
	switch {
	case s.Latest:
		return "latest"
	case s.At.IsZero():
		return "trim_horizon"
	}
	return s.At.UTC().Format(time.RFC3339Nano)
}

// isZero reports whether the configuration leaves the start to the pipeline.
func (s Start) isZero() bool { return !s.Horizon && !s.Latest && s.At.IsZero() }

// began reports whether a log that spells its start as mode can have begun with this one.
func (s Start) began(mode string) bool { return mode == s.mode() || s.isZero() && mode == modeBackfill }

// at returns the start as a time on the service's clock. LATEST itself is never sent: it has no durable
// position, and a crash during the first start would lose or flood.
func (s Start) at(date change.Millis) (change.Millis, error) {
	switch {
	case s.Latest:
		return date, nil
	case s.At.IsZero():
		return 0, nil
	case change.MillisOf(s.At) > date:
		return 0, &RefusedError{
			What: "source.start lies in the future: " + s.mode(),
			Hint: "use latest, trim_horizon or a time in the last 24 hours",
		}
	}
	return change.MillisOf(s.At), nil
}

// accepts reports whether the log lets the table go on with the mapping that it has now, although its rows were written
// with another one.
func accepts(s *checkpoint.State, mapping string) bool {
	switch {
	case s == nil || s.Identity == nil:
		return false
	case s.Accepting != nil && s.Accepting.To == mapping:
		return true
	}
	return s.Identity.Mapping == mapping
}

// replacedBy returns the hash of the mapping that a log accepts another one in place of: the row may still name it.
func replacedBy(s *checkpoint.State, mapping string) string {
	switch {
	case s == nil:
	case s.Accepting != nil && s.Accepting.To == mapping:
		return s.Accepting.From
	case s.Accepted != nil && s.Accepted.To == mapping && s.Identity.Mapping == mapping:
		return s.Accepted.From
	}
	return ""
}

// provesItself reports whether a log is enough to read its table on: it names its pipeline, and a sink's mark in it is
// younger than the note in the row that changes were read.
func provesItself(s *checkpoint.State) bool {
	return s != nil && s.Identity != nil && s.LiveStream() != nil && len(s.Marks) > 0
}
