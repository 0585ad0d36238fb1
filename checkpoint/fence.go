package checkpoint

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// Fence is the entry behind which nothing is applied to Bigtable, for a cutover. Reading and the archive go on.
type Fence struct {
	ID string `json:"id"`
	// Seq is the entry's own sequence, Last that of the newest entry with changes before it: a mark at Last or behind it
	// means that Bigtable has everything up to the fence.
	Seq  uint64        `json:"seq"`
	Last uint64        `json:"last"`
	At   change.Millis `json:"at"`
	By   string        `json:"by,omitempty"`
}

// Stops reports whether an entry is behind the fence, so that a pass into Bigtable does not read it; never without a
// fence.
//
// Rule 12: behind a fence nothing is written to Bigtable, whoever owns the log, and after any restart.
func (f *Fence) Stops(seq uint64) bool { return f != nil && seq > f.Seq }

// FenceOrder raises a fence in the log, or takes it away. The row in Bigtable says so before the log does, and still
// says so when the fence is taken away. Format 3.
type FenceOrder struct {
	ID   string `json:"id"`
	Undo bool   `json:"undo,omitempty"`
}

// FenceError means that an entry may not be appended because of a fence, or that a fence may not be raised now.
type FenceError struct{ What string }

func (e *FenceError) Error() string { return e.What }

// Fenced returns the fence of a table, or why it is refused what: nil while there is none.
func (s *State) Fenced(what string) error {
	if s.Fence == nil {
		return nil
	}
	return &FenceError{fmt.Sprintf("the table is fenced since %s for cutover %s: %s would write to rows that may belong "+
		"to the application by now", s.Fence.At.Time().UTC().Format(time.RFC3339), s.Fence.ID, what)}
}

// StandsAtFence reports whether Bigtable has everything up to the fence.
func (s *State) StandsAtFence() bool {
	mark, ok := s.Marks[SinkBigtable]
	return ok && s.Fence != nil && mark.Seq >= s.Fence.Last
}

// checkFence says why a fence forbids an entry, or why a fence may not be raised now.
//
// Rule 12: behind a fence nothing is written to Bigtable, and nothing may ask for it. The writer checks it before it
// appends, so two commands at once cannot both succeed; the fold ignores what is in the log all the same.
func (s *State) checkFence(body any) error {
	switch b := body.(type) {
	case *Copy:
		return s.Fenced("a copy")
	case *Control:
		switch {
		case b.Fence != nil:
			return s.checkFenceOrder(b.Fence)
		case b.Resync != nil:
			return s.Fenced("a resync")
		case b.Accept != nil:
			return s.Fenced("another mapping")
		case b.Copy != nil:
			return s.Fenced("a copy")
		}
	}
	return nil
}

// checkFenceOrder says why a fence may not be raised or taken away now; nil when it may.
func (s *State) checkFenceOrder(b *FenceOrder) error {
	_, marked := s.Marks[SinkBigtable]
	refuse := func(what string) error { return &FenceError{"the table cannot be fenced now: " + what} }
	switch {
	case b.ID == "":
		return refuse("the fence has no id")
	case s.Fence != nil && s.Fence.ID != b.ID:
		return &FenceError{"the table has another fence, of cutover " + s.Fence.ID}
	case b.Undo || s.Fence != nil:
		return nil
	case s.LiveStream() == nil || !marked:
		return refuse("it has not been started")
	case s.CopyPending() || s.CopyRunning() != nil || s.Switched != nil || s.Accepting != nil:
		return refuse("its copy is not complete")
	case s.Resync != nil:
		return refuse("a resync is pending")
	}
	return nil
}

// checkMarkAtFence says how a mark of the Bigtable sink contradicts a fence; "" when it does not.
func (s *State) checkMarkAtFence(sink string, mark Mark) string {
	if s.Fence == nil || sink != SinkBigtable || mark.Seq <= s.Fence.Seq {
		return ""
	}
	return fmt.Sprintf("mark of %s at %d is behind the fence at %d", sink, mark.Seq, s.Fence.Seq)
}

// applyFence raises the fence or takes it away. The same order again changes nothing.
func (s *State) applyFence(seq uint64, c *Control) {
	b := c.Fence
	if s.checkFenceOrder(b) != nil {
		return
	}
	switch {
	case b.Undo:
		s.Fence = nil
	case s.Fence == nil:
		s.Fence = &Fence{ID: b.ID, Seq: seq, Last: s.LastFrame, At: max(c.At, s.Date), By: c.By}
	}
}

// Unapplied returns the sink that has the most entries still to apply, up to the last one with changes, and how many;
// "" and 0 when none has any. The Bigtable sink has nothing to apply behind a fence.
func (s *State) Unapplied() (sink string, entries uint64) {
	for _, name := range slices.Sorted(maps.Keys(s.Marks)) {
		end := s.LastFrame
		if s.Fence != nil && name == SinkBigtable {
			end = s.Fence.Last
		}
		if mark := s.Marks[name].Seq; mark < end && end-mark > entries {
			sink, entries = name, end-mark
		}
	}
	return sink, entries
}
