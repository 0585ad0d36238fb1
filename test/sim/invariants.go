package sim

import (
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/transform"
)

// The invariants. Each is checked when something happens that could break it.

// storedEntry checks what an entry changes, once the server has it.
func (w *World) storedEntry(seq uint64, m *message) {
	w.stored = w.now
	if !m.counts {
		return
	}
	w.behindFence()
	w.refused(m)
	switch b := m.entry.Body.(type) {
	case *checkpoint.Frame:
		w.storedFrame(seq, m.records)
		for i := range b.Pages {
			if b.Pages[i].Done {
				w.notEnded(b.Pages[i].Feed.Shard, false)
			}
		}
	case *checkpoint.Marks:
		w.moved(b.Sinks[checkpoint.SinkBigtable].Seq)
		w.complete()
	case *checkpoint.Beat:
		w.complete()
	case *checkpoint.Graph:
		if b.Disabled && b.Stream == w.live().arn && !w.live().disabled && !w.falseEnd {
			w.fail("a living stream is not ended", "one answer that %s has ended is stored", b.Stream)
		}
		w.complete()
	case *checkpoint.Gap:
		w.reached(gapStored)
		w.justified(b)
		if b.Ends {
			w.notEnded(b.Feed.Shard, true)
		}
		w.lost(b)
	case *checkpoint.Control:
		w.reachedIf(b.Fence != nil && b.Fence.Undo, fenceUndone)
		w.grown()
	case *checkpoint.Healed:
		w.madeTrue()
	}
	if g := w.log.truth.Gaps; len(g) > 0 && m.entry.Kind == checkpoint.KindGraph {
		w.lost(&g[len(g)-1])
	}
}

// storedFrame checks Rules 3 and 5: no change is in the log twice, and the changes of an item are
// in the order in which they happened, with versions that grow. The changes of a child shard come
// after the changes of its parent.
func (w *World) storedFrame(seq uint64, all []stored) {
	for _, s := range all {
		r := s.record
		if r.seq != 0 {
			w.fail("no change twice", "write %d of item %d is in entries %d and %d", r.n, r.item.n, r.seq, seq)
		}
		for _, o := range w.records {
			if o.item == r.item && o.seq != 0 && (o.n > r.n || o.version >= s.version) {
				w.fail("order of an item", "item %d: write %d, version %d, after write %d, version %d",
					r.item.n, r.n, s.version, o.n, o.version)
			}
		}
		r.seq, r.version = seq, s.version
		w.aboveReads(r)
	}
}

// aboveReads checks Rule 5 across copies and changes: a change has a higher version than every read
// of the item that lacks it, however that read came to its version. Else the row skips the change.
func (w *World) aboveReads(r *record) {
	if !w.log.truth.LifeOf(r.shard.stream).Applies(r.version) {
		return
	}
	for commit, v := range r.item.reads {
		if commit < r.commit && v >= r.version {
			w.fail("above what lacks it", "write %d of item %d has version %d, and commit %d was read at version %d",
				r.n, r.item.n, r.version, commit, v)
		}
	}
}

// moved checks Rule 1: everything up to a mark is durable.
func (w *World) moved(mark uint64) {
	for _, r := range w.records {
		if r.seq == 0 || r.seq > mark || r.checked == r.seq {
			continue
		}
		r.checked = r.seq
		if w.log.truth.LifeOf(r.shard.stream).Applies(r.version) {
			w.durable(r)
		}
	}
}

// durable checks that each row of a change holds it, or a later one of the item.
func (w *World) durable(r *record) {
	if r.lettered {
		return // its dead letter stands for it until a retry, and nothing is left of any at rest
	}
	var write transform.Write
	c := r.change(r.version)
	w.dec.Reset()
	w.must(w.mapping.program.Change(&w.dec, &c, &write))
	for i := range write.Rows {
		qualifier := string(write.Item.Guard[:])
		if write.Rows[i].Class == transform.ClassR {
			qualifier = "i"
		}
		at := w.target.Rows[string(write.Rows[i].Key)]
		if at == nil || !at.Holds(qualifier, r.version) {
			w.fail("marks are durable", "the mark passed entry %d, write %d of item %d is not in row %q",
				r.seq, r.n, r.item.n, write.Rows[i].Key)
		}
		w.visible(r, &write.Rows[i])
	}
}

