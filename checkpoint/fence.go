package checkpoint

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// Fence is the entry behind which nothing is applied to Bigtable, for a cutover. Reading and the
// archive go on.
type Fence struct {
	ID string `json:"id"`
	// Seq is the entry's own sequence, Last the sequence of the newest entry with changes before
	// it: a mark at Last or behind it means that Bigtable has everything up to the fence.
	Seq  uint64        `json:"seq"`
	Last uint64        `json:"last"`
	At   change.Millis `json:"at"`
	By   string        `json:"by,omitempty"`

	// Behind are the changes behind the fence: what the application wrote to DynamoDB, and Bigtable
	// does not get. Deletions by TTL do not count, and heartbeats are no changes.
	Behind uint64 `json:"behind,omitempty"`
	// BehindSince is the lowest creation time of the first records of the pages that hold them.
	BehindSince change.Millis `json:"behind_since,omitempty"`
	// Certified is when the certificate of the cutover was issued; 0: none was, as far as is noted.
	Certified change.Millis `json:"certified,omitempty"`
}

// Stops reports whether an entry is behind the fence, so that a pass into Bigtable does not read
// it; never without a fence.
//
// Rule 12: behind a fence nothing is written to Bigtable, whatever process owns the log, and after
// any restart.
func (f *Fence) Stops(seq uint64) bool { return f != nil && seq > f.Seq }

// FenceOrder raises a fence in the log, or takes it away. The row in Bigtable holds the fence
// before the log does, and still holds it when the fence is taken away.
type FenceOrder struct {
	ID   string `json:"id"`
	Undo bool   `json:"undo,omitempty"`
}

// Certify notes in the log that the certificate of a cutover was issued: from then on the
// application may write to Bigtable, and what is written to DynamoDB is no longer replicated.
type Certify struct {
	ID string `json:"id"` // of the cutover
}

// FenceError means that an entry may not be appended because of a fence, or that a fence may not be
// raised now.
type FenceError struct{ What string }

func (e *FenceError) Error() string { return e.What }

// DelegatedError means that an entry may not be appended while workers may write.
type DelegatedError struct{ What string }

func (e *DelegatedError) Error() string { return e.What }

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

// AppliedMark returns the entry up to which Bigtable has what it is to have. A sink that stands at
// a fence has all of it.
func (s *State) AppliedMark() uint64 {
	if s.StandsAtFence() {
		return max(s.LastFrame, s.Fence.Seq)
	}
	return s.Marks[SinkBigtable].Seq
}

// checkFence returns why a fence forbids an entry, or why a fence may not be raised now.
//
// Rule 12: behind a fence nothing is written to Bigtable, and nothing may request it. The writer
// checks it before it appends, so two commands at once cannot both succeed; the fold ignores what
// is in the log all the same.
func (s *State) checkFence(body any) error {
	switch b := body.(type) {
	case *Copy:
		return s.Fenced("a copy")
	case *Control:
		switch {
		case b.Fence != nil:
			return s.checkFenceOrder(b.Fence)
		case b.Certify != nil:
			return s.checkCertify(b.Certify)
		case b.Resync != nil:
			return s.Fenced("a repair")
		case b.Accept != nil:
			return s.checkAccept(b.Accept)
		case b.Copy != nil:
			return s.Fenced("a copy")
		}
	}
	return nil
}

// checkAccept returns why another mapping may not be accepted now; nil when it may.
func (s *State) checkAccept(b *Accept) error {
	if b.To != b.From && s.WorkersMayWrite() {
		return &DelegatedError{"workers copy the table with its mapping"}
	}
	return s.Fenced("another mapping")
}

// checkFenceOrder returns why a fence may not be raised or taken away now; nil when it may.
func (s *State) checkFenceOrder(b *FenceOrder) error {
	_, marked := s.Marks[SinkBigtable]
	work := s.Unfinished()
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
	case work.Copy != CopyNone:
		return refuse("its copy is not complete")
	case work.Resync != ResyncNone:
		return refuse("a resync is pending")
	}
	return nil
}

// checkCertify returns why it may not be noted now that a certificate was issued. A change that was
// read behind the fence since the last look is found here: the entry comes behind all that the log
// holds.
func (s *State) checkCertify(b *Certify) error {
	switch {
	case s.Fence == nil || s.Fence.ID != b.ID:
		return &FenceError{"the fence of cutover " + b.ID + " was taken away"}
	case s.Fence.Behind > 0:
		return &FenceError{fmt.Sprintf("changes behind the fence of cutover %s: %d that Bigtable lacks", b.ID,
			s.Fence.Behind)}
	}
	return nil
}

// applyCertify notes that the certificate of the fence was issued. Of several the first counts.
func (s *State) applyCertify(c *Control) {
	if s.checkCertify(c.Certify) != nil || s.Fence.Certified > 0 {
		return
	}
	next := *s.Fence
	next.Certified = max(c.At, s.Date)
	s.Fence = &next
}

// noteBehind counts the changes of a page behind the fence. The fence that others hold stays as it
// is.
func (s *State) noteBehind(p *PageHead) {
	if s.Fence == nil {
		return
	}
	written := p.Records
	for _, n := range p.Expired {
		written -= int(n)
	}
	if written <= 0 {
		return
	}
	next := *s.Fence
	if next.Behind == 0 || p.Oldest < next.BehindSince { // shards are not read in the order of their changes
		next.BehindSince = p.Oldest
	}
	next.Behind += uint64(written)
	s.Fence = &next
}

// checkMarkAtFence returns how a mark of the Bigtable sink contradicts a fence; "" when it does
// not.
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

// Unapplied returns the sink that has the most entries still to apply, up to the last one with
// changes, and how many; "" and 0 when none has any. The Bigtable sink has nothing to apply behind
// a fence.
func (s *State) Unapplied() (sink string, entries uint64) {
	for _, name := range slices.Sorted(maps.Keys(s.Marks)) {
		if mark, end := s.Marks[name].Seq, s.LastFor(name); mark < end && end-mark > entries {
			sink, entries = name, end-mark
		}
	}
	return sink, entries
}

// AllApplied reports whether every sink has applied all changes in the log that it is to apply;
// false while the log holds changes and there is no sink.
func (s *State) AllApplied() bool {
	_, entries := s.Unapplied()
	return entries == 0 && (len(s.Marks) > 0 || s.LastFrame == 0)
}

// LastFor returns the newest entry with changes that a sink is to apply.
//
// Rule 12: for Bigtable there is none behind a fence.
func (s *State) LastFor(sink string) uint64 {
	if s.Fence != nil && sink == SinkBigtable {
		return s.Fence.Last
	}
	return s.LastFrame
}
