// Package proving decides when everything that was written up to a time is applied to Bigtable: only then may an item
// be written that was read from the table at that time.
package proving

import (
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

// Wait waits until Bigtable has every change that was created up to Through, a time of the service.
//
// Rule 10: it rests on a complete listing begun after that time, on reads of every shard that reach past it, and on the
// mark of the Bigtable sink.
type Wait struct {
	Through change.Millis

	read  bool   // everything up to Through is in the log
	entry uint64 // the newest entry with changes when that was seen
}

// Read reports whether the log held everything up to Through at the last look.
func (w *Wait) Read() bool { return w.read }

// Look returns whether the wait is over, or else why not. mark is the Bigtable sink's, in memory; paused is why reading
// pauses, if it does. A listing that shows children of a shard lowers the read watermark, so what was read may count as
// unread again.
func (w *Wait) Look(s *checkpoint.State, mark uint64, paused string) (met bool, why string) {
	if why := w.unread(s, paused); why != "" {
		w.read = false
		return false, why
	}
	if !w.read {
		w.read, w.entry = true, s.LastFrame
	}
	if mark < w.entry {
		return false, fmt.Sprintf("Bigtable has not applied the log's entry %d yet", w.entry)
	}
	return true, ""
}

// unread returns why it is not known that everything up to Through is in the log; empty when it is known.
func (w *Wait) unread(s *checkpoint.State, paused string) string {
	live := s.LiveStream()
	read := s.ReadWatermark()
	switch {
	case live == nil:
		return "the table's stream is not started"
	case s.Listed >= w.Through && read >= w.Through:
		return ""
	case live.Disabled:
		return "the table's stream is disabled: what is written now is in no stream; enable it"
	case len(s.GappedShards()) > 0:
		return fmt.Sprintf("%d shards stand before a gap: accept it with `replicator resume`", len(s.GappedShards()))
	case paused != "":
		return "reading pauses: " + paused
	case s.Listed < w.Through:
		return "no complete listing of the shards was begun since"
	}
	return "a shard is not read so far, or its children are not listed yet"
}