// visible checks Rule 5: a reader gets a change that is applied, or a later one. (Where a gap lost
// changes of an item, a difference to its old image is not enough.)
func (w *World) visible(r *record, row *transform.Row) {
	key := string(row.Key)
	if w.tainted[r.item] && row.Class == transform.ClassD {
		return
	}
	if seen := w.seen(r.item, key); r.item.shows(key, seen, r.commit) < 0 {
		w.fail("applied is seen", "the mark passed write %d of item %d, version %d, and row %q shows %q",
			r.n, r.item.n, r.version, key, seen)
	}
}

// skew is how much the clocks of the source's hosts differ: a child's first record may seem older
// than its parent's last.
const skew change.Millis = 1000

// complete checks Rules 8 and 10: everything that the log records as read and applied is there, or
// in a gap.
func (w *World) complete() {
	s := w.log.truth
	if s.LiveStream() == nil {
		return
	}
	read := min(s.ReadWatermark(), s.Listed-listLate-1000) - skew
	applied, mark := min(s.AppliedWatermark(), s.Listed-listLate-1000)-skew, s.Marks[checkpoint.SinkBigtable].Seq
	for _, r := range w.records {
		if r.created > max(read, applied) || r.shard.stream != s.LiveStream().ARN {
			continue
		}
		if (r.created <= read && r.seq == 0 || r.created <= applied && (r.seq == 0 || r.seq > mark)) && !w.excused(r) {
			w.fail(
				"read is read",
				"read through %d, applied through %d (mark %d), but write %d of %s, created %d, is in entry %d; %+v, gaps %+v",
				read,
				applied,
				mark,
				r.n,
				r.shard.id,
				r.created,
				r.seq,
				s.Shards[r.shard.id],
				s.Gaps,
			)
		}
	}
}

// notEnded checks Rule 13: no shard that takes records is finished. Two equal answers that are both
// false are given about new shards only: then a gap records what is missing until a listing shows
// the shard again.
func (w *World) notEnded(id string, byGap bool) {
	if sh := w.shard(id); sh != nil && !sh.closed && (!byGap || !w.isNew(sh)) {
		w.fail("an open shard is read", "%s takes records and is finished, by a gap: %v", id, byGap)
	}
}

// justified checks Rule 13: where a gap is, something may have been lost.
func (w *World) justified(g *checkpoint.Gap) {
	sh := w.shard(g.Feed.Shard)
	switch {
	case sh == nil, g.Ends && (w.gone(sh) || w.isNew(sh)):
		return
	case (g.Ends || g.From.After == "") && w.now-g.Since > retention:
		return
	case w.lies[sh.id].denial == protocol.Trimmed && w.lies[sh.id].lasts():
		return // with a position that is older than the retention, nothing refutes it
	}
	for _, r := range sh.records {
		if w.now-r.created > retention && r.position() > g.From.After {
			return
		}
	}
	w.fail("a gap has lost something", "nothing of %s is lost behind %+v since %d", sh.id, g.From, g.Since)
}

// acknowledged checks Rule 2: what the server acknowledged is part of the log. A store that went
// back to an older copy may have broken its promises.
func (w *World) acknowledged(p *process, seq uint64) {
	if !w.log.lostTail && !w.log.at(seq).counts {
		w.fail("acknowledged counts", "entry %d of %s was acknowledged and is not part of the log", seq, p.name)
	}
}

// claims checks that a log which was not released is claimed only after its owner could have
// appended for TTL, or after it was gone for longer than it is silent when idle.
func (w *World) claims(p *process) {
	t, least := w.log.truth, change.Millis(claimTTL)
	if w.owner() == nil {
		least = claimTTL/3 + 3000
	}
	if quiet := w.now - max(w.stored, w.upSince); t.Epoch > 0 && !t.Released && quiet < least {
		w.fail("claims after silence", "%s claims the log whose owner had %d ms", p.name, quiet)
	}
}

