package sim

import (
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
)

// whole is a resync of the whole table as one life makes it: read, write, read again, compare,
// until no item differs.
type whole struct {
	order  checkpoint.PendingResync
	looked change.Millis // when the log was asked whether it still holds the order
	open   map[int]bool  // items that are not proven equal
	put    bool          // they were written: the next reading is compared
	r      *reading
}

// wholeLook is the time between two looks at whether the log holds another order, in ms.
const wholeLook = 1000

// wholeStep returns the next step of a pending resync; nil when it has to wait, or there is none.
func (p *process) wholeStep() func() {
	if x := p.whole; x == nil || p.now-x.looked >= wholeLook {
		p.findOrder()
	}
	if p.whole == nil {
		return nil
	}
	order := &p.whole.order
	switch x := p.whole; {
	case len(x.open) == 0:
		return p.healed
	case x.r == nil && !p.resyncMayRead(order):
		p.reached(beginWaited)
		return nil
	case x.r == nil:
		return p.readWhole
	case p.old(x.r) && (!x.r.begun || x.r.open == 0):
		return func() {
			p.reached(resyncRewound)
			x.r, x.put = nil, false
		}
	case !x.r.begun && p.proved(x.r):
		return p.writeOrCompare
	case x.r.begun && x.r.open == 0:
		return func() { x.put, x.r = !x.r.stale, nil }
	}
	return nil
}

// findOrder looks whether the log holds an order of a resync, or another one.
func (p *process) findOrder() {
	order := p.s.Resync
	switch {
	case order == nil || p.s.Fence != nil:
		p.whole = nil
		return
	case p.whole == nil || p.whole.order.ID != order.ID:
		p.whole = &whole{order: *order, open: map[int]bool{}}
		for _, x := range p.items {
			p.whole.open[x.n] = true
		}
	}
	p.whole.looked = p.now
}

// resyncMayRead reports whether a resync of the whole table may read it now.
func (p *process) resyncMayRead(order *checkpoint.PendingResync) bool {
	from, ok := protocol.ResyncFrom(order, protocol.RowFactsOf(p.s))
	return ok && p.now >= from
}

func (p *process) readWhole() {
	var all []*item
	for _, x := range p.items {
		if p.whole.open[x.n] {
			all = append(all, x)
		}
	}
	p.whole.r = p.readItems(all, false, true)
}

// writeOrCompare writes what was read, or compares it with the target after it was written.
func (p *process) writeOrCompare() {
	x := p.whole
	if !x.put {
		p.aboveLost(x)
		p.submit(x.r)
		return
	}
	for _, op := range x.r.ops {
		if op.commit == len(op.item.commits)-1 && p.equal(op.item) == "" {
			delete(x.open, op.item.n)
		}
	}
	x.r, x.put = nil, false
}

func (p *process) healed() {
	x := p.whole
	p.whole = nil
	p.reachedIf(p.s.Resync != nil && p.s.Resync.ID != x.order.ID, healedLate)
	p.append(&checkpoint.Healed{
		ID: x.order.ID, Gaps: x.order.Gaps, Sinks: map[string]string{checkpoint.SinkBigtable: ""}, Date: p.now,
	}, nil)
}

// order lets the owner itself order a resync, because gaps heal by themselves, or in place of one
// that is pending.
func (p *process) order() {
	gaps := p.s.GapsToHeal()
	if p.s.Fence != nil || p.o.letters || len(gaps) == 0 && p.s.Resync == nil {
		return
	}
	p.orders++
	order := &checkpoint.ResyncOrder{ID: fmt.Sprint("own-", p.orders)}
	for _, g := range gaps {
		order.Gaps = append(order.Gaps, g.ID())
	}
	p.append(&checkpoint.Control{Resync: order, By: "owner", At: p.now}, nil)
}
