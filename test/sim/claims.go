package sim

import (
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
)

// observe lets each process that waits for the log look at it.
func (w *World) observe() {
	for _, p := range w.processes {
		if !p.owns() && p.frozen == 0 && !w.log.away {
			p.look()
		}
	}
}

// look notes the newest status of the owner, or the last entry of the log.
func (p *process) look() {
	l, now := p.World.log, p.now.Time()
	conn := l.conn
	if p.mutant == NoObservedSilence { // as if it had looked all the time
		conn = 0
		for at := p.lookedAt; !p.watch.Unseen() && at < p.now; at += 1000 {
			p.watch.Saw(at.Time(), p.watch.Seq(), conn)
		}
	}
	p.lookedAt = p.now
	if o := p.owner(); o != nil && o.s.Seq <= l.last() {
		p.watch.Heard(now, o.s.Seq, now.Sub(o.wrote.Time()), conn)
		if !p.watch.Look(now) {
			return
		}
	}
	p.watch.Saw(now, l.last(), conn)
}

// mayClaim reports whether the process may claim the log; s is the fold of the log.
func (p *process) mayClaim(s *checkpoint.State) bool {
	conn := p.World.log.conn
	if p.mutant == NoObservedSilence {
		conn = 0
	}
	l := protocol.WatchedLog{Seq: s.Seq, Owned: s.Epoch > 0 && !s.Released, Connection: conn}
	return p.watch.May(p.name, l, p.watch.Silent(p.now.Time()), 0, p.now.Time())
}

// silent reports whether a fold could lead to a claim.
func (p *process) silent() bool {
	t := p.World.log.truth
	return !p.World.log.away && (t.Epoch == 0 || t.Released || p.watch.Silent(p.now.Time()))
}
