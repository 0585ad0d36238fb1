package sim

import (
	"slices"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// store appends a message if its writer names the last one.
//
// Rule 2: this comparison is what admits one writer.
func (w *World) store(expected uint64, data []byte) error {
	l := w.log
	if expected != l.last() && w.mutant != NoExpectedSequence {
		return errWrongLast
	}
	if w.mutant == NoChain {
		data = w.rechain(data)
	}
	m := message{data: data}
	m.entry, _ = checkpoint.Decode(data)
	seq := l.last() + 1
	open, before := seenOpen(l.truth), beforeEntry(l.truth)
	e, err := l.truth.Apply(seq, data)
	if err != nil {
		w.fail("log adds up", "entry %d: %v", seq, err)
	}
	w.reachedIf(e == nil, notInChain)
	for _, sh := range open {
		w.reachedIf(sh.Phase.Reading(), shardReopened)
	}
	m.counts = e != nil
	if e != nil && e.Kind == checkpoint.KindFrame {
		m.records = w.decodeRecords(e.Data)
	}
	l.msgs = append(l.msgs, m)
	w.storedEntry(seq, &l.msgs[seq-1])
	if m.counts {
		w.continues(m.entry, before)
	}
	return nil
}

// seenOpen returns the finished shards that a listing has shown without an end.
func seenOpen(s *checkpoint.State) (all []*checkpoint.Shard) {
	for _, sh := range s.Shards {
		if sh.SeenOpen {
			all = append(all, sh)
		}
	}
	return all
}

// rechain makes a message name the newest entry as its predecessor: as if entries named none.
func (w *World) rechain(data []byte) []byte {
	e, err := checkpoint.Decode(data)
	if err != nil {
		return data
	}
	e.Prev = w.log.truth.Hash
	again, err := checkpoint.Encode(nil, e)
	w.must(err)
	return again
}

// deliver lets an append arrive that its writer has given up.
func (w *World) deliver(i int) {
	x := w.log.late[i]
	w.log.late = slices.Delete(w.log.late, i, i+1)
	if x.created == w.log.created {
		w.logf("a late append arrives, expecting %d", x.expected)
		w.reachedIf(w.store(x.expected, x.data) != nil, lateRefused)
	}
}

// fold adds up what a process can read: the last snapshot, and what follows it. lag is how far the
// replica that it reads is behind the leader.
//
// Rule 2: where the replica has no more to deliver although the leader does, the rest is read
// elsewhere. Without the leader the fold would take the rest for lost.
func (w *World) fold(lag uint64) *checkpoint.State {
	l := w.log
	if l.last() == 0 {
		return checkpoint.NewState()
	}
	end := l.last()
	w.reachedIf(lag > 0 && end > l.first, leaderAsked)
	if w.mutant == NoLeaderCheck {
		end -= min(lag, end-l.first)
	}
	s, next := w.base(end)
	for seq := next; seq <= end; seq++ {
		if _, err := s.Apply(seq, l.at(seq).data); err != nil {
			w.fail("log adds up", "fold at entry %d: %v", seq, err)
		}
	}
	s.Seq = l.last()
	return s
}

// base returns the state of the last snapshot that can be used, and the first entry after it.
func (w *World) base(end uint64) (*checkpoint.State, uint64) {
	l := w.log
	for seq := end; seq >= l.first; seq-- {
		if m := l.at(seq); m.entry == nil || m.entry.Kind != checkpoint.KindSnapshot {
			continue
		}
		s, err := checkpoint.Restore(seq, [][]byte{l.at(seq).data})
		if err != nil {
			continue
		}
		chain := &s.Chain
		if w.mutant == OldSnapshots {
			chain = nil
		}
		if !w.reachedIf(!w.predecessor(seq, s.Hash, chain), oldSnapshot) {
			return s, seq
		}
	}
	if l.first > 1 {
		w.fail("log adds up", "the log begins at %d and has no snapshot", l.first)
	}
	return checkpoint.NewState(), 1
}

// predecessor reports whether the entry before a sequence has a hash.
func (w *World) predecessor(before uint64, want checkpoint.Hash, chain *checkpoint.Chain) bool {
	l := w.log
	ok, err := checkpoint.Predecessor(l.first, before, want, chain, func(seq uint64) ([]byte, error) {
		return l.at(seq).data, nil
	})
	w.must(err)
	return ok
}
