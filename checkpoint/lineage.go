package checkpoint

import "github.com/tailrace-cdc/replicator/change"

// openShard lets a waiting shard be read if its parent is finished, or if it has none (Rule 3).
func (s *State) openShard(sh *Shard) {
	if !sh.Phase.Waiting() {
		return
	}
	if sh.Parent == "" {
		sh.Phase = sh.Phase.Begun()
		s.reindexWithChildren(sh)
		return
	}
	if p := s.Shards[sh.Parent]; p != nil && p.Phase == PhaseFinished {
		sh.Phase = sh.Phase.Begun()
		sh.inheritFrom(p)
		s.reindexWithChildren(sh)
	}
}

// inheritFrom raises a shard's clock and times to those of its finished parent. Rule 5: an item's versions grow along
// its lineage.
func (sh *Shard) inheritFrom(p *Shard) {
	sh.Clock, sh.LastAlive = max(sh.Clock, p.Clock), max(sh.LastAlive, p.LastAlive)
	sh.Watermark = max(sh.Watermark, p.LastAlive)
}

// finishShard ends the reading of a shard and releases its children, unless its own parent is not finished yet.
func (s *State) finishShard(sh *Shard) {
	if !sh.Phase.Finished() {
		was := sh.Phase
		sh.Phase, sh.Loss.Pending, sh.FinishedAt = PhaseFinished, false, s.Date
		if p := s.Shards[sh.Parent]; was.Waiting() && p != nil && p.Phase != PhaseFinished {
			sh.Phase = PhaseEarly
		}
		s.index.finished = append(s.index.finished, sh)
		s.reindexWithChildren(sh)
	}
	if sh.Phase == PhaseFinished {
		s.releaseChildren(sh)
	}
}

// releaseChildren lets the children of a finished shard be read, and the descendants behind those children that were
// finished early.
func (s *State) releaseChildren(sh *Shard) {
	for _, child := range s.index.children[sh.ID] {
		if child.Phase == PhaseEarly {
			child.Phase = PhaseFinished
			child.inheritFrom(sh)
			s.reindexWithChildren(child)
			s.releaseChildren(child)
		}
		s.openShard(child)
	}
}

// LostBeforeStart reports whether all records of a lost shard were written, and probably trimmed, before the pipeline
// started: the shard took no more writes at the first listing, and had no records soon after. Such records were never
// promised to be carried. found is the time at which the loss was found.
func (s *State) LostBeforeStart(sh *Shard, found change.Millis) bool {
	st := s.Stream(sh.Stream)
	if st == nil || sh.FirstSeen != st.Date || sh.Pos.After != "" || sh.LastAlive >= st.Date-visibilityDelay {
		return false
	}
	return sh.Pos.At >= st.Date || found-st.Date <= firstReadsGrace
}

// firstReadsGrace is how long the first reads of a new pipeline may take to find shards that were trimmed before it.
const firstReadsGrace = 3600 * 1000
