package sim

import (
	"errors"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

// sink is one pass over the log into Bigtable: it reads entries from the stored mark on, deals
// their changes out to lanes, and moves its mark.
type sink struct {
	seq     uint64 // of the last message read
	entry   uint64 // of the last entry read
	chain   checkpoint.Chain
	acks    *protocol.MarkTracker
	fence   *checkpoint.Fence
	lanes   [2]lane
	highest checkpoint.Mark // the newest entry that is durable, whatever is before it
}

// lane is an ordered worker: all changes of an item are in the same one.
type lane struct {
	waiting  []job
	units    [][]*job // of the batch that was taken: one write each
	requests []bigtable.RowWrite
	grouper  protocol.Grouper[*job]
}

// job is a change on its way into the target, or an item that was read from the table.
type job struct {
	stored
	c     change.Change
	seq   uint64 // of the entry
	entry *protocol.TrackedEntry
	op    *operation
}

// Hash and Key name the item for package batch.
func (j *job) Hash() uint64 { return j.c.KeyHash }
func (j *job) Key() []byte  { return j.c.Keys }

// newSink returns a sink at its stored mark.
func (p *process) newSink() *sink {
	m, ok := p.s.Marks[checkpoint.SinkBigtable]
	if !ok {
		m = checkpoint.Mark{Seq: p.s.Seq, Hash: p.s.Hash}
	}
	s := &sink{seq: m.Seq, entry: m.Seq, acks: protocol.NewMarkTracker(m), fence: p.s.Fence, highest: m}
	s.chain = checkpoint.ChainAfter(m.Hash)
	if m.Seq == 0 {
		s.chain = checkpoint.ChainFromStart()
	}
	return s
}

func (p *process) ackedMark() (m checkpoint.Mark, lastChanges uint64) {
	if p.mutant == NoContiguousAcks {
		return p.sink.highest, p.sink.highest.Seq
	}
	return p.sink.acks.Acked()
}

// hasEntry reports whether the sink has something to read.
func (p *process) hasEntry() bool {
	return p.sink.seq < p.World.log.last() && p.pass().Before(p.sink.seq+1) == protocol.PassApplies
}

// pass returns the judge of the sink's pass.
func (p *process) pass() protocol.Pass {
	judge := protocol.Pass{Epoch: p.epoch, Fence: p.sink.fence}
	if p.mutant == NoFence {
		judge.Fence = nil
	}
	return judge
}

// readEntry reads the next message of the log and hands its changes to the lanes.
//
// Rule 2: what a later owner appended is not applied.
func (p *process) readEntry() {
	l, s := p.World.log, p.sink
	if p.log != l.created || s.seq+1 < l.first {
		p.doubt = true // what comes next was deleted
		p.reached(trimmedUnder)
		p.logf("%s finds entry %d deleted", p.name, s.seq+1)
		return
	}
	m := l.at(s.seq + 1)
	if p.mutant == NoChain {
		s.chain = checkpoint.ChainAfter(checkpoint.Hash{})
	}
	if m.entry != nil && !s.chain.Continues(m.entry) && !p.stillHolds(s.entry, s.chain.Hash) {
		p.doubt = true // the log went back
		p.reached(wentBack)
		p.logf("%s reads entry %d, and %d is not what it was: %x", p.name, s.seq+1, s.entry, s.chain.Hash)
		return
	}
	s.seq++
	if m.entry == nil {
		return
	}
	if ok, err := s.chain.Accept(m.entry, m.data); err != nil || !ok {
		p.must(err)
		return
	}
	s.entry = s.seq
	switch p.pass().Next(s.seq, m.entry) {
	case protocol.PassEnds:
		p.reachedIf(p.claimed, claimLost)
		p.end("the log has a later owner")
		return
	case protocol.PassHolds:
		s.seq-- // it waits here until its life ends
		return
	}
	at := checkpoint.Mark{Seq: s.seq, Hash: s.chain.Hash}
	open := s.acks.Add(at, len(m.records), nil)
	for _, r := range m.records {
		if !p.s.LifeOf(r.record.shard.stream).Applies(r.version) {
			p.reached(beforeLife)
			p.ack(open)
			continue
		}
		j := job{stored: r, c: r.record.change(r.version), seq: s.seq, entry: open}
		ln := &s.lanes[j.c.KeyHash%uint64(len(s.lanes))]
		ln.waiting = append(ln.waiting, j)
	}
	p.ack(open)
}

// stillHolds reports whether the log still holds the entry that was read last.
func (p *process) stillHolds(seq uint64, want checkpoint.Hash) bool {
	l := p.World.log
	if l.last() < p.sink.seq || want == (checkpoint.Hash{}) {
		return l.last() >= p.sink.seq
	}
	return p.predecessor(seq+1, want, nil)
}

// ack notes that one change of an entry is durable.
func (p *process) ack(e *protocol.TrackedEntry) {
	e.Ack(1)
	if e.At.Seq > p.sink.highest.Seq {
		p.sink.highest = e.At
	}
}

// busy reports whether a lane has something to do.
func (ln *lane) busy() bool { return len(ln.waiting)+len(ln.units)+len(ln.requests) > 0 }

// mayWrite reports whether no other process can have claimed the log yet.
func (p *process) mayWrite() bool {
	return protocol.MayWrite(claimTTL*time.Millisecond, p.sent, p.clocks())
}

// work sends the next request of a lane, or prepares the next write.
func (p *process) work(ln *lane) {
	if !p.mayWrite() {
		return
	}
	if len(ln.units) == 0 {
		p.take(ln)
	}
	unit := ln.units[0]
	if len(ln.requests) == 0 {
		unit = p.beforeLetters(ln)
		if p.refuses(unit) {
			p.finishUnit(ln, nil)
			return
		}
		reqs, err := p.prepare(unit)
		if errors.Is(err, errStale) {
			p.finishUnit(ln, err)
			return
		}
		p.must(err)
		ln.requests = reqs
	}
	if op := unit[0].op; op != nil && !p.fresh(op) {
		p.finishUnit(ln, errStale)
		return
	}
	if len(ln.requests) > 0 {
		if !p.send(p, &ln.requests[0], unit) {
			return // it is sent again
		}
		ln.requests = ln.requests[1:]
	}
	if len(ln.requests) == 0 && unit[0].op != nil {
		reqs, err := p.proceed(unit[0].op)
		p.must(err)
		ln.requests = reqs
	}
	if len(ln.requests) == 0 {
		p.finishUnit(ln, nil)
	}
}

// take takes what waits in a lane as a batch. A resync is a barrier: nothing is united across it.
func (p *process) take(ln *lane) {
	all := ln.waiting
	ln.waiting = nil
	for len(all) > 0 {
		if all[0].op != nil {
			ln.units = append(ln.units, []*job{&all[0]})
			all = all[1:]
			continue
		}
		n := 0
		for n < len(all) && all[n].op == nil {
			n++
		}
		p.must(protocol.EachGroup(&ln.grouper, all[:n], func(same []*job) error {
			ln.units = append(ln.units, append([]*job(nil), same...))
			return nil
		}))
		all = all[n:]
	}
}

// prepare returns the requests of a write.
func (p *process) prepare(unit []*job) ([]bigtable.RowWrite, error) {
	p.dec.Reset()
	if op := unit[0].op; op != nil && p.o.letters {
		p.beginRetry(op)
		return p.proceed(op)
	} else if op != nil {
		return p.prepareResync(op)
	}
	var write transform.Write
	if len(unit) == 1 {
		if err := p.mapping.program.Change(&p.dec, &unit[0].c, &write); err != nil {
			return nil, err
		}
		return bigtable.Requests(&write, families)
	}
	var cs []*change.Change
	for _, j := range unit {
		cs = append(cs, &j.c)
	}
	if err := p.mapping.program.Coalesce(&p.dec, cs, &write); err != nil {
		return nil, err
	}
	return bigtable.Requests(&write, families)
}

// finishUnit ends the first write of a lane's batch: it is durable, or the item was read too long
// ago.
func (p *process) finishUnit(ln *lane, err error) {
	unit := ln.units[0]
	ln.units, ln.requests = ln.units[1:], nil
	for _, j := range unit {
		if j.op != nil {
			j.op.done(err)
		} else {
			p.ack(j.entry)
		}
	}
}

// lateWrite is a request that is still under way although its sender has given it up.
type lateWrite struct{ request *bigtable.RowWrite }

// send sends a request, and reports whether it was answered. It may be lost on its way, or its
// answer, or it may arrive late.
func (w *World) send(p *process, c *bigtable.RowWrite, unit []*job) bool {
	w.sending(p, unit)
	again := *c
	switch w.fault(faultWrite, 4) {
	case 1:
		return false
	case 2:
		w.apply(&again)
		return false
	case 3:
		w.late = append(w.late, lateWrite{&again})
		return false
	}
	matched := w.apply(&again)
	w.reachedIf(matched, writeSkipped)
	if op := unit[0].op; op != nil && op.retried.phase == behindPut {
		op.retried.note(matched, !w.target.Row(string(c.Row)).Holds(string(c.Qualifier), c.Version+1))
	}
	w.logf("%s writes %q at %d, skipped: %v", p.name, c.Row, c.Version, matched)
	return true
}

// apply executes a conditional write, and reports whether its predicate matched.
func (w *World) apply(c *bigtable.RowWrite) (matched bool) {
	r := w.target.Row(string(c.Row))
	matched = r.Holds(string(c.Qualifier), c.Version)
	ops := c.Body
	if matched && w.mutant != NoGuard {
		ops = c.Skip
	}
	for i := range ops {
		if m := &ops[i]; w.mutant != NoTombstone || m.Kind != bigtable.SetCell || m.Family != transform.DeadFamily {
			r.Execute(m)
		}
	}
	if len(r.Cells) == 0 {
		delete(w.target.Rows, string(c.Row))
	}
	w.look(string(c.Row))
	return matched
}
