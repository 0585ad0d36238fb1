package checkpoint

import (
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
)

// Phase of a shard.
type Phase string

// The phases of a shard. A shard waits until its parent is finished in the log.
const (
	Waiting  Phase = "waiting"
	Open     Phase = "open"
	Finished Phase = "finished"
)

// Shard is what the log knows about one shard.
type Shard struct {
	ID      string          `json:"id"`
	Stream  string          `json:"stream"`
	Parent  string          `json:"parent,omitempty"`
	Phase   Phase           `json:"phase"`
	Pos     change.Position `json:"pos"`
	Clock   int64           `json:"clock"`             // version of the last change, ms
	Through int64           `json:"through,omitempty"` // everything created up to here was read; unix ms
	Closed  bool            `json:"closed,omitempty"`  // takes no more writes
	Gapped  bool            `json:"gapped,omitempty"`  // stands before a gap that nobody has accepted
	Horizon bool            `json:"horizon,omitempty"` // an accepted gap ends at the trim horizon, wherever that is
	Seen    int64           `json:"seen"`              // date of the listing that showed it first
	Absent  int64           `json:"absent,omitempty"`  // date of the first complete listing since without it
}

// forgetAfter is how long a finished shard stays after it vanished from the listings: an inconsistent
// listing may show it again, and it must not be read twice.
const forgetAfter = 48 * 3600 * 1000

// Readable says whether a shard may be read now. Rule 3: a child only after its parent is finished in the log.
func (s *State) Readable(sh *Shard) bool { return sh.Phase == Open && !sh.Gapped }

func (s *State) start(seq uint64, b *Start) string {
	if s.stream(b.Stream) != nil {
		return "stream started twice: " + b.Stream
	}
	if n := len(s.Streams); n > 0 && !s.Drained(s.Streams[n-1].ARN) {
		return "stream started before the one before it was read to its end: " + b.Stream
	}
	s.Streams = append(s.Streams, &Stream{ARN: b.Stream, Date: b.Date, Mode: b.Mode, At: b.At, Floor: b.Floor, Seq: seq})
	s.Date, s.Listed = max(s.Date, b.Date), max(s.Listed, b.Date)
	s.see(b.Stream, b.Shards, b.Date, change.Position{At: b.At})
	return ""
}

