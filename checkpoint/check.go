package checkpoint

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
)

// CheckNext reports whether an entry with this body may be appended next. Errors: *FormatError, it
// needs a newer format than the log's; *CorruptError, it would contradict the log; *FenceError, a
// fence forbids it; *DelegatedError, workers may still write. A writer checks before it appends,
// since a stored entry cannot be taken back; the fold checks again.
func (s *State) CheckNext(body any) error {
	if err := s.checkFormat(body); errors.As(err, new(*FormatError)) {
		return err
	} else if err != nil {
		return &CorruptError{Seq: s.Seq + 1, What: err.Error()}
	}
	if what := s.contradicts(s.Seq+1, body); what != "" {
		return &CorruptError{Seq: s.Seq + 1, What: what}
	}
	return s.checkFence(body)
}

// contradicts returns how an entry with this body contradicts the entries before it; "" when it
// does not.
func (s *State) contradicts(seq uint64, body any) string {
	switch b := body.(type) {
	case *Claim:
		if b.Life < s.Life {
			return fmt.Sprintf("life %d after life %d", b.Life, s.Life)
		}
	case *Start:
		return s.checkStart(b)
	case *Graph:
		if s.Stream(b.Stream) == nil {
			return "listing of a stream that was never started: " + b.Stream
		}
		if b.Disabled && b.Enabled {
			return "listing of a stream that takes records and takes none: " + b.Stream
		}
		return checkShards(b.Shards)
	case *Frame:
		return s.checkFrame(b)
	case *Marks:
		return s.checkMarks(seq, b)
	case *Gap:
		return s.checkGap(b)
	case *Copy:
		return s.checkCopy(b)
	case *CopyMarks:
		return s.checkCopyMarks(b)
	}
	return ""
}

// checkStart admits a stream once, after the one before it is drained, with well-formed shards.
func (s *State) checkStart(b *Start) string {
	if s.Stream(b.Stream) != nil {
		return "stream started twice: " + b.Stream
	}
	if n := len(s.Streams); n > 0 && !s.Drained(s.Streams[n-1].ARN) {
		return "stream started before the one before it was read to its end: " + b.Stream
	}
	if b.Recover && len(s.Streams) > 0 {
		return "start after a lost log in a log that has a stream: " + b.Stream
	}
	if what := s.checkParts(b); what != "" {
		return what
	}
	return checkShards(b.Shards)
}

func checkShards(seen []ShardSeen) string {
	for _, x := range seen {
		if x.ID == "" || x.ID == x.Parent {
			return fmt.Sprintf("shard %q with parent %q", x.ID, x.Parent)
		}
	}
	return ""
}

// checkFrame compares every page with the log's position and clock of its shard (Rule 2). A frame
// never holds the end of a shard and a page of its child: the child is read only after the frame is
// stored (Rule 3).
func (s *State) checkFrame(f *Frame) string {
	ends := make(map[string]*PageHead, 1) // the newest page of each shard so far
	for i := range f.Pages {
		p := &f.Pages[i]
		sh := s.Shards[p.Feed.Shard]
		if sh == nil || sh.Stream != p.Feed.Stream {
			return "page of a shard that was never listed: " + p.Feed.Shard
		}
		if !s.Readable(sh) {
			return fmt.Sprintf("page of shard %s, which may not be read: %s", sh.ID, sh.Phase)
		}
		pos, clock := sh.Pos, sh.Clock
		if last := ends[sh.ID]; last != nil {
			if last.Done {
				return "page of shard " + sh.ID + " after its end"
			}
			pos, clock = last.To, last.Clock
		}
		if p.From != pos || p.ClockFrom != clock {
			return fmt.Sprintf("page of shard %s starts at %v, clock %d; the log is at %v, clock %d",
				sh.ID, p.From, p.ClockFrom, pos, clock)
		}
		if what := cmp.Or(p.check(), s.checkRoom(p)); what != "" {
			return fmt.Sprintf("page of shard %s %s", sh.ID, what)
		}
		ends[sh.ID] = p
	}
	return ""
}

// check returns what is wrong with a page in itself; "" when nothing is.
func (p *PageHead) check() string {
	switch {
	case p.Records < 0:
		return "holds a negative number of records"
	case p.Clock < p.ClockFrom+change.Version(p.Records): // Rule 5: each record has a version of its own
		return fmt.Sprintf("takes the clock from %d to %d over %d records", p.ClockFrom, p.Clock, p.Records)
	case p.moves() && p.To.After.Compare(p.From.After) <= 0:
		return fmt.Sprintf("goes from %v to %v", p.From, p.To)
	}
	return ""
}

// checkRoom returns how a page contradicts what copies and resyncs write; "" when it does not.
//
// Rule 5: every change that is applied is above what they take from the floor, whatever way the
// life began. Records that are older than the life are not applied: change.Life.Applies leaves them
// out.
func (s *State) checkRoom(p *PageHead) string {
	if p.Records == 0 || s.LifeOf(p.Feed.Stream) != (change.Life{}) || p.ClockFrom >= s.lowestClock() {
		return ""
	}
	return fmt.Sprintf("gives out versions from %d on, and copies write at %d", p.ClockFrom+1, s.lowestClock())
}

// moves reports whether a page leads to another position: one with records must, an empty one may.
func (p *PageHead) moves() bool { return p.Records > 0 || p.From.After != p.To.After }

// checkMarks lets the marks of sinks move forward, never back, and never ahead of the log (Rule 1).
func (s *State) checkMarks(seq uint64, m *Marks) string {
	for sink, mark := range m.Sinks {
		if old, ok := s.Marks[sink]; ok && mark.Seq < old.Seq {
			return fmt.Sprintf("mark of %s goes back from %d to %d", sink, old.Seq, mark.Seq)
		}
		if mark.Seq >= seq {
			return fmt.Sprintf("mark of %s at %d is ahead of the log", sink, mark.Seq)
		}
		if what := s.checkMarkAtFence(sink, mark); what != "" {
			return what
		}
	}
	return ""
}

func (s *State) checkGap(g *Gap) string {
	if g.Feed.Shard == "" {
		return ""
	}
	if sh := s.Shards[g.Feed.Shard]; sh == nil || sh.Stream != g.Feed.Stream {
		return "gap in a shard that was never listed: " + g.Feed.Shard
	}
	return ""
}
