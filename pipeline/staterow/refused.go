package staterow

import (
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
)

// The texts of a RefusedError about a missing part of the stored state.
const (
	logMissing   = "the log is empty or not there, although changes were read into it before"
	tableMissing = "the log holds changes, but Bigtable has no table " + tableschema.StateTable +
		", which held the pipeline's rows"
	rowMissing  = "the log holds changes, but the pipeline's row in " + tableschema.StateTable + " is missing"
	lifeMissing = "the log holds changes, but archive.url holds nothing of the table: is it the place that it was?"
)

// CheckLog returns why a log may not be used with a pipeline's row in Bigtable (nil: there is
// none), its table and its start; nil when it may. For a log that does not exist, s is the empty
// state.
func CheckLog(row *bigtable.State, s *checkpoint.State, want bigtable.Identity, start Start) *outcome.RefusedError {
	if refused := CheckFence(row, s); refused != nil {
		return refused
	}
	live := s.LiveStream()
	switch {
	// Rule 5: without the log it is unknown which versions were given out.
	case row != nil && row.Issued && live == nil:
		return refusedLog(logMissing)
	case row == nil && live != nil:
		return missingRow(s, want)
	case row != nil && s.Epoch > 0 && s.Life < row.Life:
		return refusedLog(fmt.Sprintf("the log is of life %d, the pipeline is in life %d", s.Life, row.Life))
	case row != nil && live != nil && s.Floor() < row.Floor:
		return refusedLog("the log begins with versions that an earlier life has given out")
	}
	return CheckStored(s, want, start)
}

// missingRow is the refusal of a log that holds changes, and has no row.
func missingRow(s *checkpoint.State, want bigtable.Identity) *outcome.RefusedError {
	_, replicated := s.Marks[checkpoint.SinkBigtable]
	if want.Target != "" && !replicated && len(s.Marks) > 0 {
		return &outcome.RefusedError{
			What: fmt.Sprintf("table %s was started without a target, and has one now: its items were never copied",
				want.Table),
			Hint: "take the target away again; or begin under another pipeline name, which copies the table",
		}
	}
	return noRow(want.Table, want.Target)
}

// noRow is the refusal of a log that holds changes, where the row of its table is missing.
func noRow(table, target string) *outcome.RefusedError {
	if target == "" {
		return &outcome.RefusedError{What: lifeMissing, Hint: lifeHint, Code: outcome.CodeRowMissing}
	}
	return &outcome.RefusedError{
		What: rowMissing, Code: outcome.CodeRowMissing,
		Hint: "nothing is applied without it; " + recoverCommand(table) + " stores it again, from the log",
	}
}

func recoverCommand(table string) string { return "`replicator recover --table " + table + "`" }

// lifeHint is what to do about an archive that is not where it was.
const lifeHint = "mount it, or put the URL back; to move an archive, first copy all of it, _tailrace/ too; where it " +
	"is gone for good, begin under another pipeline name: the stream is read from its oldest record"

// CheckStored is the part of CheckLog that needs the log alone.
func CheckStored(s *checkpoint.State, want bigtable.Identity, start Start) *outcome.RefusedError {
	switch id := s.Identity; {
	case id == nil:
	case id.Pipeline != want.Pipeline || id.Table != want.Table:
		return refusedLog(fmt.Sprintf("the log belongs to pipeline %q, table %q (%s)", id.Pipeline, id.Table, id.TableID))
	case id.TableID != want.TableID:
		return recreated(want.Table, id.TableID, want.TableID)
	case id.Mapping != "" && want.MappingHash == "": // there is no target
		return &outcome.RefusedError{
			What: fmt.Sprintf("table %s was replicated to Bigtable, and has no target any more", want.Table),
			Hint: "put the target back; to archive only from now on, `replicator table retire` first",
		}
	case id.Mapping != "" && !accepts(s, want.MappingHash):
		return OtherMapping(want.Table)
	}
	if live := s.LiveStream(); live != nil && !start.Began(s.Streams[0].Mode) {
		return &outcome.RefusedError{
			What: fmt.Sprintf("source.start is %s, but the pipeline started with %s", start.Mode(), s.Streams[0].Mode),
			Hint: "the start position is used once; put it back, or begin a new pipeline with new target tables",
		}
	}
	return nil
}

