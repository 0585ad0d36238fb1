package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
)

// ReasonBeforeStart is the reason of a gap of records that were trimmed before the pipeline ever
// started. The pipeline does not promise these records, so the gap makes no sink differ. Logs hold
// it as it stands here, so it is a code: it never changes.
const ReasonBeforeStart = "nothing was left of the shard when the pipeline started"

// BeforeStart reports whether a gap is only of what was trimmed before the pipeline ever started:
// its stored reason is the mark of that.
func (g *Gap) BeforeStart() bool { return g.Reason == ReasonBeforeStart }

// Waiver records that an operator accepts that a sink differs from the source because of a gap.
type Waiver struct {
	By string        `json:"by,omitempty"`
	At change.Millis `json:"at,omitempty"`
}

// Waive names a gap and a sink: see Waiver.
type Waive struct {
	Gap  string `json:"gap,omitempty"` // its ID
	Sink string `json:"sink,omitempty"`
}

// ID names a gap for people and scripts. It never changes.
func (g *Gap) ID() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d %d %d",
		g.Feed.Stream, g.Feed.Shard, g.From.After, g.From.At, g.Since, g.Found))
	return hex.EncodeToString(sum[:5])
}

// AffectedSinks returns the sinks that lack the changes lost in a gap, sorted.
func (s *State) AffectedSinks(g *Gap) []string {
	switch {
	case g.BeforeStart():
		return nil
	case len(g.Sinks) > 0:
		return g.Sinks
	}
	return slices.Sorted(maps.Keys(s.Marks)) // none had begun when the gap was found: assume all
}

// DifferingSinks returns the affected sinks for which the gap is neither healed nor waived, sorted:
// their content differs from the source. Reading on behind the gap does not change that. Retired
// sinks are left out.
func (s *State) DifferingSinks(g *Gap) (sinks []string) {
	for _, sink := range s.AffectedSinks(g) {
		_, waived := g.Waived[sink]
		_, healed := g.Healed[sink]
		if _, active := s.Marks[sink]; active && !waived && !healed {
			sinks = append(sinks, sink)
		}
	}
	return sinks
}

// DiffersSince returns the earliest time from which changes are missing in a sink because of a gap
// that is not waived for it; 0 when no sink differs.
//
// Rule 8: accepting a gap lets the reading go on and brings back nothing of what was lost.
func (s *State) DiffersSince() (since change.Millis) {
	for i := range s.Gaps {
		g := &s.Gaps[i]
		if len(s.DifferingSinks(g)) == 0 {
			continue
		}
		if from := s.GapStart(g); since == 0 || from < since {
			since = from
		}
	}
	return since
}

// GapStart returns the time before which no change was created that a gap lost (Rule 8): its range
// must hold them all. For a shard of which nothing was read that is the start position of its
// stream.
func (s *State) GapStart(g *Gap) change.Millis {
	st := s.Stream(g.Feed.Stream)
	switch {
	case g.Since > 0 || st == nil:
		return max(g.Since-change.CreatedEarly, 1)
	case st.At > 0:
		return st.At
	}
	return st.Date - retention
}

// GapsUntil returns the end of the latest gap, healed or not; 0 without one. An item that was read
// before does not show what the gap lost. Losses from before the start are none.
func (s *State) GapsUntil() (until change.Millis) {
	for i := range s.Gaps {
		if g := &s.Gaps[i]; !g.BeforeStart() {
			until = max(until, g.Until, g.Since)
		}
	}
	return until
}

// BigtableDiffers reports whether Bigtable lacks what a gap lost.
func (s *State) BigtableDiffers(g *Gap) bool {
	return slices.Contains(s.DifferingSinks(g), SinkBigtable)
}

// DifferingGaps returns the gaps because of which Bigtable differs from the source, whether or not
// the pending resync heals them.
func (s *State) DifferingGaps() (gaps []*Gap) {
	for i := range s.Gaps {
		if g := &s.Gaps[i]; s.BigtableDiffers(g) {
			gaps = append(gaps, g)
		}
	}
	return gaps
}

// GapsToHeal returns the gaps because of which Bigtable differs from the source, and that nothing
// heals yet. It is the only judge of that question (Rule 14): a table that heals its gaps by itself
// calls it, and so does `repair --gaps`. An order for gaps that the pending resync heals would begin
// the whole comparison again.
func (s *State) GapsToHeal() []*Gap {
	return slices.DeleteFunc(s.DifferingGaps(), func(g *Gap) bool {
		return s.Resync != nil && s.Resync.Heals(g.ID())
	})
}

// GapState is how far a gap has come.
type GapState string

