package checkpoint

import (
	"slices"

	"github.com/tailrace-cdc/replicator/change"
)

// openShard lets a waiting shard be read if its parent is finished, or if it has none.
//
// Rule 3: this is the one place where a shard begins. Readable shows what it has decided.
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

// inheritFrom raises a shard's clock and times to the values of its finished parent. Rule 5: an
// item's versions grow along its lineage.
func (sh *Shard) inheritFrom(p *Shard) {
	sh.Clock, sh.LastAlive = max(sh.Clock, p.Clock), max(sh.LastAlive, p.LastAlive)
	sh.Watermark = max(sh.Watermark, p.LastAlive)
}

// finishShard ends the reading of a shard and releases its children, unless its own parent is not
// finished yet.
func (s *State) finishShard(sh *Shard) {
	if !sh.Phase.Finished() {
		was := sh.Phase
		sh.Phase, sh.Loss.Pending, sh.FinishedAt = PhaseFinished, false, s.Date
		sh.Unended = !was.Closed()
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

// mayLive reports whether a listing shows a finished shard without an end although none has shown
// that it has one. It may have begun before the shard was finished: then it shows nothing.
func (sh *Shard) mayLive(x ShardSeen, began change.Millis) bool {
	return sh.Phase == PhaseFinished && sh.Unended && !x.Closed && began >= sh.FinishedAt
}

// RevivedBy reports whether a listing changes what the log holds about a finished shard: it shows
// the end that was missing, or that the shard lives.
func (sh *Shard) RevivedBy(x ShardSeen, began change.Millis) bool {
	return sh.Unended && x.Closed || sh.mayLive(x, began) && (!sh.SeenOpen || began >= sh.FinishedAt+childListingDelay)
}

// reopen notes that a finished shard lives. Once listings show that for longer than they may leave
// out the shard's end and its children, it is read on behind its last position: a gap that ended it
// was wrong.
//
// Rule 13: a listing overrides an earlier answer that the shard is gone.
func (s *State) reopen(sh *Shard, began change.Millis) {
	sh.SeenOpen = true
	if began < sh.FinishedAt+childListingDelay {
		return
	}
	s.readOn(sh, PhaseOpen)
}

// showEnd notes that a listing shows the end of a shard, or a child of it. If a gap ended the shard
// before that, it took writes behind the gap: none of its children is known yet, so what is left of
// it is read before them.
//
// Rules 8 and 13: what such a gap leaves out would be lost in silence. If the shard is really gone,
// its reader finds that out, and the gap that follows reaches to the end.
func (s *State) showEnd(sh *Shard) {
	switch {
	case !sh.Unended || !s.endedByGap(sh):
	case sh.Phase == PhaseFinished:
		s.readOn(sh, PhaseClosed)
	case sh.Phase == PhaseEarly:
		s.readOn(sh, PhaseWaitingClosed)
	}
	sh.close()
}

// endedByGap reports whether a gap has ended a shard.
func (s *State) endedByGap(sh *Shard) bool {
	return slices.ContainsFunc(s.Gaps, func(g Gap) bool {
		return g.Ends && g.Feed.Shard == sh.ID && g.Feed.Stream == sh.Stream
	})
}

// readOn makes a finished shard one that is read behind its last position.
func (s *State) readOn(sh *Shard, as Phase) {
	sh.Phase, sh.FinishedAt, sh.Unended, sh.SeenOpen = as, 0, false, false
	s.index.finished = slices.DeleteFunc(s.index.finished, func(other *Shard) bool { return other == sh })
}

// UnreadOpenShards returns the shards of the live stream that are not read although the newest
// listing shows them without an end and without a child, sorted: finished ones, and those that
// stand before a gap.
//
// Rules 10 and 13: while there is one, nothing proves that everything up to some time is read.
func (s *State) UnreadOpenShards() (ids []string) {
	live := s.LiveStream()
	for id, sh := range s.index.unreadOpen {
		if live != nil && sh.Stream == live.ARN {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// releaseChildren lets the children of a finished shard be read, and the descendants behind those
// children that were finished early.
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

// LostBeforeStart reports whether all records of a lost shard were written, and probably trimmed,
// before the pipeline started: the shard took no more writes at the first listing, and had no
// records soon after. Such records were never promised to be carried. found is the time at which
// the loss was found.
func (s *State) LostBeforeStart(sh *Shard, found change.Millis) bool {
	st := s.Stream(sh.Stream)
	if st == nil || sh.FirstSeen != st.Date || sh.Pos.After != "" || sh.LastAlive >= openUntil(st.Date) {
		return false
	}
	return sh.Pos.At >= st.Date || found-st.Date <= firstReadsGrace
}

// firstReadsGrace is how long the first reads of a new pipeline may take to find shards that were
// trimmed before it.
const firstReadsGrace = 3600 * 1000
