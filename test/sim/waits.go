package sim

import (
	"maps"
	"math"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
)

// ask returns what a proof lacks.
func (w *World) ask(p *protocol.Proof, s *checkpoint.State, mark uint64) protocol.Missing {
	missing := p.Look(s, mark)
	if w.mutant == NoReader && missing == protocol.MissingReader && min(s.Listed, s.ReadWatermark()) >= p.Through {
		return protocol.MissingNothing
	}
	return missing
}

// refused checks Rule 13: while a shard is not read that listings show without an end, the log
// answers no question about what was written before, whatever time is asked about. Shards before a
// gap are another answer.
func (w *World) refused(m *message) {
	s := w.log.truth
	w.noteShown(m.entry.Body)
	for id := range w.unread {
		p := protocol.Proof{} // through no time at all, so that the watermark does not refuse it
		missing := w.ask(&p, s, math.MaxUint64)
		if w.reachedIf(missing == protocol.MissingReader, waitRefused); missing == protocol.MissingNothing {
			w.fail("what is listed is read", "%s is finished, a listing shows it without an end, and a wait ends", id)
		}
	}
}

// noteShown notes behind an entry which finished shards a listing has shown without an end.
func (w *World) noteShown(body any) {
	s := w.log.truth
	defer maps.DeleteFunc(w.unread, func(id string, _ bool) bool {
		sh := s.Shards[id]
		return sh == nil || !sh.Phase.Finished() || s.LiveStream() == nil || sh.Stream != s.LiveStream().ARN
	})
	g, ok := body.(*checkpoint.Graph)
	if !ok {
		return
	}
	maps.DeleteFunc(w.unread, func(id string, _ bool) bool { // the newest listing does not show it at all
		shown := slices.ContainsFunc(g.Shards, func(x checkpoint.ShardSeen) bool { return x.ID == id })
		return slices.Contains(g.Absent, id) || g.Complete && !g.Delta && !shown
	})
	for _, x := range g.Shards {
		sh := s.Shards[x.ID]
		if sh == nil || !sh.Phase.Finished() || g.Date < sh.FinishedAt {
			continue
		}
		ended := x.Closed || slices.ContainsFunc(g.Shards, func(y checkpoint.ShardSeen) bool { return y.Parent == x.ID })
		if ended {
			delete(w.unread, x.ID)
		} else if sh.Unended {
			w.unread[x.ID] = true
		}
	}
}

// provedFor checks Rule 10 where a process acts on its proof: everything that a reading may show is
// in the log, up to the mark, or in a gap; and the current log proves it, whatever an earlier one
// did.
func (p *process) provedFor(r *reading, mark uint64) {
	now := protocol.Proof{Through: r.wait.Through}
	if missing := now.Look(p.s, math.MaxUint64); missing != protocol.MissingNothing {
		p.fail("proved is applied", "%s takes everything through %d for read, and the log lacks: %s",
			p.name, r.wait.Through, missing)
	}
	if listed := p.listedAt(); listed < r.wait.Through {
		p.fail("proved is applied", "%s takes everything through %d for read, and the newest listing began at %d",
			p.name, r.wait.Through, listed)
	}
	for _, rec := range p.records {
		if rec.created > r.wait.Through-protocol.AnswerMargin-skew || rec.shard.stream != p.World.log.truth.LiveStream().ARN {
			continue
		}
		if (rec.seq == 0 || rec.seq > mark) && !p.excused(rec) {
			p.fail("proved is applied", "%s takes everything through %d for applied, up to %d; write %d, of %d, is in entry %d",
				p.name, r.wait.Through, mark, rec.n, rec.created, rec.seq)
		}
	}
}

// listedAt returns when the newest complete listing of the stream began that the log shows to a
// process.
func (p *process) listedAt() (at change.Millis) {
	l := p.World.log
	for seq := min(p.s.Seq, l.last()); seq > 0; seq-- {
		m := l.at(seq)
		if !m.counts {
			continue
		}
		switch b := m.entry.Body.(type) {
		case *checkpoint.Start:
			return max(at, b.Date)
		case *checkpoint.Graph:
			if b.Complete && b.Stream == p.s.LiveStream().ARN {
				at = max(at, b.Date)
			}
		case *checkpoint.Beat:
			at = max(at, b.Listed)
		}
	}
	return at
}

// excused reports whether a record need not be in the log: it is in a gap, older than the start, or
// older than what the start of its stream promises and trimmed by now.
func (w *World) excused(r *record) bool {
	s := w.log.truth
	if len(s.Streams) == 0 {
		return true
	}
	first := s.Streams[0]
	if r.created < first.At || r.shard.stream < first.ARN {
		return true
	}
	if st := s.Stream(r.shard.stream); st != nil && r.created < w.now-retention &&
		r.created < change.StreamCompleteUntil(st.ARN, st.At, st.Date) && !w.lostBefore(st) {
		return true
	}
	return slices.ContainsFunc(s.Gaps, func(g checkpoint.Gap) bool {
		if g.Canceled {
			return false // a copy has not read the items, no record was lost
		}
		if st := s.Stream(r.shard.stream); g.BeforeStart() && r.created > st.Date+skew {
			return false // only what is older than the start was never promised
		}
		return s.GapStart(&g) <= r.created && r.created <= g.Until &&
			(g.Feed.Shard == r.shard.id || g.Feed.Shard == "" || s.Shards[r.shard.id] == nil)
	})
}

// lostBefore reports whether a later stream had lost something when it was started: the gap before
// it must say so.
func (w *World) lostBefore(st *checkpoint.Stream) bool {
	s := w.log.truth
	if st == s.Streams[0] {
		return false
	}
	until := change.Millis(0)
	for i := range s.Gaps {
		if g := &s.Gaps[i]; g.Feed.Shard == "" && s.Stream(g.Feed.Stream) != nil && g.Until <= st.Date {
			until = max(until, g.Until)
		}
	}
	return st.Date-until >= retention
}