// CheckIdentity returns why table, mapping or log may not be used with a pipeline's row in
// Bigtable; nil when they may.
func CheckIdentity(row *bigtable.State, want bigtable.Identity) *outcome.RefusedError {
	have := row.Identity
	switch {
	case have.TableID != want.TableID:
		return recreated(want.Table, have.TableID, want.TableID)
	case have.MappingHash != want.MappingHash:
		return OtherMapping(want.Table)
	case have.Target != want.Target:
		return &outcome.RefusedError{
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

// CheckTarget returns why a pipeline may not write to a target that belongs to owner, see
// bigtable.TargetOwner; nil when it may.
func CheckTarget(sink *bigtable.Client, pipeline, target, owner string) *outcome.RefusedError {
	if owner == "" || owner == pipeline {
		return nil
	}
	return &outcome.RefusedError{
		What: fmt.Sprintf("Bigtable table %s belongs to pipeline %q: two pipelines in one target would mix its rows",
			target, owner),
		Hint: fmt.Sprintf("choose another target. Only if %q will never run again: `replicator run --adopt` takes its rows "+
			"over; for an empty table `cbt deleterow %s '%s'` is enough",
			owner, tableschema.StateTable, sink.TargetKey(target)),
	}
}

// CheckLost returns why a table that has no log may not begin one, by the pipeline's row of the
// table (nil: there is none); nil when it may.
//
// Rule 12: the fence is looked for first. A lost log is recovered, and that of a fenced table must
// not be.
func CheckLost(row *bigtable.State) *outcome.RefusedError {
	if refused := CheckFence(row, nil); refused != nil {
		return refused
	}
	if row != nil && row.Issued {
		return LostLog()
	}
	return nil
}

// LostLog is the refusal of a table when its row requires changes in its log, and the log has none.
func LostLog() *outcome.RefusedError { return refusedLog(logMissing) }

func recreated(table, before, now string) *outcome.RefusedError {
	return &outcome.RefusedError{
		What: fmt.Sprintf("table %s was deleted and created again since the pipeline started (%s, now %s)",
			table, before, now),
		Hint: "its items are not the ones that were copied; begin a new pipeline with new target tables, or end this one: " +
			"take out its entry, or write it under `except` of the selection that finds it, restart, and then " +
			"`replicator table retire --table " + table + "`",
	}
}

// OtherMapping is the refusal of a table with rows that were written with another mapping.
func OtherMapping(table string) *outcome.RefusedError {
	return &outcome.RefusedError{
		Code: outcome.CodeMapping,
		What: fmt.Sprintf("the mapping of %s is not the one its rows were written with", table),
		Hint: "`replicator mapping diff` says what the change does to the rows, and whether `mapping accept` is possible; " +
			"else put the mapping back (a file is read again at each try; one that stands in the configuration needs a " +
			"restart), or begin a new pipeline with a new target table",
	}
}

func refusedLog(what string) *outcome.RefusedError {
	return &outcome.RefusedError{
		Code: outcome.CodeLogLost,
		What: what,
		Hint: "versions must grow across lives, so a lost log is not started over in silence: " +
			"bring the queue's volume back; where it is gone, `replicator recover --all` begins a new life above all " +
			"versions, and says before what that takes",
	}
}

// accepts reports whether the log lets the table go on with the mapping that it has now, although
// its rows were written with another one.
func accepts(s *checkpoint.State, mapping string) bool {
	switch {
	case s == nil || s.Identity == nil:
		return false
	case s.Accepting != nil && s.Accepting.To == mapping:
		return true
	}
	return s.Identity.Mapping == mapping
}

// replacedBy returns the hash of the mapping that a log accepts another one in place of: the row
// may still name it.
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

// ProvesItself reports whether a log is enough to read its table on: it names its pipeline, and a
// sink's mark in it is younger than the note in the row that changes were read.
func ProvesItself(s *checkpoint.State) bool {
	return s != nil && s.Identity != nil && s.LiveStream() != nil && len(s.Marks) > 0
}

// The steps of a fence; each may be repeated, and `replicator cutover` takes them all:
//
//	row {fenced} → control {fence} → …certificate… → undo: control {fence, undo} → row {fenced: off}
//
// While the log has the fence, the Bigtable sink stands at it. While the row is fenced, whatever
// the log holds, nothing else is done to the table: a lost log must not be recovered, because that
// writes what DynamoDB holds over what the application has written since.

// CheckFence returns why a table may not run because its row is fenced and its log has not that
// fence; nil when it may. s is the empty state where there is no log.
//
// Rule 12: a fenced row over a log without its fence is refused to everything but `cutover` and
// `cutover --undo`.
func CheckFence(row *bigtable.State, s *checkpoint.State) *outcome.RefusedError {
	if s == nil || s.Seq == 0 {
		return checkFence(row, nil, true)
	}
	return checkFence(row, s.Fence, false)
}

// checkFence is CheckFence for the fence of a log, or for a log that is lost.
func checkFence(row *bigtable.State, fence *checkpoint.Fence, lost bool) *outcome.RefusedError {
	if row == nil || row.Fenced == nil || fence != nil && fence.ID == row.Fenced.ID {
		return nil
	}
	f, table := row.Fenced, row.Identity.Table
	since := f.Time.UTC().Format(time.RFC3339)
	if lost {
		return &outcome.RefusedError{
			What: fmt.Sprintf("table %s is fenced since %s for cutover %s, and its log is lost", table, since, f.ID),
			Hint: "its rows may belong to the application by now: only `replicator cutover --undo` lets the replicator write " +
				"again; if the application has moved, take the table out of the configuration and `replicator table retire`",
		}
	}
	return &outcome.RefusedError{
		What: fmt.Sprintf("a cutover of table %s is in progress: %s has fenced it since %s, and its log does not hold that "+
			"fence yet", table, f.ID, since),
		Hint: "`replicator cutover` again goes on with it; `replicator cutover --undo` gives it up",
	}
}
