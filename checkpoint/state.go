package checkpoint

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
)

// State is what the entries of a log add up to. Only Apply changes it (Rule 2).
type State struct {
	Seq  uint64 `json:"-"` // sequence of the last message folded, foreign ones included
	Hash Hash   `json:"-"` // of the last valid entry

	Epoch    uint64    `json:"epoch"`
	Owner    string    `json:"owner,omitempty"`
	Nonce    Nonce     `json:"nonce"`
	Released bool      `json:"released,omitempty"`
	Life     uint64    `json:"life"`
	Identity *Identity `json:"identity,omitempty"`

	Streams []*Stream         `json:"streams,omitempty"` // in the order of their start; the last is the live one
	Shards  map[string]*Shard `json:"shards,omitempty"`
	Marks   map[string]Mark   `json:"marks,omitempty"`
	Gaps    []Gap             `json:"gaps,omitempty"`
	Paused  bool              `json:"paused,omitempty"`
	Halted  *Halt             `json:"halted,omitempty"`

	Date      int64     `json:"date,omitempty"`       // newest service clock that was reported
	Listed    int64     `json:"listed,omitempty"`     // when the newest complete listing began
	LastFrame uint64    `json:"last_frame,omitempty"` // newest entry that holds changes
	Changes   uint64    `json:"changes,omitempty"`    // in all frames so far
	Horizons  []Horizon `json:"horizons,omitempty"`
	Foreign   uint64    `json:"foreign,omitempty"` // messages that folded as nothing

	SnapFirst uint64 `json:"-"` // sequence of the first part of the last complete snapshot
	SnapLast  uint64 `json:"-"`
	Since     int64  `json:"-"` // bytes of entries since then

	partFirst uint64 // of the snapshot that is being written
	partNext  int
}

// Stream is one stream ARN of the table. Disabling and enabling a stream makes a new one.
type Stream struct {
	ARN      string `json:"arn"`
	Date     int64  `json:"date"`           // of the listing that started it
	Mode     string `json:"mode,omitempty"` // start position as it was configured
	At       int64  `json:"at,omitempty"`
	Floor    int64  `json:"floor,omitempty"`
	Disabled bool   `json:"disabled,omitempty"`
	Seq      uint64 `json:"seq"` // of the entry that started it
}

// Horizon says that everything up to Through had been read when the log was at Seq. A sink whose mark is at
// or past Seq has applied everything up to Through.
type Horizon struct {
	Seq     uint64 `json:"seq"`
	Through int64  `json:"through"`
}

// CorruptError says that a valid chain of entries contradicts itself: a bug or a hand in the store. The table
// halts.
type CorruptError struct {
	Seq  uint64
	What string
}

func (e *CorruptError) Error() string { return fmt.Sprintf("log entry %d: %s", e.Seq, e.What) }

// NewState returns the state of an empty log.
func NewState() *State {
	return &State{Shards: map[string]*Shard{}, Marks: map[string]Mark{}}
}

// Apply folds the message stored at seq. It returns the entry, or nil for a message that folds as nothing:
// one without our magic, one that does not continue the chain, one by a writer that does not own the log.
// Errors: *CorruptError, *NewerFormatError; the state is then no longer usable.
func (s *State) Apply(seq uint64, msg []byte) (*Entry, error) {
	e, err := Decode(msg)
	if newer := (*NewerFormatError)(nil); errors.As(err, &newer) {
		return nil, err
	}
	s.Seq = seq
	if err != nil || e.Prev != s.Hash || !s.mayWrite(e) {
		s.Foreign++
		return nil, nil
	}
	s.Hash = HashOf(msg)
	s.Since += int64(len(msg))
	if what := s.fold(seq, e); what != "" {
		return nil, &CorruptError{Seq: seq, What: what}
	}
	return e, nil
}

// mayWrite holds the log to one writer (Rule 2): the owner, whoever claims the next epoch, and anybody who
// appends a control entry.
func (s *State) mayWrite(e *Entry) bool {
	switch e.Kind {
	case KindClaim:
		return e.Epoch == s.Epoch+1
	case KindControl:
		return true
	}
	return e.Epoch == s.Epoch && e.Nonce == s.Nonce
}

func (s *State) fold(seq uint64, e *Entry) (what string) {
	switch b := e.Body.(type) {
	case *Claim:
		return s.claim(e, b)
	case *Release:
		s.Released = true
	case *Start:
		return s.start(seq, b)
	case *Graph:
		return s.graph(b)
	case *Frame:
		return s.frame(seq, b)
	case *Beat:
		s.beat(seq, b)
	case *Marks:
		return s.marks(seq, b)
	case *Gap:
		return s.gap(b)
	case *Control:
		s.control(b)
	case *Snapshot:
		s.snapshot(seq, b)
	}
	return ""
}

func (s *State) claim(e *Entry, c *Claim) string {
	s.Epoch, s.Owner, s.Nonce, s.Released = e.Epoch, c.Owner, e.Nonce, false
	s.partNext = 0
	if c.Identity != nil {
		s.Identity = c.Identity
	}
	if c.Life < s.Life {
		return fmt.Sprintf("life %d after life %d", c.Life, s.Life)
	}
	s.Life = c.Life
	return ""
}

