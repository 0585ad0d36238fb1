package checkpoint

import (
	"errors"
	"fmt"
	"maps"
)

// CorruptError means that entries of one chain contradict each other, because of a bug or because
// the store was edited. The table halts.
type CorruptError struct {
	Seq  uint64
	What string
}

func (e *CorruptError) Error() string { return fmt.Sprintf("log entry %d: %s", e.Seq, e.What) }

// Apply folds the message stored at seq. It returns the entry, or nil for a message that is not an
// entry of the chain and is only counted: see Chain.Accept. Errors: *CorruptError,
// *NewerFormatError; the state is then no longer usable.
func (s *State) Apply(seq uint64, msg []byte) (*Entry, error) {
	return s.ApplyMessage(seq, ReadMessage(msg))
}

// Message is a message that was decoded and hashed, which is most of the cost of Apply and needs no
// state. So a writer reads the next entry while the one before it is being stored.
type Message struct {
	entry *Entry
	err   error // of Decode
	hash  Hash
	size  int
}

// ReadMessage decodes and hashes a message. It does not change or keep msg, which the entry's Data
// aliases.
func ReadMessage(msg []byte) Message {
	e, err := Decode(msg)
	return Message{entry: e, err: err, hash: HashOf(msg), size: len(msg)}
}

// Hash returns the hash of the message, which the next entry names as its predecessor.
func (m *Message) Hash() Hash { return m.hash }

// ApplyMessage is Apply of a message that was read before.
func (s *State) ApplyMessage(seq uint64, m Message) (*Entry, error) {
	e, err := m.entry, m.err
	if newer := (*NewerFormatError)(nil); errors.As(err, &newer) {
		return nil, err
	}
	s.Seq = seq
	if err != nil { // ErrForeign
		s.Foreign++
		return nil, nil
	}
	accepted, err := s.accept(e, m.hash)
	if !accepted {
		s.Foreign++
		return nil, nil
	}
	var what string
	if err != nil {
		what = err.Error()
	} else {
		what = s.contradicts(seq, e.Body)
	}
	if what != "" {
		return nil, &CorruptError{Seq: seq, What: what}
	}
	s.BytesSinceSnapshot += int64(m.size)
	if !eventful(e.Body) {
		s.applyEntry(seq, e)
		s.dateEvents(e.Body)
		return e, nil
	}
	before := s.situation(e.Body)
	s.applyEntry(seq, e)
	s.dateEvents(e.Body)
	s.noteEvents(&before, e.Body)
	return e, nil
}

// applyEntry changes the state by the body of an entry that the chain accepted.
func (s *State) applyEntry(seq uint64, e *Entry) {
	switch b := e.Body.(type) {
	case *Claim:
		s.applyClaim(e.Epoch, b)
	case *Release:
		s.ReleasedTo = b.To
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
		s.applyControl(seq, b)
	case *Snapshot:
		s.applySnapshot(seq, b)
	case *Copy:
		s.applyCopy(seq, b)
	case *CopyMarks:
		s.applyCopyMarks(b)
	case *Healed:
		s.applyHealed(b)
	}
}

// applyClaim notes the owner. The first claim of a log decides its format.
func (s *State) applyClaim(epoch uint64, c *Claim) {
	if epoch == 1 {
		s.raiseFormat(FormatOf(c))
	}
	s.Starting = nil // the owner before did not finish it
	s.Owner, s.Reads, s.ReleasedTo, s.Proof = c.Owner, c.Reads, "", Proof{}
	// Only the first claim of a life sets the log's identity.
	if c.Identity != nil && (s.Identity == nil || c.Life > s.Life) {
		s.Identity = c.Identity
	}
	s.Life = c.Life
}

// applyFrame moves each page's shard to the end of the page.
func (s *State) applyFrame(seq uint64, f *Frame) {
	for i := range f.Pages {
		p := &f.Pages[i]
		sh := s.Shards[p.Feed.Shard]
		sh.Pos, sh.Clock, sh.Loss.AtTrimHorizon = p.To, p.Clock, false
		sh.Watermark = max(sh.Watermark, p.Watermark())
		s.Date = max(s.Date, p.Date)
		s.Expired.Add(p.Expired, p.Date)
		s.noteBehind(p)
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

// applyBeat raises the watermarks of the open shards to the beat's watermark. It leaves out shards
// that stand before a gap: they would hold back all others.
func (s *State) applyBeat(b *Beat) {
	s.Date = max(s.Date, b.Date)
	s.noteListing(b.Listed)
	var parents []*Shard
	s.index.updateOpen(func(sh *Shard) {
		if !sh.Loss.Pending {
			sh.Watermark = max(sh.Watermark, b.Watermark)
		}
		// The listing still showed the shard open.
		if alive := openUntil(b.Listed); !sh.Phase.Closed() && sh.LastAlive < alive {
			if sh.LastAlive = alive; sh.inIndex.parent {
				parents = append(parents, sh)
			}
		}
	})
	for _, sh := range parents {
		s.reindexWithChildren(sh)
	}
	s.noteWatermark()
	s.Proof.Note(b.Date, b.Assumed, min(b.Proven, s.ReadWatermark()), s.LastFrame, s.allSinksPassed)
}

// applyMarks moves and removes marks of sinks.
func (s *State) applyMarks(m *Marks) {
	maps.Copy(s.Marks, m.Sinks)
	for _, sink := range m.Retired {
		delete(s.Marks, sink)
	}
	s.dropPassedWatermarks()
	if m.Archive != nil {
		s.Expired.Head = m.Archive
	}
}

// applyControl executes an operator's or a sink's request. Resume comes last: it clears what the
// entry itself sets.
func (s *State) applyControl(seq uint64, c *Control) {
	if c.Pause != nil {
		s.pause(*c.Pause, c)
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
	if c.Fence != nil {
		s.applyFence(seq, c)
	}
	if c.Certify != nil {
		s.applyCertify(c)
	}
	if c.Verified != nil {
		s.applyVerified(c)
	}
	if s.Fence == nil {
		s.applyOrders(seq, c)
	}
	if !c.Resume {
		return
	}
	s.pause(false, c)
	s.clearHalts("")
	for i := range s.Gaps {
		s.acceptGap(&s.Gaps[i])
	}
}

// applyOrders executes an operator's orders for copies, resyncs and mappings. Behind a fence they
// are not executed.
func (s *State) applyOrders(seq uint64, c *Control) {
	if c.Copy != nil {
		s.controlCopy(seq, c.Copy, c.At)
	}
	if c.Resync != nil {
		s.orderResync(c.Resync, c.At)
	}
	if c.Accept != nil {
		s.applyAccept(seq, c.Accept)
	}
}
