package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
)

// disaster is what happens seldom.
func (w *World) disaster() {
	rough := w.profile
	switch w.weighted(6, 6, 4, 3, 3, 2, 4, 2*rough, rough, rough, rough, rough, 2*rough, min(rough, 1), 4, 1) {
	case 0:
		w.processes[w.choose(len(w.processes))].end("it dies")
	case 1:
		w.processes[w.choose(len(w.processes))].freeze(5 + 15*w.choose(5))
	case 2:
		w.now += 16_000 + change.Millis(w.choose(8))*5000
	case 3:
		w.outage()
	case 4:
		w.fence()
	case 5:
		w.stray()
	case 6:
		w.heal()
	case 7:
		w.loseTail(1 + w.choose(4))
	case 8:
		w.now += 4 * 3600 * 1000
	case 9:
		w.now += 26 * 3600 * 1000
	case 10:
		if !w.live().disabled {
			w.disable()
			w.logf("the stream is disabled")
		}
	case 11:
		if w.live().disabled {
			w.enable()
			w.logf("the table has another stream")
		}
	case 12:
		w.loseLog()
	case 13:
		w.retire()
	case 14:
		orders := []string{checkpoint.CopyCancel, checkpoint.CopyPause}
		if w.o.workers {
			orders = append(orders, checkpoint.CopyDelegate, checkpoint.CopyTakeback)
		}
		w.orderCopy(orders[w.choose(len(orders))])
	case 15:
		w.accept()
	}
}

// arrivals lets something arrive that is under way.
func (w *World) arrivals() {
	n, m := len(w.log.late), len(w.late)
	if n+m == 0 {
		return
	}
	if i := w.choose(n + m); i < n {
		if !w.log.away {
			w.deliver(i)
		}
	} else {
		w.arrive(i - n)
	}
}

// arrive lets a late request arrive.
func (w *World) arrive(i int) {
	x := w.late[i]
	w.late = append(w.late[:i:i], w.late[i+1:]...)
	matched := w.apply(x.request)
	w.reachedIf(matched, lateSkipped)
	w.logf("a late request arrives for %q at %d, skipped: %v", x.request.Row, x.request.Version, matched)
}

// loseTail drops the newest messages: a store that was restored to an older copy. Its server was
// restarted for that, so that all connections were lost.
func (w *World) loseTail(n int) {
	l := w.log
	if len(l.truth.Marks) == 0 {
		return
	}
	started := int(
		l.truth.Streams[0].Seq,
	) // the row in the target says that versions were given out: else it is a lost log
	if n = min(n, len(l.msgs)-started-1); n <= 0 {
		return
	}
	if w.o.workers && w.o.workersWithout != noNote && l.last()-uint64(n) < w.bulk.noted {
		w.loseLog() // the log is refused as an older copy, and an operator recovers
		return
	}
	if o := w.owner(); o != nil && w.choose(2) == 1 { // it hangs meanwhile, and has read what is lost
		o.freeze(40 + 20*w.choose(3))
	}
	l.msgs, l.lostTail = l.msgs[:len(l.msgs)-n], true
	l.conn++
	l.truth = checkpoint.NewState()
	clear(w.unread)
	for i := range l.msgs {
		e, err := l.truth.Apply(uint64(i+1), l.msgs[i].data)
		w.must(err)
		if e != nil {
			w.noteShown(e.Body)
		}
	}
	l.first = max(min(l.first, l.truth.SnapshotFirst, l.truth.LowMark()+1), 1) // it holds what was trimmed since
	for _, r := range w.records {
		if r.seq > l.last() {
			r.seq, r.version = 0, 0
		}
	}
	w.logf("the log lost its last %d messages, it ends at %d", n, l.last())
}

// loseLog loses the log with all that it holds. An operator recovers: the next log begins a new
// life above every version that was given out.
func (w *World) loseLog() {
	if t := w.log.truth; t.Fence != nil || t.LiveStream() == nil {
		return
	}
	w.newLife(false)
	w.logf("the log is lost, life %d has floor %d", w.lives, w.floor)
}

// retire ends the replication of the table, and lets an operator take the rows over again at once:
// the next log begins as in a new pipeline, with a copy, above the floor that the retirement noted,
// which is ahead of the time. The operator has the table compared afterwards.
func (w *World) retire() {
	t := w.log.truth
	if t.Fence != nil || t.LiveStream() == nil || t.LowMark() < t.LastFrame || t.OpenGaps() > 0 || w.differs() {
		return
	}
	w.newLife(true)
	w.logf("the table is retired and adopted, life %d has floor %d", w.lives, w.floor)
}

