package checkpoint

import (
	"maps"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
)

// forgetAfter is how long a finished shard stays after it vanished from the listings: an inconsistent
// listing may show it again, and it must not be read twice.
const forgetAfter = 48 * 3600 * 1000

// Readable says whether a shard may be read now. Rule 3: a child only after its parent is finished in the log.
func (s *State) Readable(sh *Shard) bool { return sh.Phase.Reading() && !sh.Loss.Pending }

// CompleteUntil returns, for a shard that is to be read from its beginning or from the start time, the time up to which
// none of its changes is missing: they were read, did not exist, are older than the pipeline's start, or their loss was
// accepted. Once the retention has passed since that time, some of the shard may have been trimmed, although
// neither an iterator at the trim horizon nor one at a time reports it.
func (s *State) CompleteUntil(sh *Shard) change.Millis {
	since := max(sh.Watermark, sh.Loss.AcceptedUntil)
	if st := s.stream(sh.Stream); st != nil {
		since = max(since, st.Date)
	}
	return since
}

func (s *State) startStream(seq uint64, b *Start) {
	// Rule 5: versions grow from one stream of the table to the next.
	floor := max(b.Floor, s.HighestVersion())
	s.Streams = append(s.Streams, &Stream{ARN: b.Stream, Date: b.Date, Mode: b.Mode, At: b.At, Floor: floor, Seq: seq})
	s.Date = max(s.Date, b.Date)
	s.noteListing(b.Date)
	s.mergeShards(b.Stream, b.Shards, b.Date, change.Position{At: b.At})
}