// sending checks Rule 12: nothing from behind a fence is sent to the target, and nothing once
// another process has claimed the log.
func (w *World) sending(p *process, unit []*job) {
	if t := w.log.truth; p.log == w.log.created && t.Epoch > p.epoch {
		w.fail("a replaced owner writes nothing", "%s writes in epoch %d, the log is in %d", p.name, p.epoch, t.Epoch)
	}
	for _, j := range unit {
		if j.op != nil {
			p.fitToSend(j.op)
		}
	}
	f := w.log.truth.Fence
	if f == nil || p.log != w.log.created {
		return
	}
	for _, j := range unit {
		if j.op != nil || j.seq > f.Seq {
			w.fail("fence", "%s writes entry %d, the fence is at %d (a resync: %v)", p.name, j.seq, f.Seq, j.op != nil)
		}
	}
}

// behindFence checks that what is written behind a fence is told: the log counts it, so status and
// commands do.
func (w *World) behindFence() {
	f, l := w.log.truth.Fence, w.log
	if f == nil {
		return
	}
	n := 0
	for seq := f.Seq + 1; seq <= l.last(); seq++ {
		if m := &l.msgs[seq-1]; m.counts {
			n += len(m.records)
		}
	}
	if f.Behind != uint64(n) {
		w.fail("what is behind the fence is counted", "%d changes behind the fence at %d, the log says %+v", n, f.Seq, f)
	}
}

// taint notes that changes of an item are lost: a reader gets the right content of it only once it
// is resynced.
func (w *World) taint(x *item) { w.tainted[x] = true }

// lost taints the items that may have lost changes in a gap.
func (w *World) lost(g *checkpoint.Gap) {
	for _, r := range w.records {
		if r.seq == 0 && (g.Feed.Shard == "" || r.shard.id == g.Feed.Shard || w.log.truth.Shards[r.shard.id] == nil) {
			w.taint(r.item)
		}
	}
	if g.Feed.Shard == "" { // of the time between two streams there are no records
		for _, x := range w.items {
			w.taint(x)
		}
	}
}

// grown taints the items that lost changes while a gap waited to be accepted: its shard is not read
// meanwhile, and the gap ends where it is accepted.
func (w *World) grown() {
	for i := range w.log.truth.Gaps {
		if g := &w.log.truth.Gaps[i]; g.Accepted && g.Until == w.log.truth.Date && g.Found < g.Until {
			w.reached(gapGrew)
			w.lost(g)
		}
	}
}

// madeTrue lets readers trust again what they see, once nothing differs any more.
func (w *World) madeTrue() {
	s := w.log.truth
	if s.Resync != nil || len(s.DifferingGaps()) > 0 {
		return
	}
	clear(w.tainted)
	for k, v := range w.readers {
		if k.item.shows(k.row, v.seen, 0) < 0 {
			w.fail("never a mix", "item %d in row %q after a resync: %q", k.item.n, k.row, v.seen)
		}
		w.readers[k] = view{v.seen, k.item.shows(k.row, v.seen, 0)}
	}
}

// equal returns the first row in which the target differs from an item of the source; "" for none.
func (w *World) equal(x *item) string {
	want := x.newest().rows
	for key, cells := range want {
		if w.seen(x, key) != cells {
			return key
		}
	}
	for key := range w.target.Rows {
		if w.seen(x, key) != want[key] {
			return key
		}
	}
	return ""
}

// finished checks that the target equals the source, and that nothing was lost silently.
func (w *World) finished() {
	for _, r := range w.records {
		if r.seq == 0 && r.shard.stream == w.log.truth.LiveStream().ARN && !w.excused(r) {
			w.fail(
				"nothing is lost",
				"write %d of %s, created %d, is neither in the log nor in a gap",
				r.n,
				r.shard.id,
				r.created,
			)
		}
	}
	for _, x := range w.items {
		if row := w.equal(x); row != "" {
			w.fail("target equals source", "item %d in row %q: %q, want %q",
				x.n, row, w.seen(x, row), x.newest().rows[row])
		}
	}
}