func (s *State) frame(seq uint64, f *Frame) string {
	for i := range f.Pages {
		p := &f.Pages[i]
		sh := s.Shards[p.Feed.Shard]
		switch {
		case sh == nil || sh.Stream != p.Feed.Stream:
			return "page of a shard that was never listed: " + p.Feed.Shard
		case !s.Readable(sh):
			return fmt.Sprintf("page of shard %s, which may not be read: %s", sh.ID, sh.Phase)
		case p.From != sh.Pos || p.ClockFrom != sh.Clock || p.Clock < p.ClockFrom:
			return fmt.Sprintf("page of shard %s starts at %v, clock %d; the log is at %v, clock %d",
				sh.ID, p.From, p.ClockFrom, sh.Pos, sh.Clock)
		}
		sh.Pos, sh.Clock, sh.Horizon = p.To, p.Clock, false
		sh.Through = max(sh.Through, p.Through())
		s.Date = max(s.Date, p.Date)
		if p.Records > 0 {
			s.LastFrame = seq
			s.Changes += uint64(p.Records)
		}
		if p.Done {
			s.finish(sh)
		}
	}
	return ""
}

func (s *State) beat(seq uint64, b *Beat) {
	s.Date = max(s.Date, b.Date)
	s.Listed = max(s.Listed, b.Listed)
	for _, sh := range s.Shards {
		if sh.Phase == Open {
			sh.Through = max(sh.Through, b.Through)
		}
	}
	s.horizon(seq)
}

// marks moves sinks forward, never back.
func (s *State) marks(seq uint64, m *Marks) string {
	for sink, mark := range m.Sinks {
		if old, ok := s.Marks[sink]; ok && mark.Seq < old.Seq {
			return fmt.Sprintf("mark of %s goes back from %d to %d", sink, old.Seq, mark.Seq)
		}
		if mark.Seq >= seq {
			return fmt.Sprintf("mark of %s at %d is ahead of the log", sink, mark.Seq)
		}
		s.Marks[sink] = mark
	}
	for _, sink := range m.Retired {
		delete(s.Marks, sink)
	}
	s.dropHorizons()
	return ""
}

func (s *State) gap(g *Gap) string {
	sh := s.Shards[g.Feed.Shard]
	if sh == nil {
		if g.Feed.Shard != "" {
			return "gap in a shard that was never listed: " + g.Feed.Shard
		}
		s.Gaps = append(s.Gaps, *g)
		return ""
	}
	s.Gaps = append(s.Gaps, *g)
	s.Date = max(s.Date, g.Found)
	if g.Ends {
		s.finish(sh)
	} else {
		sh.Gapped = true
	}
	return ""
}

func (s *State) control(c *Control) {
	if c.Pause != nil {
		s.Paused = *c.Pause
	}
	if c.Clear {
		s.Halted = nil
	}
	if c.Halt != nil {
		s.Halted = c.Halt
	}
	if !c.Resume {
		return
	}
	s.Paused, s.Halted = false, nil
	for i := range s.Gaps {
		g := &s.Gaps[i]
		if sh := s.Shards[g.Feed.Shard]; sh != nil && sh.Gapped {
			sh.Gapped, sh.Pos, sh.Horizon = false, change.Position{}, true
		}
		g.Accepted = true
	}
}

// maxHorizons bounds the list: of many horizons that no sink has passed yet, every second one will do.
const maxHorizons = 512

func (s *State) horizon(seq uint64) {
	through := s.Through()
	if n := len(s.Horizons); through == 0 || n > 0 && s.Horizons[n-1].Through >= through {
		return
	}
	s.Horizons = append(s.Horizons, Horizon{Seq: seq, Through: through})
	if len(s.Horizons) > maxHorizons {
		kept := s.Horizons[:1]
		for i := 2; i < len(s.Horizons); i += 2 {
			kept = append(kept, s.Horizons[i])
		}
		s.Horizons = kept
	}
	s.dropHorizons()
}

// dropHorizons keeps the newest horizon that all sinks have passed, and those after it.
func (s *State) dropHorizons() {
	passed := 0
	for i, h := range s.Horizons {
		if s.passed(h.Seq) {
			passed = i
		}
	}
	s.Horizons = slices.Delete(s.Horizons, 0, passed)
}

// passed says whether every sink has applied everything up to seq. A mark that stands at the last frame before
// seq stands at seq: there is nothing in between.
func (s *State) passed(seq uint64) bool {
	for _, m := range s.Marks {
		if m.Seq < seq && (s.LastFrame > seq || m.Seq < s.LastFrame) {
			return false
		}
	}
	return len(s.Marks) > 0
}

// AppliedThrough returns the time up to which every change is durable at every sink, as far as empty reads
// show; 0 when that is not known yet. Unix ms on the service's clock.
func (s *State) AppliedThrough() int64 {
	if len(s.Horizons) == 0 || !s.passed(s.Horizons[0].Seq) {
		return 0
	}
	return s.Horizons[0].Through
}

// Through returns the time up to which every shard that can still change has been read; 0 when unknown.
func (s *State) Through() int64 {
	if len(s.Streams) == 0 {
		return 0
	}
	low, any := int64(0), false
	for _, sh := range s.Shards {
		// What waits for a parent is bounded by that parent.
		if sh.Phase == Finished || sh.Phase == Waiting && s.Shards[sh.Parent] != nil {
			continue
		}
		if !any || sh.Through < low {
			low, any = sh.Through, true
		}
	}
	if !any {
		return s.Date - settle
	}
	return low
}

// LowMark returns the mark of the sink that is furthest behind; 0 without sinks.
func (s *State) LowMark() uint64 {
	low := uint64(0)
	for i, m := range slices.Collect(maps.Values(s.Marks)) {
		if i == 0 || m.Seq < low {
			low = m.Seq
		}
	}
	return low
}

// OpenGaps counts the gaps that nobody has accepted.
func (s *State) OpenGaps() (n int) {
	for _, g := range s.Gaps {
		if !g.Accepted {
			n++
		}
	}
	return n
}
