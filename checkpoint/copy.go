package checkpoint

import (
	"fmt"
	"maps"

	"github.com/tailrace-cdc/replicator/change"
)

// Why a copy is made.
const (
	CopyBackfill = "backfill" // the table is older than the pipeline's stream
	CopyMapping  = "mapping"  // a mapping was accepted that gives the same rows other cells
)

// Where a copy reads its items.
const (
	FromScan   = "scan"
	FromExport = "export"
)

// ByWorkers is who copies where it is not the owner of the log: workers outside the daemon, under
// an order that the owner stores beside the table's row, see package delegation.
const ByWorkers = "workers"

// Copy begins a copy of the table's items to Bigtable, read from the table itself alongside the
// running stream. A table has one copy at a time.
type Copy struct {
	ID     string        `json:"id"`
	Why    string        `json:"why"`           // CopyBackfill or CopyMapping
	From   string        `json:"from"`          // FromScan or FromExport
	By     string        `json:"by,omitempty"`  // ByWorkers; empty: the owner of the log
	Export string        `json:"url,omitempty"` // where the export is; empty while one that was asked for is not complete
	Parts  int           `json:"parts"`         // segments of the scan, or files of the export; 0 while not known
	Began  change.Millis `json:"began"`         // service clock; no page is read before
	// Version of all items of an export. 0: each page has the version of its own read.
	Version change.Version `json:"version,omitempty"`
	Items   int64          `json:"items,omitempty"` // as the service estimates, 0 unknown
	Bytes   int64          `json:"bytes,omitempty"`
	// Unconfirmed: DynamoDB could not confirm that the export is whole. The copy leaves a doubt
	// behind.
	Unconfirmed bool `json:"unconfirmed,omitempty"`
}

// CopyMarks record how far a copy has come. Everything before a mark is durable in Bigtable, or a
// dead letter (Rule 1). Only parts that have moved are named.
type CopyMarks struct {
	ID    string           `json:"id"`
	Parts map[int]CopyMark `json:"parts,omitempty"`
	// Paused is why the copy paused itself; Resumed is set when this reason is over.
	Paused  string `json:"paused,omitempty"`
	Resumed bool   `json:"resumed,omitempty"`
	// Closed: nothing is written any more under the order of the workers. What is left is for the
	// owner of the log to copy.
	Closed bool          `json:"closed,omitempty"`
	Date   change.Millis `json:"date,omitempty"`
}

// CopyMark is how far one part of a copy has come.
type CopyMark struct {
	After   string `json:"after,omitempty"` // scan: the last key, typed JSON; export: the number of the last line
	Items   int64  `json:"items,omitempty"`
	Bytes   int64  `json:"bytes,omitempty"`
	Letters int64  `json:"letters,omitempty"` // items that became dead letters
	Done    bool   `json:"done,omitempty"`
}

// CopyState is the newest copy of a table and how far it has come.
type CopyState struct {
	Copy
	Marks     map[int]CopyMark `json:"marks,omitempty"`
	Paused    bool             `json:"paused,omitempty"`     // by an operator
	PausedWhy string           `json:"paused_why,omitempty"` // by itself
	Canceled  bool             `json:"canceled,omitempty"`
	// Delegated is the entry that has delegated the copy to workers; 0: nothing is written but by
	// the owner of the log.
	Delegated uint64 `json:"delegated,omitempty"`
	// TakenBack and Cancels are requests of an operator for a delegated copy, once its order is
	// closed.
	TakenBack bool          `json:"taken_back,omitempty"`
	Cancels   change.Millis `json:"cancels,omitempty"` // when it was ordered; 0: it was not
	Closed    change.Millis `json:"closed,omitempty"`  // service clock of the entry that closed the last order
	Ended     change.Millis `json:"ended,omitempty"`   // service clock of the last mark; 0 while a part is not done
}

// Done reports whether every part was copied.
func (c *CopyState) Done() bool { return c.Ended > 0 }

// Total returns the sum of the marks of all parts.
func (c *CopyState) Total() (sum CopyMark) {
	for _, m := range c.Marks {
		sum.Items += m.Items
		sum.Bytes += m.Bytes
		sum.Letters += m.Letters
	}
	sum.Done = c.Done()
	return sum
}

// allDone reports whether every part has a mark at its end.
func (c *CopyState) allDone() bool {
	for part := range c.Parts {
		if !c.Marks[part].Done {
			return false
		}
	}
	return c.Parts > 0
}

// Closes reports whether the order of a delegated copy is to be closed: an operator requested it,
// the copy pauses, or there is nothing left to do.
func (c *CopyState) Closes() bool {
	return c.Delegated > 0 && (c.TakenBack || c.Cancels > 0 || c.PausedWhy != "" || c.allDone())
}

// WorkersMayWrite reports whether workers outside the daemon may write to the target.
//
// Rule 12: as long as they may, no fence stands, no resync of the whole table reads, no mapping is
// switched, and no copy ends.
func (s *State) WorkersMayWrite() bool { return s.Copy != nil && s.Copy.Delegated > 0 }