func (s *State) graph(b *Graph) string {
	st := s.stream(b.Stream)
	if st == nil {
		return "listing of a stream that was never started: " + b.Stream
	}
	s.Date = max(s.Date, b.Date)
	if b.Complete {
		s.Listed = max(s.Listed, b.Date)
	}
	st.Disabled = st.Disabled || b.Disabled
	// Rule 3: a shard that appears after the start is a child, or a root that was created later. Either way all
	// of it is new to us: it starts at its trim horizon, never at the start position of the pipeline.
	s.see(b.Stream, b.Shards, b.Date, change.Position{})
	for _, id := range b.Gone {
		s.gone(b, id)
	}
	if b.Complete {
		s.forget(b)
	}
	return ""
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
func (s *State) see(arn string, seen []ShardSeen, date int64, pos change.Position) {
	floor := s.stream(arn).Floor
	for _, x := range seen {
		sh := s.Shards[x.ID]
		if sh == nil {
			sh = &Shard{ID: x.ID, Stream: arn, Parent: x.Parent, Phase: Waiting, Pos: pos, Clock: floor, Seen: date}
			s.Shards[x.ID] = sh
		}
		sh.Closed = sh.Closed || x.Closed
		sh.Absent = 0
		// A listing may show a parent open while its child is there: the parent is closed.
		if p := s.Shards[x.Parent]; p != nil {
			p.Closed = true
		}
	}
	for _, x := range seen {
		s.open(s.Shards[x.ID])
	}
}

// open lets a waiting shard be read if its parent is finished, or if it has none.
func (s *State) open(sh *Shard) {
	if sh.Phase != Waiting {
		return
	}
	if sh.Parent == "" {
		sh.Phase = Open
		return
	}
	if p := s.Shards[sh.Parent]; p != nil && p.Phase == Finished {
		// Rule 5: an item's versions grow along its lineage.
		sh.Phase, sh.Clock, sh.Through = Open, max(sh.Clock, p.Clock), max(sh.Through, p.Through)
		p.Closed = true
	}
}

func (s *State) finish(sh *Shard) {
	sh.Phase, sh.Closed, sh.Gapped = Finished, true, false
	for _, child := range s.Shards {
		if child.Parent == sh.ID {
			s.open(child)
		}
	}
}

// gone closes a shard that the service does not know any more, with a gap if it was known and not read to
// its end. A parent that was trimmed before we ever saw it is just finished.
func (s *State) gone(b *Graph, id string) {
	sh := s.Shards[id]
	if sh == nil {
		sh = &Shard{ID: id, Stream: b.Stream, Seen: b.Date, Absent: b.Date, Clock: s.stream(b.Stream).Floor}
		s.Shards[id] = sh
	} else if sh.Phase != Finished {
		s.Gaps = append(s.Gaps, Gap{
			Feed: change.Feed{Stream: sh.Stream, Shard: id}, From: sh.Pos, Since: sh.Through, Until: b.Date,
			Reason: "the shard is gone: it was trimmed before it was read to its end", Found: b.Date, Ends: true,
		})
	}
	s.finish(sh)
}

// forget drops finished shards that complete listings have not shown for 48 hours.
func (s *State) forget(b *Graph) {
	listed := make(map[string]bool, len(b.Shards))
	for _, x := range b.Shards {
		listed[x.ID] = true
	}
	for id, sh := range s.Shards {
		if sh.Stream != b.Stream || listed[id] || sh.Phase != Finished {
			continue
		}
		if sh.Absent == 0 {
			sh.Absent = b.Date
		} else if b.Date-sh.Absent >= forgetAfter && !s.awaited(id) {
			delete(s.Shards, id)
		}
	}
}

func (s *State) awaited(parent string) bool {
	for _, sh := range s.Shards {
		if sh.Parent == parent && sh.Phase == Waiting {
			return true
		}
	}
	return false
}

// Drained says whether every shard of a stream is read to its end and none can come any more.
func (s *State) Drained(arn string) bool {
	st := s.stream(arn)
	if st == nil || !st.Disabled {
		return false
	}
	for _, sh := range s.Shards {
		if sh.Stream == arn && sh.Phase != Finished {
			return false
		}
	}
	return true
}

// Live returns the stream that is being read, nil before the start.
func (s *State) Live() *Stream {
	if len(s.Streams) == 0 {
		return nil
	}
	return s.Streams[len(s.Streams)-1]
}

// TopClock returns the highest version that was ever given out.
func (s *State) TopClock() (top int64) {
	for _, sh := range s.Shards {
		top = max(top, sh.Clock)
	}
	return top
}

// Missing returns the parents that waiting shards name and that the log has never seen.
func (s *State) Missing() (ids []string) {
	for _, sh := range s.Shards {
		if sh.Phase == Waiting && s.Shards[sh.Parent] == nil {
			ids = append(ids, sh.Parent)
		}
	}
	return ids
}

// Changed says whether a listing tells the log anything new: it is worth an entry only then.
func (s *State) Changed(b *Graph) bool {
	st := s.stream(b.Stream)
	if st == nil || b.Disabled && !st.Disabled || len(b.Gone) > 0 {
		return true
	}
	listed := make(map[string]bool, len(b.Shards))
	for _, x := range b.Shards {
		listed[x.ID] = true
		sh := s.Shards[x.ID]
		if sh == nil || x.Closed && !sh.Closed || sh.Absent != 0 {
			return true
		}
	}
	if !b.Complete {
		return false
	}
	for id, sh := range s.Shards {
		if sh.Stream == b.Stream && !listed[id] && sh.Phase == Finished {
			if sh.Absent == 0 || b.Date-sh.Absent >= forgetAfter && !s.awaited(id) {
				return true
			}
		}
	}
	return false
}

// Counts returns how many shards are open, closed but not read to their end, waiting, and done.
func (s *State) Counts() (open, closed, waiting, done int) {
	for _, sh := range s.Shards {
		switch {
		case sh.Phase == Finished:
			done++
		case sh.Phase == Waiting:
			waiting++
		case sh.Closed:
			closed++
		default:
			open++
		}
	}
	return
}

// String describes a shard for people.
func (sh *Shard) String() string {
	return fmt.Sprintf("%s %s after %q", sh.ID, sh.Phase, sh.Pos.After)
}
