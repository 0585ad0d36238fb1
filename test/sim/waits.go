package sim

import (
	"math"
	"slices"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
)

// ask asks a proof what it lacks.
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
	if g, ok := m.entry.Body.(*checkpoint.Graph); ok {
		w.noteShown(s, g)
	}
	for id := range w.unread {
		sh := s.Shards[id]
		if sh == nil || !sh.Phase.Finished() || s.LiveStream() == nil || sh.Stream != s.LiveStream().ARN {
			delete(w.unread, id)
			continue
		}
		p := protocol.Proof{} // through no time at all, so that the watermark does not refuse it
		missing := w.ask(&p, s, math.MaxUint64)
		if w.reachedIf(missing == protocol.MissingReader, waitRefused); missing == protocol.MissingNothing {
			w.fail("what is listed is read", "%s is finished, a listing shows it without an end, and a wait ends", id)
		}
	}
}

// noteShown notes which finished shards a listing shows without an end.
func (w *World) noteShown(s *checkpoint.State, g *checkpoint.Graph) {
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
