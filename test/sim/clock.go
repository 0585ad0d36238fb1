package sim

import (
	"time"

	"github.com/tailrace-cdc/replicator/protocol"
)

// clocks returns what the clocks of the process show.
func (p *process) clocks() protocol.Instant {
	mono := p.now - p.asleep
	if p.suspended > 0 {
		mono = p.suspended - p.asleep
	}
	return protocol.Instant{Wall: p.now.Time(), Mono: time.Duration(mono) * time.Millisecond}
}

// freeze lets the process do nothing for some steps, perhaps because its machine is suspended.
func (p *process) freeze(steps int) {
	p.thaw()
	if p.frozen = steps; p.frozen > 0 && p.one(2) {
		p.suspended = p.now
	}
}

// thaw lets the process go on.
func (p *process) thaw() {
	p.woken = p.woken || p.frozen > 0
	if p.frozen = 0; p.suspended > 0 {
		p.asleep, p.suspended = p.asleep+p.now-p.suspended, 0
	}
}
