package checkpoint

import (
	"fmt"
	"maps"
	"slices"

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

// Copy begins a copy of the table's items to Bigtable, read from the table itself alongside the
// running stream. A table has one copy at a time.
type Copy struct {
	ID     string        `json:"id"`
	Why    string        `json:"why"`           // CopyBackfill or CopyMapping
	From   string        `json:"from"`          // FromScan or FromExport
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
	Paused  string        `json:"paused,omitempty"`
	Resumed bool          `json:"resumed,omitempty"`
	Date    change.Millis `json:"date,omitempty"`
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
	Ended     change.Millis    `json:"ended,omitempty"` // service clock of the last mark; 0 while a part is not done
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
// stays paused.
func (s *State) applyCopy(b *Copy) {
	next := &CopyState{Copy: *b, Marks: map[int]CopyMark{}}
	if old := s.Copy; old != nil && old.ID == b.ID {
		next.Marks, next.Paused = old.Marks, old.Paused
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
	if c.allDone() {
		c.Ended, c.Paused, c.PausedWhy = max(s.Date, 1), false, ""
		s.doubtCopy(c)
	}
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

// controlCopy executes an operator's order for a copy: pause, resume or cancel. An order that comes
// late, when its copy has ended, does not concern the next one.
//
// Rule 8: a cancelled copy leaves a gap. The table is not ready before a resync or a waiver of it.
func (s *State) controlCopy(b *CopyOrder, at change.Millis) {
	c := s.CopyRunning()
	if c == nil || c.ID != b.ID {
		return
	}
	switch b.Do {
	case CopyPause:
		c.Paused = true
	case CopyResume:
		c.Paused, c.PausedWhy = false, ""
	case CopyCancel:
		c.Canceled = true
		s.Gaps = append(s.Gaps, Gap{
			Feed: change.Feed{Stream: "copy/" + c.ID}, Since: 1, Until: c.Began, Found: max(at, s.Date), Ends: true,
			Accepted: true, Canceled: true, Reason: ReasonCopyCanceled, Sinks: []string{SinkBigtable}, Above: s.TopClock(),
		})
	}
}

// CopyOrder pauses, resumes or cancels one copy.
type CopyOrder struct {
	ID string `json:"id"` // of the copy
	Do string `json:"do"` // CopyPause, CopyResume or CopyCancel
}

// What a CopyOrder may request.
const (
	CopyPause  = "pause"
	CopyResume = "resume"
	CopyCancel = "cancel"
)

// checkCopy returns how a copy contradicts the state; "" when it does not.
func (s *State) checkCopy(b *Copy) string {
	switch {
	case b.ID == "":
		return "copy without an id"
	case b.Parts < 0:
		return fmt.Sprintf("copy of %d parts", b.Parts)
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

// ResyncOrder requests a resync of the whole table: Bigtable is compared with it, and what differs
// is written again. Gaps are accepted with the order, and healed by it; without names these are all
// accepted gaps.
type ResyncOrder struct {
	ID   string   `json:"id"`
	Gaps []string `json:"gaps,omitempty"`
}

// PendingResync is a resync of the whole table that is not complete.
type PendingResync struct {
	ID      string         `json:"id"`
	Gaps    []string       `json:"gaps,omitempty"`    // that it heals
	Recover bool           `json:"recover,omitempty"` // the life began with it
	Above   change.Version `json:"above,omitempty"`   // versions that it writes must be greater
	Asked   change.Millis  `json:"asked"`
}

// Heals reports whether the resync is to heal a gap.
func (p *PendingResync) Heals(gap string) bool { return slices.Contains(p.Gaps, gap) }

// Healed ends a resync of the whole table: every difference was repaired, and found equal
// afterwards.
type Healed struct {
	ID     string            `json:"id"`
	Gaps   []string          `json:"gaps,omitempty"`
	Sinks  map[string]string `json:"sinks"` // that are healed, each with what is still missing in it; "" for nothing
	Result ResyncResult      `json:"result"`
	Date   change.Millis     `json:"date"`
	// Exports are the ids of incremental exports: the sinks were healed from them, and no resync
	// ends.
	Exports []string `json:"exports,omitempty"`
}

// ResyncResult counts items by what a resync found and did.
type ResyncResult struct {
	Items    int64 `json:"items"`
	Written  int64 `json:"written"`
	Equal    int64 `json:"equal"`
	Left     int64 `json:"left"`    // rows that the item had left
	Hot      int64 `json:"hot"`     // items that are changed too often to be written yet
	Letters  int64 `json:"letters"` // items that the mapping or Bigtable refuse
	Unproven int64 `json:"unproven"`
	Unowned  int64 `json:"unowned,omitempty"` // cells whose owner cannot be told
}

// Healing is a gap's entry about one sink.
type Healing struct {
	At   change.Millis `json:"at"`
	Note string        `json:"note,omitempty"` // what is still missing
}

// orderResync notes a resync of the whole table. One that is pending begins again, and heals the
// gaps of both. The same order again changes nothing. An order without an id is ignored: no entry
// could end it and not another one.
func (s *State) orderResync(b *ResyncOrder, at change.Millis) {
	if b.ID == "" {
		return
	}
	next := &PendingResync{ID: b.ID, Asked: max(at, s.Date), Above: s.TopClock()}
	if old := s.Resync; old != nil {
		next.Gaps, next.Recover, next.Above = old.Gaps, old.Recover, max(next.Above, old.Above)
	}
	for i := range s.Gaps {
		g := &s.Gaps[i]
		id := g.ID()
		named := slices.Contains(b.Gaps, id)
		if named {
			s.acceptGap(g)
		}
		if g.Accepted && (named || len(b.Gaps) == 0) && s.BigtableDiffers(g) &&
			!slices.Contains(next.Gaps, id) {
			next.Gaps = append(next.Gaps, id)
		}
	}
	if old := s.Resync; old == nil || old.ID != next.ID || len(next.Gaps) > len(old.Gaps) {
		s.Resync = next
	}
}

// applyHealed ends the resync that it names. One that was replaced meanwhile goes on, and so does
// one that was ordered again under its id: what the entry does not name is still to be healed.
func (s *State) applyHealed(b *Healed) {
	s.Date = max(s.Date, b.Date)
	ofExports := len(b.Exports) > 0
	if !ofExports && (s.Resync == nil || s.Resync.ID != b.ID) {
		return
	}
	for i := range s.Gaps {
		g := &s.Gaps[i]
		if id := g.ID(); !slices.Contains(b.Gaps, id) || !ofExports && !s.Resync.Heals(id) {
			continue
		}
		for sink, note := range b.Sinks {
			if g.Healed == nil {
				g.Healed = map[string]Healing{}
			}
			g.Healed[sink] = Healing{At: b.Date, Note: note}
		}
	}
	if ofExports {
		return
	}
	s.LastResync = b
	rest := *s.Resync
	rest.Gaps = slices.DeleteFunc(slices.Clone(rest.Gaps), func(id string) bool { return slices.Contains(b.Gaps, id) })
	if s.Resync = nil; len(rest.Gaps) > 0 {
		s.Resync = &rest
	}
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
	if s.Accepting == nil || b.To != b.From && s.Accepting.To != b.To {
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