func (s *State) applyGraph(b *Graph) {
	s.Date = max(s.Date, b.Date)
	st := s.LiveStream()
	if st.ARN != b.Stream {
		return // all of it was read before the live stream was started
	}
	if b.Complete {
		s.noteListing(b.Date)
	}
	if b.Disabled && !st.Disabled {
		st.Disabled = true
		s.Reindex()
	}
	// Rule 3: a shard that appears after the start is a child, or a root that was created later. Either way all
	// of it is new to us: it starts at its trim horizon, never at the start position of the pipeline.
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

func (s *State) stream(arn string) *Stream {
	for _, st := range s.Streams {
		if st.ARN == arn {
			return st
		}
	}
	return nil
}

// see takes shards in, parents before children in whatever order they are listed.
func (s *State) mergeShards(arn string, seen []ShardSeen, date change.Millis, pos change.Position) {
	floor := s.stream(arn).Floor
	for _, x := range seen {
		sh := s.Shards[x.ID]
		if sh == nil || sh.Stream != arn {
			sh = &Shard{ID: x.ID, Stream: arn, Parent: x.Parent, Phase: PhaseWaiting, Pos: pos, Clock: floor, FirstSeen: date}
			s.addShard(sh)
		}
		if sh.AbsentSince = 0; x.Closed {
			sh.close()
		}
		// A listing may show a parent open while its child is there: the parent is closed.
		if p := s.Shards[x.Parent]; p != nil && !p.Phase.Closed() {
			p.close()
			s.reindexShard(p)
		}
	}
	for _, x := range seen {
		sh := s.Shards[x.ID]
		if !sh.Phase.Closed() {
			sh.LastAlive = max(sh.LastAlive, date-visibilityDelay)
		}
		s.openShard(sh)
		s.reindexWithChildren(sh)
	}
}

// open lets a waiting shard be read if its parent is finished, or if it has none.
func (s *State) openShard(sh *Shard) {
	if !sh.Phase.Waiting() {
		return
	}
	if sh.Parent == "" {
		sh.Phase = sh.Phase.begun()
		s.reindexWithChildren(sh)
		return
	}
	if p := s.Shards[sh.Parent]; p != nil && p.Phase == PhaseFinished {
		sh.Phase = sh.Phase.begun()
		sh.inheritFrom(p)
		s.reindexWithChildren(sh)
	}
}

// inherit takes over what a finished parent leaves. Rule 5: an item's versions grow along its lineage.
func (sh *Shard) inheritFrom(p *Shard) {
	sh.Clock, sh.LastAlive = max(sh.Clock, p.Clock), max(sh.LastAlive, p.LastAlive)
	sh.Watermark = max(sh.Watermark, p.LastAlive)
}

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

// release lets the children of a finished shard be read, through those that were closed before their turn.
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

// retention is how long the service keeps a record.
const retention = 24 * 3600 * 1000

// LostBeforeStart reports whether all records of a lost shard were written, and probably trimmed, before the pipeline
// started: the shard took no more writes at the first listing, and had no records soon after. Such records were never
// promised to be carried. found is the time at which the loss was found.
func (s *State) LostBeforeStart(sh *Shard, found change.Millis) bool {
	st := s.stream(sh.Stream)
	if st == nil || sh.FirstSeen != st.Date || sh.Pos.After != "" || sh.LastAlive >= st.Date-visibilityDelay {
		return false
	}
	return sh.Pos.At >= st.Date || found-st.Date <= firstReadsGrace
}

// startGrace is how long the first reads of a new pipeline may take to find shards that were trimmed before it.
const firstReadsGrace = 3600 * 1000

// gone closes a shard that the service does not know any more, with a gap if something of it may have been lost.
// A parent that was trimmed before the stream was started is just finished.
//
// Rule 8: a shard that came and went while nobody was reading is a gap too, although the log never saw it. How
// many there were before it in its lineage is not known, so all that is unknown since the start is in doubt.
func (s *State) finishGone(b *Graph, id string) {
	sh, st := s.Shards[id], s.stream(b.Stream)
	gap := Gap{
		Feed: change.Feed{Stream: b.Stream, Shard: id}, Since: st.Date, Until: b.Date, Found: b.Date, Ends: true,
		Reason: "the shard is gone: it was trimmed before it was read to its end",
	}
	lost := sh == nil && b.Date-retention >= st.Date && !s.hadChildAt(id, st.Date)
	if sh == nil {
		sh = &Shard{ID: id, Stream: b.Stream, FirstSeen: b.Date, AbsentSince: b.Date, Clock: max(st.Floor, s.DroppedVersion)}
		s.addShard(sh)
	} else if !sh.Phase.Finished() {
		lost, gap.From, gap.Since = true, sh.Pos, sh.Watermark
	}
	if lost {
		s.addGap(gap)
	}
	s.finishShard(sh)
}

// from says whether a child of this parent was there when the stream was started.
func (s *State) hadChildAt(parent string, date change.Millis) bool {
	return slices.ContainsFunc(s.index.children[parent], func(sh *Shard) bool { return sh.FirstSeen == date })
}

// forget drops finished shards that complete listings have not shown for 48 hours.
func (s *State) forgetUnlisted(b *Graph) {
	listed := make(map[string]bool, len(b.Shards))
	for _, x := range b.Shards {
		listed[x.ID] = true
	}
	for id, sh := range s.Shards {
		switch {
		case listed[id] || sh.Phase != PhaseFinished:
		case sh.AbsentSince == 0:
			sh.AbsentSince = b.Date
			s.reindexShard(sh)
		case sh.forgettable(b.Date):
			s.dropShard(sh)
		}
	}
}

// drop forgets a shard, but not how high its versions went (Rule 5).
func (s *State) dropShard(sh *Shard) {
	s.DroppedVersion = max(s.DroppedVersion, sh.Clock)
	s.removeShard(sh)
}

// forgotten says whether nobody waits for a finished shard any more: all its children were released long ago.
func (sh *Shard) forgettable(date change.Millis) bool { return date-sh.AbsentSince >= forgetAfter }

// Drained says whether every shard of a stream is read to its end and none can come any more.
func (s *State) Drained(arn string) bool {
	st := s.stream(arn)
	return st != nil && st.Disabled && s.index.unfinished[arn] == 0
}

// LiveStream returns the stream that is being read, nil before the start.
func (s *State) LiveStream() *Stream {
	if len(s.Streams) == 0 {
		return nil
	}
	return s.Streams[len(s.Streams)-1]
}

// HighestVersion returns the highest version that was ever assigned, or a floor above it.
func (s *State) HighestVersion() change.Version { return max(s.DroppedVersion, s.index.top) }

// MissingParents returns the parents that waiting shards name and that no listing in the log has shown.
func (s *State) MissingParents() []string { return slices.Sorted(maps.Keys(s.index.missingParents)) }

// listingDiffers reports whether a listing holds anything that the log does not: only then it is stored.
func (s *State) listingDiffers(b *Graph) bool {
	st := s.stream(b.Stream)
	if st != nil && st != s.LiveStream() {
		return false
	}
	if st == nil || b.Disabled && !st.Disabled || len(b.Gone) > 0 {
		return true
	}
	listed := make(map[string]bool, len(b.Shards))
	for _, x := range b.Shards {
		listed[x.ID] = true
		sh := s.Shards[x.ID]
		if sh == nil || x.Closed && !sh.Phase.Closed() || sh.AbsentSince != 0 {
			return true
		}
	}
	if !b.Complete {
		return false
	}
	for id, sh := range s.Shards {
		if !listed[id] && sh.Phase == PhaseFinished && (sh.AbsentSince == 0 || sh.forgettable(b.Date)) {
			return true
		}
	}
	return false
}

// ShardCounts returns how many shards are open, closed but not read to their end, waiting, and done.
func (s *State) ShardCounts() (open, closed, waiting, done int) {
	n := &s.index.counts
	return n[roleOpen], n[roleClosed], n[roleWaiting], n[roleDone]
}
