package sides

import (
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

// proof decides from the states of the logs of all tables whether Bigtable has every change up to a time.
//
// Rule 10: the proof rests on a complete listing begun after that time, on reads of every shard that reach past it, and
// on the mark of the Bigtable sink. The archive and copies do not count.
type proof struct {
	through change.Millis
	tables  []tableProof
	moved   time.Time // when a log was last seen to come closer, by this process's clock
}

// tableProof is how far the proof of one table is.
type tableProof struct {
	read  bool   // everything up to the time is in the log
	entry uint64 // the newest entry with changes then
	seen  [3]uint64
}

func newProof(through change.Millis, tables int, at time.Time) *proof {
	return &proof{through: through, tables: make([]tableProof, tables), moved: at}
}

// met takes the states of all logs, always in the same order, and reports whether the proof is there.
func (p *proof) met(states []*checkpoint.State, at time.Time) bool {
	all := true
	for i, s := range states {
		t := &p.tables[i]
		if now := [3]uint64{uint64(s.Listed), uint64(s.ReadWatermark()), mark(s)}; now != t.seen {
			t.seen, p.moved = now, at
		}
		all = t.met(s, p.through) && all
	}
	return all
}

// met is the proof of one table. A listing that shows children of a shard lowers the read watermark, so what was read
// may not be any more.
func (t *tableProof) met(s *checkpoint.State, through change.Millis) bool {
	if s.LiveStream() == nil || s.Listed < through || s.ReadWatermark() < through {
		t.read = false
		return false
	}
	if !t.read {
		t.read, t.entry = true, s.LastFrame
	}
	return mark(s) >= t.entry
}

// beats decides from the states of the logs of all tables of which of them heartbeats prove that Bigtable has every
// change up to a time.
type beats struct {
	through change.Millis
	tables  []tableProof
	wait    func(table int) time.Duration // how long a heartbeat may take; 0 where none are written
	proven  []bool
}

func newBeats(through change.Millis, tables int, wait func(table int) time.Duration) *beats {
	return &beats{through: through, tables: make([]tableProof, tables), wait: wait, proven: make([]bool, tables)}
}

// awaited takes the states of all logs, always in the same order, and reports whether heartbeats may prove more. They
// prove nothing of a table while an open shard has none.
func (b *beats) awaited(states []*checkpoint.State) (more bool) {
	for i, s := range states {
		t, p := &b.tables[i], &s.Proof
		if p.Assumed > 0 || p.Read == 0 {
			more = more || !b.proven[i] && b.young(i, s)
			continue
		}
		if !t.read && p.Read >= b.through {
			t.read, t.entry = true, s.LastFrame
		}
		b.proven[i] = b.proven[i] || t.read && mark(s) >= t.entry
		more = more || !b.proven[i]
	}
	return more
}

// young reports whether the owner of a table's log may only have had no time yet to see a heartbeat out of each shard:
// each command that appends to the log begins another life of its owner, which proves it anew.
func (b *beats) young(table int, s *checkpoint.State) bool {
	wait, p := change.Millis(b.wait(table).Milliseconds()), &s.Proof
	silent := p.Assumed == 0 && p.Read == 0 // also after a snapshot, until the next beat
	return wait > 0 && (silent || s.Date < p.Since+wait)
}

// mark returns the entry up to which Bigtable has what it is to have: a sink that stands at a fence has all of it.
func mark(s *checkpoint.State) uint64 {
	if s.StandsAtFence() {
		return max(s.LastFrame, s.Fence.Seq)
	}
	return s.Marks[checkpoint.SinkBigtable].Seq
}

// missing says what the proof of a table waits for; "" for nothing.
func (p *proof) missing(i int, s *checkpoint.State) string {
	switch t := &p.tables[i]; {
	case s.Listed < p.through:
		return "no complete listing of its shards was begun since"
	case !t.read:
		return "a shard is not read so far"
	case mark(s) < t.entry:
		return fmt.Sprintf("Bigtable has not applied entry %d of its log yet", t.entry)
	}
	return ""
}
