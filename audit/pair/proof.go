package pair

import (
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
)

// proof is protocol.Proof over the logs of all tables. The archive and copies do not count. It also
// notes when a log last came closer, so that a wait in which nothing moves can end.
type proof struct {
	tables []tableProof
	moved  time.Time // when a log was last seen to come closer, by this process's clock
}

// tableProof is the proof of one table.
type tableProof struct {
	protocol.Proof
	missing protocol.Missing
	seen    [3]uint64
}

func newProof(through change.Millis, tables int, at time.Time) *proof {
	p := &proof{tables: make([]tableProof, tables), moved: at}
	for i := range p.tables {
		p.tables[i].Through = through
	}
	return p
}

// met takes the states of all logs, always in the same order, and reports whether the proof is
// there.
func (p *proof) met(states []*checkpoint.State, at time.Time) bool {
	all := true
	for i, s := range states {
		t, mark := &p.tables[i], s.AppliedMark()
		if now := [3]uint64{uint64(s.Listed), uint64(s.ReadWatermark()), mark}; now != t.seen {
			t.seen, p.moved = now, at
		}
		t.missing = t.Look(s, mark)
		all = all && t.missing == protocol.MissingNothing
	}
	return all
}

// why describes what the proof of a table waited for at the last look; "" for nothing.
func (p *proof) why(i int, s *checkpoint.State) string {
	return p.tables[i].Why(p.tables[i].missing, s)
}

// heartbeatProof decides from the states of the logs for which tables heartbeats prove that Bigtable
// has every change up to a time.
type heartbeatProof struct {
	tables []protocol.Proof
	wait   func(table int) time.Duration // how long a heartbeat may take; 0 where none are written
	proven []bool
}

func newHeartbeatProof(through change.Millis, tables int, wait func(table int) time.Duration) *heartbeatProof {
	b := &heartbeatProof{tables: make([]protocol.Proof, tables), wait: wait, proven: make([]bool, tables)}
	for i := range b.tables {
		b.tables[i].Through = through
	}
	return b
}

// awaited takes the states of all logs, always in the same order, and reports whether heartbeats
// may prove more. They prove nothing of a table while an open shard has none.
func (b *heartbeatProof) awaited(states []*checkpoint.State) (more bool) {
	for i, s := range states {
		missing := b.tables[i].LookByHeartbeats(s, s.AppliedMark())
		b.proven[i] = b.proven[i] || missing == protocol.MissingNothing
		if p := &s.Proof; p.Assumed > 0 || p.Read == 0 {
			more = more || !b.proven[i] && b.young(i, s)
			continue
		}
		more = more || !b.proven[i]
	}
	return more
}

// young reports whether the life of a log's owner is too short for a heartbeat out of each shard:
// each command that appends to the log begins another life, and that needs a proof of its own.
func (b *heartbeatProof) young(table int, s *checkpoint.State) bool {
	wait, p := change.Millis(b.wait(table).Milliseconds()), &s.Proof
	silent := p.Assumed == 0 && p.Read == 0 // also after a snapshot, until the next beat
	return wait > 0 && (silent || s.Date < p.Since+wait)
}
