package sim

import (
	"maps"
	"strconv"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// before is what a log said before an entry was stored.
type before struct {
	sinks  map[string]checkpoint.Mark
	copy   string
	parts  map[int]checkpoint.CopyMark
	resync *checkpoint.PendingResync
	fence  *checkpoint.Fence
}

func beforeEntry(s *checkpoint.State) before {
	b := before{sinks: maps.Clone(s.Marks), resync: s.Resync, fence: s.Fence}
	if s.Copy != nil {
		b.copy, b.parts = s.Copy.ID, maps.Clone(s.Copy.Marks)
	}
	return b
}

// continues checks what an entry has changed against what the log said before.
func (w *World) continues(e *checkpoint.Entry, b before) {
	w.notBack(b)
	s := w.log.truth
	switch x := e.Body.(type) {
	case *checkpoint.Control:
		if x.Resync != nil {
			w.noteLost(x.Resync.ID)
		}
		ordered := x.Resync != nil || x.Accept != nil || x.Copy != nil
		followed := s.Resync != nil || s.Accepting != nil || s.Switched != nil
		if w.reachedIf(ordered && b.fence != nil, orderIgnored) && followed {
			w.fail("fence", "an order behind the fence at %d is followed: %+v", b.fence.Seq, x)
		}
	case *checkpoint.CopyMarks:
		for part, m := range x.Parts {
			w.copiedUpTo(x.ID, part, m)
		}
	case *checkpoint.Healed:
		if b.resync != nil && b.resync.ID != x.ID && s.Resync != b.resync {
			w.fail("a replaced resync ends nothing", "resync %s is complete, and ends %+v", x.ID, b.resync)
		}
	}
}

// notBack checks Rule 1: no mark ever goes back.
func (w *World) notBack(b before) {
	s := w.log.truth
	for sink, m := range b.sinks {
		if now, ok := s.Marks[sink]; ok && now.Seq < m.Seq {
			w.fail("marks never go back", "the mark of %s goes from %d to %d", sink, m.Seq, now.Seq)
		}
	}
	if s.Copy == nil || s.Copy.ID != b.copy {
		return
	}
	for part, m := range b.parts {
		if now := s.Copy.Marks[part]; now.Items < m.Items || m.Done && !now.Done {
			w.fail("marks never go back", "the mark of part %d of the copy goes from %+v to %+v", part, m, now)
		}
	}
}

// copiedItem is an item in a copy.
type copiedItem struct {
	copy string
	n    int
}

// copiedUpTo checks Rule 1: everything before the mark of a part is written, or was not there.
func (w *World) copiedUpTo(id string, part int, m checkpoint.CopyMark) {
	s := w.log.truth
	if s.Copy == nil || s.Copy.ID != id {
		return
	}
	end, _ := strconv.Atoi(m.After)
	for n := part; n < end; n += s.Copy.Parts {
		if !w.copied[copiedItem{id, n}] {
			w.fail("marks are durable", "the mark of part %d of copy %s is %+v, and item %d is not written", part, id, m, n)
		}
	}
}

// noteLost notes the highest version that was given out before a resync was ordered.
func (w *World) noteLost(id string) {
	for _, r := range w.records {
		if r.seq > 0 {
			w.above[id] = max(w.above[id], r.version)
		}
	}
}

// aboveLost checks Rule 8 where a resync writes its repairs: they are above every version that was
// given out before it was ordered, whatever rows hold it. Else a repair would be skipped. Where a
// life begins with it and has lost nothing since, its floor is what it must be above.
func (p *process) aboveLost(x *whole) {
	if x.order.Recover && len(x.order.Gaps) == 0 {
		return
	}
	for _, op := range x.r.ops {
		if v := p.above[x.order.ID]; op.version <= v {
			p.fail("repairs are above what was lost", "item %d is repaired at version %d, %d was given out before the order %s",
				op.item.n, op.version, v, x.order.ID)
		}
	}
}

// fitToSend checks Rule 8 where an item is sent that was read from the table: that was less than
// two minutes ago, and behind each gap. What was deleted since may be lost, and its row seen to
// already.
func (p *process) fitToSend(op *operation) {
	if age := p.now - op.read.Requested; age > 121_000 {
		p.fail("what is sent was read lately", "%s sends item %d, read %d ms ago", p.name, op.item.n, age)
	}
	for i := range p.s.Gaps {
		if g := &p.s.Gaps[i]; !g.BeforeStart() && g.Until >= op.read.Requested {
			p.fail("what is sent was read lately", "%s sends item %d, read at %d, and a gap ends at %d",
				p.name, op.item.n, op.read.Requested, g.Until)
		}
	}
}
