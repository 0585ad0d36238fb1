package protocol

import (
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

// Obstacle is why something that was written is not in Bigtable and will not get there by waiting.
type Obstacle string

// The obstacles.
const (
	// ObstacleGaps: changes were lost before they were read, and the gap is neither healed nor
	// waived.
	ObstacleGaps Obstacle = "gaps"
	// ObstacleLetters: changes or items were refused, and are dead letters.
	ObstacleLetters Obstacle = "letters"
	// ObstacleHeld: a sink stands before a change that is refused, because the table halts at
	// refusals.
	ObstacleHeld Obstacle = "held"
	// ObstacleFence: changes were written behind the fence of a cutover, so Bigtable does not get
	// them while the fence stands.
	ObstacleFence Obstacle = "behind_fence"
)

// Loss is an obstacle, and how many gaps, letters, sinks or changes it concerns.
type Loss struct {
	Code  Obstacle `json:"code"`
	Count int      `json:"count"`
}

// Accept names the obstacles that a caller accepts: then what they keep from Bigtable does not
// count.
type Accept struct{ Gaps, Letters bool }

// Answer is the answer to the question of a Goal.
type Answer struct {
	// Missing is what must still happen by itself. Empty and without Losses: the goal is met.
	Missing Missing
	// Losses are the obstacles before the goal that are not accepted.
	Losses []Loss
}

// Met reports whether everything that was written before the goal is in Bigtable.
func (a Answer) Met() bool { return a.Missing == MissingNothing && len(a.Losses) == 0 }

// Blocked reports whether only obstacles stand before the goal.
func (a Answer) Blocked() bool { return a.Missing == MissingNothing && len(a.Losses) > 0 }

// Goal decides whether everything that was written to a table before a time of the service is in
// Bigtable, or if the table has no target, in the archive. It is the judge of `status --wait` and
// `run --drain-and-exit` (Rule 14).
//
// Rule 10: everything that was read proves nothing about what was lost before it was read, or
// refused. So gaps, dead letters and a sink that stands before a refused change count as well, and
// so does a copy of older items that is not complete.
type Goal struct {
	Through change.Millis
	Accept  Accept
	// Heals is true when the owner accepts and heals gaps by itself: then a gap is something to
	// wait for.
	Heals bool

	all, besideGaps Proof
}

// Look answers for a state of the table's log. letters is the number of dead letters of changes
// before Through.
func (g *Goal) Look(s *checkpoint.State, letters int) Answer {
	var a Answer
	gaps, held := g.gaps(s), heldSinks(s)
	a.add(ObstacleGaps, gaps, g.Accept.Gaps || g.Heals)
	a.add(ObstacleLetters, letters, g.Accept.Letters)
	a.add(ObstacleHeld, held, false)
	a.add(ObstacleFence, g.behindFence(s), false)
	g.all.Through, g.besideGaps.Through, g.besideGaps.BesideGaps = g.Through, g.Through, true
	low := lowMark(s, nil)
	all, beside := g.all.Look(s, low), g.besideGaps.Look(s, low)
	switch {
	case !g.Heals:
		a.Missing = beside // the gaps are among the obstacles, or accepted
	case all == MissingNothing && gaps > 0:
		a.Missing = MissingAccept
	default:
		a.Missing = all
	}
	if a.Missing == MissingApplied && held > 0 {
		// A held sink applies nothing until an operator acts. The others go on.
		a.Missing = g.besideGaps.Look(s, lowMark(s, s.AllHalts()))
	}
	if a.Missing == MissingNothing {
		a.Missing = unfinished(s)
	}
	return a
}

// add adds an obstacle that is there and not accepted.
func (a *Answer) add(code Obstacle, count int, accepted bool) {
	if count > 0 && !accepted {
		a.Losses = append(a.Losses, Loss{Code: code, Count: count})
	}
}

// gaps counts the gaps that lost changes from before the goal, and that keep them from Bigtable.
// Without a target it counts those that keep them from the archive.
func (g *Goal) gaps(s *checkpoint.State) (n int) {
	_, target := s.Marks[checkpoint.SinkBigtable]
	for i := range s.Gaps {
		gap := &s.Gaps[i]
		differs := s.BigtableDiffers(gap) || !target && len(s.DifferingSinks(gap)) > 0
		if differs && s.GapStart(gap) < g.Through {
			n++
		}
	}
	return n
}

// heldSinks counts the sinks that stand before a refused change.
func heldSinks(s *checkpoint.State) (n int) {
	for _, h := range s.AllHalts() {
		if h.Held {
			n++
		}
	}
	return n
}

// behindFence counts the changes from before the goal that were read behind a fence. All that were
// read behind it count if the oldest one does, because only that one's time is stored.
func (g *Goal) behindFence(s *checkpoint.State) int {
	if s.Fence == nil || s.Fence.Behind == 0 || s.Fence.BehindSince >= g.Through {
		return 0
	}
	return int(s.Fence.Behind)
}

// lowMark returns the lowest mark of the sinks that do not stand before a refused change, given the
// halts of the sinks.
//
// Rule 12: what is behind a fence is not applied, so a sink that stands at the fence lacks nothing
// but the changes that are counted behind it.
func lowMark(s *checkpoint.State, halts map[string]*checkpoint.Halt) uint64 {
	if len(s.Marks) == 0 {
		return 0
	}
	low := s.LastFrame
	for sink, m := range s.Marks {
		seq := m.Seq
		if sink == checkpoint.SinkBigtable {
			seq = s.AppliedMark()
		}
		if h := halts[sink]; h == nil || !h.Held {
			low = min(low, seq)
		}
	}
	return low
}

// unfinished returns which work is not complete that brings items to Bigtable from before any goal.
// A comparison that an operator ordered is none: nothing is known to be missing.
func unfinished(s *checkpoint.State) Missing {
	switch work := s.Unfinished(); {
	case work.Copy != checkpoint.CopyNone:
		return MissingCopy
	case work.Resync.Missing():
		return MissingResync
	}
	return MissingNothing
}