// newLife replaces the log by an empty one. Its life begins above every version that was given out.
func (w *World) newLife(adopted bool) {
	created, conn := w.log.created, w.log.conn
	w.log = newServer()
	w.log.created, w.log.conn = created+1, conn+1
	w.lives++
	w.adopted, w.bulk.noted = adopted, 0
	w.floor = protocol.FloorAfter(w.floor, w.now, time.Duration(max(w.lead, 0))*time.Millisecond)
	for _, r := range w.records {
		r.seq, r.version = 0, 0
	}
	for _, x := range w.items {
		w.taint(x)
	}
}

// stray appends a message that is not an entry, or an old one again.
func (w *World) stray() {
	l := w.log
	if l.away {
		return
	}
	msg := []byte("hello")
	if n := l.last(); n > l.first && w.choose(2) == 1 {
		msg = l.at(n - 1).data
	}
	_ = w.store(l.last(), msg)
}

// outage begins an outage of the log's server, or ends it.
func (w *World) outage() {
	if l := w.log; l.away {
		l.away = false
		l.conn++
		w.upSince = w.now
	} else {
		l.away = true
	}
	w.logf("the log's server is away: %v", w.log.away)
}

// heal lets an operator accept the gaps and order the resync that heals them.
func (w *World) heal() {
	s := w.log.truth
	order := &checkpoint.ResyncOrder{}
	for _, g := range s.DifferingGaps() {
		order.Gaps = append(order.Gaps, g.ID())
	}
	if s.Resync != nil && len(s.Resync.Gaps) >= len(order.Gaps) || len(order.Gaps) == 0 && !w.unsynced() {
		return
	}
	order.ID = fmt.Sprint("heal-", len(s.Gaps), "-", len(order.Gaps))
	w.command(&checkpoint.Control{Resync: order})
}

// unsynced reports whether the rows of an adopted table were not compared yet: no copy corrects the
// rows of items that were removed, or moved, before the new log began.
func (w *World) unsynced() bool {
	s := w.log.truth
	return w.adopted && s.LiveStream() != nil && s.Resync == nil && s.LastResync == nil
}

// fence raises the fence of a cutover, or takes it away.
func (w *World) fence() {
	if w.retrying() {
		return // a cutover is refused while a request is open
	}
	undo := w.log.truth.Fence != nil
	w.command(&checkpoint.Control{Fence: &checkpoint.FenceOrder{ID: "cutover", Undo: undo}})
}

// orderCopy lets an operator pause, resume or cancel the copy that runs.
func (w *World) orderCopy(do string) {
	if c := w.log.truth.CopyRunning(); c != nil && !w.o.letters {
		w.reachedIf(do == checkpoint.CopyCancel, copyCanceled)
		w.command(&checkpoint.Control{Copy: &checkpoint.CopyOrder{ID: c.ID, Do: do}})
	}
}

// accept lets an operator accept another mapping. It gives the same cells: what counts is that the
// copy of the table that it needs is complete.
func (w *World) accept() {
	s := w.log.truth
	if w.small != nil || w.o.letters || s.Identity == nil || s.Accepting != nil || s.Switched != nil {
		return
	}
	w.mappings++
	w.command(&checkpoint.Control{Accept: &checkpoint.Accept{From: s.Identity.Mapping, To: fmt.Sprint("m", w.mappings)}})
}

// command appends a control entry for an operator, concurrently with any owner.
func (w *World) command(c *checkpoint.Control) {
	if w.log.away || w.log.last() == 0 {
		return
	}
	s := w.fold(0)
	c.By, c.At = "operator", w.now
	if s.LiveStream() == nil {
		return
	}
	if err := s.CheckNext(c); err != nil {
		fenced := w.reachedIf(errors.As(err, new(*checkpoint.FenceError)), fenceRefuses)
		if !fenced || c.Fence != nil || !w.one(2) { // else the command has not looked whether there is a fence
			return
		}
	}
	w.logf("operator: %+v", *c)
	_ = w.publish(nil, w.fateOfAppend, s.Seq, w.encode(s.Hash, 0, checkpoint.Nonce{}, c, nil))
}

// differs reports whether a gap is neither healed nor being healed.
func (w *World) differs() bool {
	return w.unsynced() || len(w.log.truth.GapsToHeal()) > 0
}