// CopyRunning returns the copy that is not complete, nil without one. It may be paused.
func (s *State) CopyRunning() *CopyState {
	if s.Copy == nil || s.Copy.Done() || s.Copy.Canceled {
		return nil
	}
	return s.Copy
}

// CopyPending reports whether the start requested a backfill and its copy has no entry yet.
func (s *State) CopyPending() bool { return s.Backfill != "" && s.Copy == nil && s.Switched == nil }

// applyCopy begins a copy, or completes one after its export was requested. What an operator paused
// stays paused, and what is to be taken back or cancelled still is.
func (s *State) applyCopy(seq uint64, b *Copy) {
	next := &CopyState{Copy: *b, Marks: map[int]CopyMark{}}
	if old := s.Copy; old != nil && old.ID == b.ID {
		next.Marks, next.Paused, next.TakenBack, next.Cancels = old.Marks, old.Paused, old.TakenBack, old.Cancels
		next.Closed = old.Closed
	}
	if b.By == ByWorkers {
		next.Delegated = seq
	}
	s.Copy = next
	if b.Why == CopyMapping { // it may begin later than now: lags are measured by Date
		s.Switched = nil
		return
	}
	s.Date = max(s.Date, b.Began)
}

// applyCopyMarks moves the marks of a copy. Marks of a copy that has ended change nothing.
func (s *State) applyCopyMarks(b *CopyMarks) {
	c := s.CopyRunning()
	if c == nil || c.ID != b.ID {
		return
	}
	s.Date = max(s.Date, b.Date)
	maps.Copy(c.Marks, b.Parts)
	if b.Paused != "" || b.Resumed {
		c.PausedWhy = b.Paused
	}
	if b.Closed {
		s.closeOrder(c)
	}
	if c.allDone() && c.Delegated == 0 && !c.Canceled {
		c.Ended, c.Paused, c.PausedWhy = max(s.Date, 1), false, ""
		s.notCopied = 0
		s.doubtCopy(c)
	}
}

// closeOrder notes that no worker writes any more. A copy that is cancelled ends, unless it was
// complete.
func (s *State) closeOrder(c *CopyState) {
	c.By, c.Delegated, c.Closed, c.TakenBack = "", 0, max(s.Date, 1), false
	if c.Cancels > 0 && !c.allDone() {
		s.cancelCopy(c, c.Cancels)
	}
	c.Cancels = 0
}

// doubtCopy leaves a gap behind a copy of an export that is unconfirmed, once the copy is complete.
//
// Rule 8: that nothing is missing is not known.
// Rule 13: no answer about a filter is not the answer that there was none.
func (s *State) doubtCopy(c *CopyState) {
	if !c.Unconfirmed {
		return
	}
	s.Gaps = append(s.Gaps, Gap{
		Feed: change.Feed{Stream: "copy/" + c.ID}, Since: 1, Until: c.Began, Found: c.Ended, Ends: true, Accepted: true,
		Doubt: DoubtUnconfirmed, Reason: ReasonUnconfirmed, Sinks: []string{SinkBigtable}, Above: s.TopClock(),
	})
}

// ReasonCopyCanceled is the reason of the gap that a cancelled copy leaves, for people:
// Gap.Canceled is its code.
const ReasonCopyCanceled = "copy cancelled: items that were not copied are missing until they change"

// controlCopy executes an operator's order for a copy. An order that comes late, when its copy has
// ended, does not concern the next one. While workers may write, a copy is neither cancelled nor
// continued by the owner: both wait until their order is closed.
func (s *State) controlCopy(seq uint64, b *CopyOrder, at change.Millis) {
	c := s.CopyRunning()
	if c == nil || c.ID != b.ID {
		return
	}
	switch b.Do {
	case CopyPause:
		c.Paused = true
	case CopyResume:
		c.Paused, c.PausedWhy = false, ""
	case CopyDelegate:
		if s.Delegates(c) == DelegateYes {
			c.By, c.Delegated = ByWorkers, seq
		}
	case CopyTakeback:
		c.TakenBack = c.Delegated > 0
	case CopyCancel:
		if c.Delegated > 0 {
			c.Cancels = max(at, s.Date, 1)
			return
		}
		s.cancelCopy(c, at)
	}
}

// cancelCopy ends a copy before it is complete.
//
// Rule 8: a cancelled copy leaves a gap. The table is not ready before a resync or a waiver of it.
func (s *State) cancelCopy(c *CopyState, at change.Millis) {
	c.Canceled = true
	s.Gaps = append(s.Gaps, Gap{
		Feed: change.Feed{Stream: "copy/" + c.ID}, Since: 1, Until: c.Began, Found: max(at, s.Date), Ends: true,
		Accepted: true, Canceled: true, Reason: ReasonCopyCanceled, Sinks: []string{SinkBigtable}, Above: s.TopClock(),
	})
}

// Delegate is whether a copy may be delegated to workers.
type Delegate string

