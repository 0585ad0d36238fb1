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
	Chain
	Seq uint64 // sequence of the last message folded, foreign ones included

	Owner    string // of the newest claim
	Life     uint64
	Identity *Identity

	Streams []*Stream // in the order of their start; the last is the live one
	Shards  map[string]*Shard
	Marks   map[string]Mark
	Gaps    []Gap
	Paused  bool
	Halted  *Halt            // format 1: the newest; see HaltsOf
	Halts   map[string]*Halt // format 2: by sink

	Date           change.Millis  // newest service clock that was reported
	Listed         change.Millis  // when the newest complete listing began
	LastFrame      uint64         // newest entry that holds changes
	Changes        uint64         // in all frames so far
	DroppedVersion change.Version // highest version of the shards that were forgotten
	Watermarks     []Watermark
	Starting       *Start // the parts so far of a start that is not complete; format 2
	Foreign        uint64 // messages that folded as nothing

	SnapshotFirst      uint64 // sequence of the first part of the last complete snapshot
	SnapshotLast       uint64
	BytesSinceSnapshot int64 // bytes of entries since then

	partFirst uint64 // of the snapshot that is being written
	partNext  int

	index index
}

// Stream is one stream ARN of the table. Disabling and enabling a stream makes a new one.
type Stream struct {
	ARN      string         `json:"arn"`
	Date     change.Millis  `json:"date"`           // of the listing that started it
	Mode     string         `json:"mode,omitempty"` // start position as it was configured
	At       change.Millis  `json:"at,omitempty"`
	Floor    change.Version `json:"floor,omitempty"`
	Disabled bool           `json:"disabled,omitempty"`
	Seq      uint64         `json:"seq"` // of the entry that started it
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
	return &State{Shards: map[string]*Shard{}, Marks: map[string]Mark{}, index: newIndex()}
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
	if err != nil { // ErrForeign
		s.Foreign++
		return nil, nil
	}
	accepted, err := s.Chain.Accept(e, msg)
	if !accepted {
		s.Foreign++
		return nil, nil
	}
	what := ""
	if err != nil {
		what = err.Error()
	} else {
		what = s.contradicts(seq, e.Body)
	}
	if what != "" {
		return nil, &CorruptError{Seq: seq, What: what}
	}
	s.BytesSinceSnapshot += int64(len(msg))
	s.applyEntry(seq, e)
	return e, nil
}

func (s *State) applyEntry(seq uint64, e *Entry) {
	switch b := e.Body.(type) {
	case *Claim:
		s.applyClaim(e.Epoch, b)
	case *Start:
		s.applyStart(seq, b)
	case *Graph:
		s.applyGraph(b)
	case *Frame:
		s.applyFrame(seq, b)
	case *Beat:
		s.applyBeat(b)
	case *Marks:
		s.applyMarks(b)
	case *Gap:
		s.applyGap(b)
	case *Control:
		s.applyControl(b)
	case *Snapshot:
		s.applySnapshot(seq, b)
	}
}

func (s *State) applyClaim(epoch uint64, c *Claim) {
	if epoch == 1 {
		s.raiseFormat(FormatOf(c))
	}
	s.Starting = nil // its owner did not come to an end
	s.Owner = c.Owner
	// Whose log it is, the first claim of a life says; later ones are held to it.
	if c.Identity != nil && (s.Identity == nil || c.Life > s.Life) {
		s.Identity = c.Identity
	}
	s.Life = c.Life
}

func (s *State) applyFrame(seq uint64, f *Frame) {
	for i := range f.Pages {
		p := &f.Pages[i]
		sh := s.Shards[p.Feed.Shard]
		sh.Pos, sh.Clock, sh.Loss.AtTrimHorizon = p.To, p.Clock, false
		sh.Watermark = max(sh.Watermark, p.Watermark())
		s.Date = max(s.Date, p.Date)
		if p.Records > 0 {
			s.LastFrame = seq
			s.Changes += uint64(p.Records)
			sh.LastAlive = max(sh.LastAlive, p.Watermark())
		}
		s.reindexWithChildren(sh)
		if p.Done {
			s.finishShard(sh)
		}
	}
}

func (s *State) applyBeat(b *Beat) {
	s.Date = max(s.Date, b.Date)
	s.noteListing(b.Listed)
	var parents []*Shard
	s.index.updateOpen(func(sh *Shard) {
		sh.Watermark = max(sh.Watermark, b.Watermark)
		// That listing still showed it open.
		if alive := b.Listed - visibilityDelay; !sh.Phase.Closed() && sh.LastAlive < alive {
			if sh.LastAlive = alive; sh.place.parent {
				parents = append(parents, sh)
			}
		}
	})
	for _, sh := range parents {
		s.reindexWithChildren(sh)
	}
	s.noteWatermark()
}

func (s *State) applyMarks(m *Marks) {
	maps.Copy(s.Marks, m.Sinks)
	for _, sink := range m.Retired {
		delete(s.Marks, sink)
	}
	s.dropPassedWatermarks()
}

func (s *State) applyControl(c *Control) {
	if c.Pause != nil {
		s.Paused = *c.Pause
	}
	if c.Clear {
		s.clearHalts(c.ClearSink)
	}
	if c.Halt != nil {
		s.addHalt(c.Halt)
	}
	if c.Waive != nil {
		s.waiveGap(c.Waive, Waiver{By: c.By, At: c.At})
	}
	if !c.Resume {
		return
	}
	s.Paused = false
	s.clearHalts("")
	for i := range s.Gaps {
		s.acceptGap(&s.Gaps[i])
	}
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
