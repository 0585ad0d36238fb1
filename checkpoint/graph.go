package checkpoint

import (
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
)

// forgetAfter is how long a finished shard stays in the state after listings stopped showing it. An
// inconsistent listing may show it again, and it must not be read twice.
const forgetAfter = 48 * 3600 * 1000

// startStream adds a stream with the shards of its first listing. It becomes the live one.
func (s *State) startStream(seq uint64, b *Start) {
	// Rule 5: versions grow from one stream of the table to the next.
	floor := max(b.Floor, s.TopClock())
	s.Streams = append(s.Streams, &Stream{
		ARN: b.Stream, Date: b.Date, Mode: b.Mode, At: b.At, Floor: floor, After: b.After, Seq: seq,
	})
	s.Date = max(s.Date, b.Date)
	s.noteListing(b.Date)
	if len(s.Streams) == 1 {
		s.Backfill, s.notCopied = b.Backfill, b.NotCopied
	}
	if b.Recover {
		s.Resync = &PendingResync{ID: "recover", Recover: true, Above: floor, Asked: b.Date}
	}
	s.mergeShards(b.Stream, b.Shards, b.Date, change.Position{At: b.At})
}

// applyGraph adds what a later listing found: new shards, ends of shards, shards that are gone.
func (s *State) applyGraph(b *Graph) {
	s.Date = max(s.Date, b.Date)
	st := s.LiveStream()
	if st.ARN != b.Stream {
		return // all of it was read before the live stream was started
	}
	if b.Complete {
		s.noteListing(b.Date)
	}
	// Rule 13: what was stored of a stream's end is taken back by an answer that shows records
	// being taken.
	if b.Disabled && !st.Disabled || b.Enabled && st.Disabled {
		st.Disabled = b.Disabled
		s.Reindex()
	}
	// Rule 3: a shard that appears after the start is a child, or a root that was created later.
	// Either way all of it was written since: it starts at its trim horizon, never at the start
	// position of the pipeline.
	s.mergeShards(b.Stream, b.Shards, b.Date, change.Position{})
	for _, id := range b.Gone {
		s.finishGone(b, id)
	}
	if b.Delta {
		s.applyAbsent(b)
	} else if b.Complete {
		s.forgetUnlisted(b)
	}
	s.lowerWatermarks()
}

// mergeShards adds the shards of a listing at a start position, and updates those that are known. A
// listing may show children before their parents.
func (s *State) mergeShards(arn string, seen []ShardSeen, date change.Millis, pos change.Position) {
	clock := s.clockAtStart(s.Stream(arn))
	for _, x := range seen {
		sh := s.Shards[x.ID]
		if sh == nil || sh.Stream != arn {
			sh = &Shard{ID: x.ID, Stream: arn, Parent: x.Parent, Phase: PhaseWaiting, Pos: pos, Clock: clock, FirstSeen: date}
			s.addShard(sh)
		}
		if sh.AbsentSince = 0; x.Closed {
			s.showEnd(sh)
		}
		// A listing may show a parent open while its child is there: the parent is closed.
		if p := s.Shards[x.Parent]; p != nil && (!p.Phase.Closed() || p.Unended) {
			s.showEnd(p)
			s.reindexShard(p)
		}
	}
	for _, x := range seen {
		sh := s.Shards[x.ID]
		if sh.mayLive(x, date) && len(s.index.children[x.ID]) == 0 {
			s.reopen(sh, date)
		}
		if !sh.Phase.Closed() {
			sh.LastAlive = max(sh.LastAlive, openUntil(date))
		}
		s.openShard(sh)
		s.reindexWithChildren(sh)
	}
}

// retention is how long the service keeps a record.
const retention = 24 * 3600 * 1000

// finishGone finishes a shard that the service no longer has, with a gap if some of its
// records may be lost. A parent that was trimmed before the stream was started is finished without
// one.
//
// Rule 8: a shard that appeared and was trimmed while no process read is a gap too, although no
// listing in the log shows it. Its lineage may hold more such shards, so the gap spans the whole
// time since the start.
func (s *State) finishGone(b *Graph, id string) {
	sh, st := s.Shards[id], s.Stream(b.Stream)
	gap := Gap{
		Feed: change.Feed{Stream: b.Stream, Shard: id}, Since: st.Date, Until: b.Date, Found: b.Date, Ends: true,
		Reason: "the shard is gone: it was trimmed before it was read to its end",
	}
	lost := sh == nil && b.Date-retention >= st.Date && !s.hadChildAt(id, st.Date)
	if sh == nil {
		sh = &Shard{ID: id, Stream: b.Stream, FirstSeen: b.Date, AbsentSince: b.Date, Clock: s.clockOfLost(id, st)}
		s.addShard(sh)
	} else if !sh.Phase.Finished() {
		lost, gap.From, gap.Since = true, sh.Pos, sh.Watermark
	}
	if lost {
		s.addGap(gap)
	}
	s.finishShard(sh)
}

// clockOfLost returns the clock of a shard that no listing showed. The versions of its children
// must be above every version of its ancestors (Rule 5).
//
// A shard that was trimmed before the stream was started has no version in this life. If records
// older than the life are read, the clocks of its children begin where the clocks of all shards
// began, because else all of their old records would be applied.
func (s *State) clockOfLost(id string, st *Stream) change.Version {
	if s.hadChildAt(id, st.Date) {
		return s.clockAtStart(st)
	}
	return s.TopClock()
}