// Whether a copy may be delegated.
const (
	DelegateYes     Delegate = "yes"
	DelegateNoCopy  Delegate = "no_copy"   // none is running
	DelegateScan    Delegate = "scan"      // it reads the table, and workers read the files of an export
	DelegateAlready Delegate = "delegated" // it is delegated
	DelegatePaused  Delegate = "paused"    // it has paused itself, for a reason that concerns workers as well
)

// Delegates returns whether a copy may be delegated to workers as far as the log decides it; nil
// for none.
func (s *State) Delegates(c *CopyState) Delegate {
	switch {
	case c == nil:
		return DelegateNoCopy
	case c.From != FromExport:
		return DelegateScan
	case c.Delegated > 0:
		return DelegateAlready
	case c.PausedWhy != "":
		return DelegatePaused
	}
	return DelegateYes
}

// CopyOrder is what an operator requests for one copy.
type CopyOrder struct {
	ID string `json:"id"` // of the copy
	Do string `json:"do"` // CopyPause and so on
}

// What a CopyOrder may request.
const (
	CopyPause  = "pause"
	CopyResume = "resume"
	CopyCancel = "cancel"
	// CopyDelegate: workers outside the daemon copy the files that are left.
	CopyDelegate = "delegate"
	// CopyTakeback: they end, and the owner copies what is left.
	CopyTakeback = "takeback"
)

// checkCopy returns how a copy contradicts the state; "" when it does not.
func (s *State) checkCopy(b *Copy) string {
	switch {
	case b.ID == "":
		return "copy without an id"
	case b.Parts < 0:
		return fmt.Sprintf("copy of %d parts", b.Parts)
	case b.By != "" && b.By != ByWorkers, b.By == ByWorkers && b.From != FromExport:
		return fmt.Sprintf("copy from %s by %s", b.From, b.By)
	case s.LiveStream() == nil:
		return "copy before the stream was started"
	case b.Version > 0 && b.Version <= s.Floor(): // Rule 5
		return fmt.Sprintf("copy at version %d, which is not above the floor %d", b.Version, s.Floor())
	case s.CopyRunning() != nil && s.Copy.ID != b.ID:
		return "copy " + b.ID + " begins before copy " + s.Copy.ID + " has ended"
	case s.Copy != nil && s.Copy.ID == b.ID && (s.CopyRunning() == nil || s.Copy.Parts > 0):
		return "copy " + b.ID + " begins twice"
	}
	return ""
}

// checkCopyMarks returns how marks contradict the state; "" when they do not. Marks never go back.
func (s *State) checkCopyMarks(b *CopyMarks) string {
	c := s.Copy
	if c == nil || c.ID != b.ID {
		return "marks of copy " + b.ID + ", which never began"
	}
	if b.Closed && c.Delegated == 0 {
		return "order of copy " + b.ID + " is closed, and was not open"
	}
	for part, m := range b.Parts {
		old := c.Marks[part]
		if part < 0 || part >= c.Parts {
			return "mark of a part that the copy does not have"
		}
		if m.Items < old.Items || old.Done && !m.Done {
			return "mark of a copied part goes back"
		}
	}
	return ""
}

// Accept requests another mapping in place of the one that wrote the table's rows. With Done, it
// records that everything before this entry was applied with the old one.
type Accept struct {
	From string `json:"from"` // hash of the mapping
	To   string `json:"to"`
	Done bool   `json:"done,omitempty"`
}

// applyAccept notes that a mapping is to be switched, that it was, or, with the same hash twice,
// that it was not accepted after all. A switch without a pending request changes nothing.
func (s *State) applyAccept(seq uint64, b *Accept) {
	if s.Identity == nil || s.Identity.Mapping != b.From {
		return
	}
	if !b.Done {
		s.Accepting = b
		return
	}
	if s.Accepting == nil || b.To != b.From && (s.Accepting.To != b.To || s.WorkersMayWrite()) {
		return
	}
	s.Accepting = nil
	if b.To == b.From {
		return
	}
	id := *s.Identity
	id.Mapping = b.To
	s.Identity, s.Accepted = &id, b
	s.Switched = &Switch{To: b.To, Above: s.TopClock(), Seq: seq}
	if c := s.CopyRunning(); c != nil { // the copy that follows covers what this one did not reach
		c.Canceled = true
	}
}

// Switch is an accepted mapping before its copy has begun.
type Switch struct {
	To    string         `json:"to"`
	Above change.Version `json:"above"` // the highest version that was given out before
	Seq   uint64         `json:"seq"`   // of the entry
}

// TopClock returns the highest version that was ever assigned, or a floor above it.
func (s *State) TopClock() change.Version {
	top := s.HighestVersion()
	for _, st := range s.Streams {
		top = max(top, st.Floor) // the clocks of a stream with records older than the life begin below it
	}
	return top
}

// AppliedBy returns the time up to which every change is durable at one sink, as far as empty reads
// show; 0 when that is not known.
func (s *State) AppliedBy(sink string) change.Millis {
	mark, ok := s.Marks[sink]
	if !ok {
		return 0
	}
	return s.AppliedAt(mark.Seq)
}
