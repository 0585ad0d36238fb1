package pipeline

import (
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// lostLog is what a log is called that should hold changes, whether it is empty or not there at all.
const lostLog = "the log is empty or not there, although changes were read into it before"

const lostRow = "the log holds changes, but the pipeline's row in " + bigtable.StateTable + " is missing"

// refuse is CheckLog for a log that was claimed with its row or without.
func (t *table) refuse(s *checkpoint.State, want bigtable.Identity) *RefusedError {
	if t.rowKnown() {
		return CheckLog(t.row, s, want, t.p.o.Start)
	}
	if !readOn(s) {
		return refusedLog(lostLog)
	}
	return checkStored(s, want, t.p.o.Start)
}

// CheckLog says why a log may not be used with a pipeline's row in Bigtable (nil: there is none), its table and its
// start; nil when it may. s is the state of a log that does not exist, too: the empty one.
func CheckLog(row *bigtable.State, s *checkpoint.State, want bigtable.Identity, start Start) *RefusedError {
	live := s.LiveStream()
	switch {
	// Rule 5: without the log nobody knows which versions were given out.
	case row != nil && row.Issued && live == nil:
		return refusedLog(lostLog)
	case row == nil && live != nil:
		return refusedLog(lostRow)
	}
	return checkStored(s, want, start)
}

// checkStored is what of CheckLog the log alone can tell.
func checkStored(s *checkpoint.State, want bigtable.Identity, start Start) *RefusedError {
	switch id := s.Identity; {
	case id == nil:
	case id.Pipeline != want.Pipeline || id.Table != want.Table:
		return refusedLog(fmt.Sprintf("the log belongs to pipeline %q, table %q (%s)", id.Pipeline, id.Table, id.TableID))
	case id.TableID != want.TableID:
		return recreated(want.Table, id.TableID, want.TableID)
	}
	if live := s.LiveStream(); live != nil && s.Streams[0].Mode != start.mode() {
		return &RefusedError{
			What: fmt.Sprintf("source.start is %s, but the pipeline started with %s", start.mode(), s.Streams[0].Mode),
			Hint: "the start position is used once; put it back, or begin a new pipeline with new target tables",
		}
	}
	return nil
}

// CheckIdentity says why table, mapping or log may not be used with a pipeline's row in Bigtable; nil when they may.
func CheckIdentity(row *bigtable.State, want bigtable.Identity) *RefusedError {
	have := row.Identity
	switch {
	case have.TableID != want.TableID:
		return recreated(want.Table, have.TableID, want.TableID)
	case have.MappingHash != want.MappingHash:
		return otherMapping(want.Table)
	case have.Target != "" && have.Target != want.Target:
		return &RefusedError{
			What: fmt.Sprintf("the rows of %s are in %s since the pipeline started, not in %s", want.Table, have.Target, want.Target),
			Hint: "put the target back, or begin a new pipeline: a new target needs all items, not only those that change",
		}
	case !have.LogCreated.Equal(want.LogCreated) && row.Issued:
		return refusedLog(fmt.Sprintf("the log was created at %s, the pipeline's at %s: it is another one",
			want.LogCreated.Format(time.RFC3339), have.LogCreated.Format(time.RFC3339)))
	}
	return nil
}

func recreated(table, before, now string) *RefusedError {
	return &RefusedError{
		What: fmt.Sprintf("table %s was deleted and created again since the pipeline started (%s, now %s)", table, before, now),
		Hint: "its items are not the ones that were copied; begin a new pipeline with new target tables",
	}
}

func otherMapping(table string) *RefusedError {
	return &RefusedError{
		What: fmt.Sprintf("the mapping of %s is not the one its rows were written with", table),
		Hint: "put the mapping back, or begin a new pipeline with a new target table",
	}
}
