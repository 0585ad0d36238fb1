package sim

import "github.com/tailrace-cdc/replicator/checkpoint"

// owns reports whether the process takes the log for its own; it may be wrong.
func (p *process) owns() bool { return p.s != nil }

// end lets the process own nothing.
func (p *process) end(why string) {
	if p.s != nil {
		p.logf("%s is no owner any more: %s", p.name, why)
	}
	p.s, p.doubt, p.life = nil, false, nil
	p.watch = p.newWatch()
}

// append appends an entry, and reports whether that was acknowledged. Otherwise nothing is known of
// it.
func (p *process) append(body any, data []byte) bool {
	if p.conn != p.World.log.conn { // the connection was lost in between
		p.doubt = true
		return false
	}
	if err := p.s.CheckNext(body); err != nil {
		p.fail("memory is what is stored", "%s: %s of %s: %v", p.name, checkpoint.KindOf(body), p.s.Owner, err)
	}
	msg := p.encode(p.s, p.epoch, p.nonce, body, data)
	sent := p.clocks()
	p.woken = false
	if err := p.publish(p, p.s.Seq, msg); err != nil {
		p.logf("%s: append %s at %d: %v", p.name, checkpoint.KindOf(body), p.s.Seq+1, err)
		p.doubt, p.unanswered = true, checkpoint.HashOf(msg)
		return false
	}
	seq := p.s.Seq + 1
	p.logf("%s stores %s at %d", p.name, checkpoint.KindOf(body), p.World.log.last())
	if p.mutant == NoExpectedSequence {
		seq = p.World.log.last()
	}
	p.acknowledged(p, seq)
	e, err := p.s.Apply(seq, p.World.log.written(seq, msg))
	if err != nil {
		p.fail("memory is what is stored", "%s: %v", p.name, err)
	}
	if e == nil {
		p.doubt = true
		return false
	}
	p.sent, p.sure, p.claimed = sent, seq, e.Kind == checkpoint.KindClaim
	if e.Kind == checkpoint.KindFrame || e.Kind == checkpoint.KindBeat {
		p.wrote = p.now
	}
	return true
}

// encode encodes an entry that continues a state.
func (w *World) encode(s *checkpoint.State, epoch uint64, nonce checkpoint.Nonce, body any, data []byte) []byte {
	msg, err := checkpoint.Encode(nil, &checkpoint.Entry{
		Kind: checkpoint.KindOf(body), Epoch: epoch, Nonce: nonce, Prev: s.Hash, Body: body, Data: data,
	})
	w.must(err)
	return msg
}

// publish sends an append. It may be lost on its way, or its acknowledgement, or it may arrive
// late.
func (w *World) publish(p *process, expected uint64, msg []byte) error {
	if w.log.away || p != nil && p.log != w.log.created {
		return errUnknown
	}
	switch w.fault(faultAppend, 4) {
	case 1: // lost before
		return errUnknown
	case 2: // the acknowledgement is lost
		_ = w.store(expected, msg)
		return errUnknown
	case 3:
		w.log.late = append(w.log.late, lateAppend{w.log.created, expected, msg})
		return errUnknown
	}
	return w.store(expected, msg)
}

// written returns a message as the server has it: the same bytes, but for the mutant that names
// another predecessor.
func (l *server) written(seq uint64, msg []byte) []byte {
	if seq <= l.last() {
		return l.at(seq).data
	}
	return msg
}