// The states of a gap.
const (
	GapOpen     GapState = "open"     // what comes after it is not read
	GapAccepted GapState = "accepted" // reading went on; rows may differ
	GapHealing  GapState = "healing"  // the pending resync makes the rows true
	GapHealed   GapState = "healed"   // the rows are true, whatever the archive lacks
	GapSettled  GapState = "settled"  // it is accepted, and no sink lacks anything that is not waived
)

// GapState returns how far a gap has come. It is the only judge of that question (Rule 14): the
// page and the commands show it.
func (s *State) GapState(g *Gap) GapState {
	_, healed := g.Healed[SinkBigtable]
	switch {
	case !g.Accepted:
		return GapOpen
	case s.Resync != nil && s.Resync.Heals(g.ID()):
		return GapHealing
	case healed:
		return GapHealed
	case len(s.DifferingSinks(g)) == 0:
		return GapSettled
	}
	return GapAccepted
}

// OpenGaps counts the gaps that are not accepted.
func (s *State) OpenGaps() (n int) {
	for _, g := range s.Gaps {
		if !g.Accepted {
			n++
		}
	}
	return n
}

// GapByID returns the gap with an ID; nil if there is none.
func (s *State) GapByID(id string) *Gap {
	for i := range s.Gaps {
		if s.Gaps[i].ID() == id {
			return &s.Gaps[i]
		}
	}
	return nil
}

// addGap stores a gap with the sinks that have begun by now. Sinks that begin later do not lack
// what it lost.
func (s *State) addGap(g Gap) {
	if !g.BeforeStart() {
		g.Sinks = slices.Sorted(maps.Keys(s.Marks))
	}
	if g.Accepted {
		g.Above = s.TopClock()
	}
	s.Gaps = append(s.Gaps, g)
}

// PrepareGap reports whether a gap that was found must be stored, and completes it. What was found
// may be known by now: its shard is finished, or stands before another gap.
func (s *State) PrepareGap(g *Gap) (store bool) {
	sh := s.Shards[g.Feed.Shard]
	switch {
	case g.Feed.Shard == "":
		return s.LostBetween(g)
	case sh == nil:
	case sh.Phase.Finished() || sh.Loss.Pending:
		return false
	case g.Ends && s.LostBeforeStart(sh, g.Found): // such records were never promised
		g.Accepted, g.Reason = true, ReasonBeforeStart
	}
	return true
}

// LostBetween prepares the gap between a stream and the table's next one, and reports whether it
// must be stored.
//
// Rule 8: the owner that stored it before may have died before the next stream was started, and
// that stream may have been trimmed since then. Within the retention nothing of it is lost; later,
// what came after the earlier gap may be.
func (s *State) LostBetween(g *Gap) bool {
	for i := range s.Gaps {
		earlier := &s.Gaps[i]
		if earlier.Feed != g.Feed {
			continue
		}
		if g.Until-earlier.Until < retention {
			return false
		}
		g.Since = max(g.Since, earlier.Until)
	}
	return true
}

// applyGap adds a gap. What was read before the gap but never stored is lost as well, so the gap
// begins at the position in the log.
func (s *State) applyGap(b *Gap) {
	g := *b
	s.Date = max(s.Date, g.Found)
	sh := s.Shards[g.Feed.Shard]
	open := sh != nil && !sh.Phase.Finished()
	if open && g.From != sh.Pos {
		g.From, g.Since = sh.Pos, min(g.Since, sh.Watermark)
	}
	s.addGap(g)
	switch {
	case !open:
	case g.Ends:
		s.finishShard(sh)
	case g.Accepted:
		sh.skipLoss(g.Until)
	default:
		sh.Loss.Pending = true
		s.reindexWithChildren(sh)
	}
}

// acceptGap lets the shard go on at its trim horizon. Where that is by now is not known; the gap
// ends there, at most now.
func (s *State) acceptGap(g *Gap) {
	if sh := s.Shards[g.Feed.Shard]; sh != nil && sh.Loss.Pending && !g.Accepted {
		g.Until = max(g.Until, s.Date)
		sh.Loss.Pending = false
		sh.skipLoss(g.Until)
		s.reindexWithChildren(sh)
	}
	if !g.Accepted {
		g.Above = s.TopClock()
	}
	g.Accepted = true
}

// waiveGap waives a gap for a sink. It ignores a gap that is unknown or not accepted, and a sink
// that does not differ because of the gap.
func (s *State) waiveGap(w *Waive, by Waiver) {
	g := s.GapByID(w.Gap)
	if g == nil || !g.Accepted || !slices.Contains(s.DifferingSinks(g), w.Sink) {
		return
	}
	if g.Waived == nil {
		g.Waived = map[string]Waiver{}
	}
	g.Waived[w.Sink] = by
}