// hadChildAt reports whether the listing of a date was the first to show a child of a parent.
func (s *State) hadChildAt(parent string, date change.Millis) bool {
	return slices.ContainsFunc(s.index.children[parent], func(sh *Shard) bool { return sh.FirstSeen == date })
}

// forgetUnlisted drops finished shards that complete listings have not shown for forgetAfter.
func (s *State) forgetUnlisted(b *Graph) {
	listed := make(map[string]bool, len(b.Shards))
	for _, x := range b.Shards {
		listed[x.ID] = true
	}
	for id, sh := range s.Shards {
		switch {
		case listed[id] || sh.Phase != PhaseFinished:
		case s.MarksAbsent(sh, b.Date):
			s.markAbsent(sh, b.Date)
		case sh.AbsentSince != 0 && sh.Forgettable(b.Date):
			s.dropShard(sh)
		}
	}
}

// MarksAbsent reports whether a complete listing that lacks a shard has something to say of a
// finished shard: it is the first one, or the one that confirms it.
//
// Rule 13: it is no evidence for a shard that another listing has shown without an end since the
// shard was finished. Hosts of the service may differ until every listing shows new shards. Behind
// that, a second listing must confirm that such a shard is gone.
func (s *State) MarksAbsent(sh *Shard, began change.Millis) bool {
	switch {
	case sh.Phase != PhaseFinished || sh.SeenOpen && began < sh.FinishedAt+childListingDelay:
		return false
	case sh.SeenOpen && sh.AbsentSince != 0:
		return began >= sh.AbsentSince+childListingDelay
	}
	return sh.AbsentSince == 0
}

// markAbsent notes a complete listing that lacks a finished shard.
//
// Rule 8: where a listing has shown a shard to live that a gap had ended, it may have taken writes
// until it was trimmed. A shard stays listed for a day after its end, so that takes a day: what is
// left of it is read then, or its reader finds that it is gone, and the gap that follows reaches to
// the end. What is left of an earlier stream is not read: the gap before the next stream has it.
func (s *State) markAbsent(sh *Shard, date change.Millis) {
	live := s.LiveStream()
	switch {
	case !sh.SeenOpen:
	case sh.Stream != live.ARN:
		sh.SeenOpen = false
	case date-sh.FinishedAt >= retention:
		sh.SeenOpen = false
		s.showEnd(sh)
	case sh.AbsentSince != 0:
		sh.SeenOpen = false
	}
	if sh.AbsentSince == 0 {
		sh.AbsentSince = date
	}
	s.reindexWithChildren(sh)
}

// dropShard removes a shard from the state and keeps its highest version (Rule 5).
func (s *State) dropShard(sh *Shard) {
	s.DroppedVersion = max(s.DroppedVersion, sh.Clock)
	s.removeShard(sh)
}

// Forgettable reports whether listings have not shown a shard for forgetAfter. If it is finished,
// all its children were released long ago.
func (sh *Shard) Forgettable(date change.Millis) bool { return date-sh.AbsentSince >= forgetAfter }

// checkParts checks that the parts of a start come in order. The first part may come at any time,
// because it restarts an interrupted start.
func (s *State) checkParts(b *Start) string {
	switch last := s.Starting; {
	case b.Parts < 0 || b.Part < 0 || b.Part > 0 && b.Part >= b.Parts:
		return fmt.Sprintf("part %d of %d of a start", b.Part, b.Parts)
	case b.Part == 0:
	case last == nil || b.Part != last.Part+1:
		return fmt.Sprintf("part %d of a start without the one before", b.Part)
	case b.Parts != last.Parts || b.Stream != last.Stream || b.Date != last.Date ||
		b.At != last.At || b.Mode != last.Mode || b.Floor != last.Floor ||
		b.Backfill != last.Backfill || b.Recover != last.Recover || b.After != last.After:
		return fmt.Sprintf("part %d belongs to another start", b.Part)
	}
	return ""
}

// applyStart collects the parts of a start, and starts the stream with the last one.
func (s *State) applyStart(seq uint64, b *Start) {
	if b.Parts > 1 {
		if b.Part == 0 {
			s.Starting = nil
		}
		whole := *b
		if s.Starting != nil {
			whole.Shards = append(s.Starting.Shards, b.Shards...)
		} else {
			whole.Shards = slices.Clone(b.Shards)
		}
		if s.Starting = &whole; b.Part < b.Parts-1 {
			return
		}
		b = &whole
	}
	s.Starting = nil
	s.Expired.Begin(b.Recover, b.Date)
	s.startStream(seq, b)
}

// applyAbsent is forgetUnlisted for an entry that holds only differences: it marks the shards that
// the entry names, and drops those that have been absent for long. The writer compared the listing
// with the state.
func (s *State) applyAbsent(b *Graph) {
	for _, id := range b.Absent {
		if sh := s.Shards[id]; sh != nil && s.MarksAbsent(sh, b.Date) {
			s.markAbsent(sh, b.Date)
		}
	}
	if !b.Complete {
		return
	}
	for _, sh := range s.index.absent {
		if sh.Phase == PhaseFinished && sh.Forgettable(b.Date) {
			s.dropShard(sh)
		}
	}
}
