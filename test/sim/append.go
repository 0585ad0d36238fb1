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
	return p.appendAs(p.fateOfAppend, body, data, nil, func(checkpoint.Hash) {})
}

// appendAs is append of an entry whose fate is drawn so. msg is its stored form; nil: it is encoded
// now. meanwhile is called with its hash before the process looks at the outcome.
func (p *process) appendAs(fate func() int, body any, data, msg []byte, meanwhile func(checkpoint.Hash)) bool {
	if p.conn != p.World.log.conn { // the connection was lost in between
		p.doubt = true
		return false
	}
	if err := p.s.CheckNext(body); err != nil {
		p.fail("memory is what is stored", "%s: %s of %s: %v", p.name, checkpoint.KindOf(body), p.s.Owner, err)
	}
	if msg == nil {
		msg = p.encode(p.s.Hash, p.epoch, p.nonce, body, data)
	}
	sent := p.clocks()
	p.woken = false
	err := p.publish(p, fate, p.s.Seq, msg)
	meanwhile(checkpoint.HashOf(msg))
	if err != nil {
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

// encode encodes an entry behind the one with a hash.
func (w *World) encode(prev checkpoint.Hash, epoch uint64, nonce checkpoint.Nonce, body any, data []byte) []byte {
	msg, err := checkpoint.Encode(nil, &checkpoint.Entry{
		Kind: checkpoint.KindOf(body), Epoch: epoch, Nonce: nonce, Prev: prev, Body: body, Data: data,
	})
	w.must(err)
	return msg
}

// fateOfAppend draws what becomes of an append: 0, it is stored; 1, it is lost on its way; 2, its
// acknowledgement is lost; 3, it arrives late.
func (w *World) fateOfAppend() int { return w.fault(faultAppend, 4) }

// publish sends an append. Its fate is drawn where it reaches the server.
func (w *World) publish(p *process, fate func() int, expected uint64, msg []byte) error {
	if w.log.away || p != nil && p.log != w.log.created {
		return errUnknown
	}
	switch fate() {
	case 1:
		return errUnknown
	case 2:
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
