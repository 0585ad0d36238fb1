package sim

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"
)

// small is the world whose histories are enumerated: a table of one item that is older than its
// stream, whose shard has one child, two processes, a copy of one page, two changes.
var small = Options{items: 1, shards: 1, processes: 2, backfill: true, mapping: 1}

// small histories end by themselves long before.
const maxTicks = 80

// errSeen ends a history at a state that was seen before.
type errSeen struct{}

func (errSeen) Error() string { return "seen before" }

// all runs all histories, and returns the first violation.
func (x *explorer) all(m Mutant, o Options) (*Violation, []int) {
	x.seen = map[uint64]bool{}
	for {
		x.used, x.bounds = nil, nil
		x.runs++
		if v := x.one(m, o); v != nil {
			return v, x.used
		}
		i := len(x.used) - 1
		for i >= 0 && x.used[i]+1 >= x.bounds[i] {
			i--
		}
		if i < 0 {
			return nil, nil
		}
		x.script = append(slices.Clone(x.used[:i]), x.used[i]+1)
	}
}

// one runs the history of the script.
func (x *explorer) one(m Mutant, o Options) (v *Violation) {
	defer func() {
		switch r := recover().(type) {
		case nil, errSeen:
		case *Violation:
			v = r
		default:
			panic(r)
		}
	}()
	w := &World{tape: &tape{calm: true}, o: o, mutant: m}
	w.small = &smallWorld{explorer: x, faults: x.faults, preemptions: x.preemptions}
	w.setUp()
	for w.exploreStep() {
		if len(x.used) < len(x.script) {
			continue
		}
		if d := w.digest(); x.seen[d] {
			panic(errSeen{})
		} else {
			x.seen[d] = true
		}
	}
	w.finished()
	x.ends++
	return nil
}

// event is what happens to the table: a change, a split, the item's end.
func (w *World) event() {
	w.small.events++
	switch w.small.events {
	case 1, 3:
		w.deleting = w.small.events == 3
		w.write(w.items[0], w.now, 0)
	case 2:
		w.split()
	}
}

// exploreStep does one step; false when the history has ended.
func (w *World) exploreStep() bool {
	x := w.small
	p, other := w.processes[x.current], w.processes[1-x.current]
	due, others := w.wants(p), w.wants(other)
	var steps []func()
	happens := x.events < 3
	switch {
	case len(due) > 0:
		steps = append(steps, due[0])
		due = due[1:]
	case len(others) > 0:
		steps = append(steps, others[0])
		others = nil
	case happens:
		steps, happens = append(steps, w.event), false
	case len(w.late)+len(w.log.late) == 0 && w.quiet():
		return false
	default:
		steps = append(steps, w.tick)
	}
	if happens {
		steps = append(steps, w.event)
	}
	for i := range w.late {
		steps = append(steps, func() { w.arrive(i) })
	}
	for i := range w.log.late {
		steps = append(steps, func() { w.deliver(i) })
	}
	if x.preemptions > 0 {
		for _, do := range w.preempt(p, other, due, others) {
			steps = append(steps, func() {
				x.preemptions--
				do()
			})
		}
	}
	if x.faults > 0 && p.owns() {
		steps = append(steps, func() {
			x.faults--
			p.end("it dies")
		})
	}
	steps[x.pick(len(steps))]()
	if int(w.log.last()) > x.limit {
		panic(errSeen{}) // beyond what is enumerated
	}
	return true
}

// wants returns what a process wants to do.
func (w *World) wants(p *process) []func() {
	if p.frozen > 0 {
		return nil
	}
	return p.due()
}

// preempt returns the steps that interrupt a process.
func (w *World) preempt(p, other *process, due, others []func()) (steps []func()) {
	steps = append(steps, due...)
	if len(others) > 0 {
		steps = append(steps, others[0])
	}
	if p.owns() && p.frozen == 0 {
		steps = append(steps, func() { p.frozen, w.small.current = 1, 1-w.small.current })
	}
	if other.frozen > 0 {
		steps = append(steps, func() { other.frozen, w.small.current = 0, 1-w.small.current })
	}
	return steps
}

// quiet reports whether nothing is left to do.
func (w *World) quiet() bool {
	return slices.ContainsFunc(w.processes, func(p *process) bool { return p.owns() && w.unrest(p) == "" })
}

// tick lets time pass.
func (w *World) tick() {
	if w.small.ticks++; w.small.ticks > maxTicks {
		w.fail("comes to rest", "%s", w.unrest(w.processes[w.small.current]))
	}
	for len(w.late) > 0 && w.small.ticks > maxTicks/2 {
		w.arrive(0)
	}
	for len(w.log.late) > 0 && w.small.ticks > maxTicks/2 {
		w.deliver(0)
	}
	if p, other := w.processes[0], w.processes[1]; p.frozen > 0 && other.frozen > 0 {
		p.thaw()
		other.thaw()
	}
	w.now += 2500
	w.observe()
}

// digest hashes all that the rest of the history depends on.
func (w *World) digest() uint64 {
	h := fnv.New64a()
	x := w.small
	fmt.Fprintln(
		h,
		w.now,
		x.faults,
		x.preemptions,
		x.current,
		x.events,
		x.ticks,
		w.log.first,
		w.nonces,
		w.stored,
		w.log.conn,
	)
	for i := range w.log.msgs {
		_, _ = h.Write(w.log.msgs[i].data)
	}
	for _, l := range w.log.late {
		fmt.Fprintln(h, l.expected, string(l.data))
	}
	for _, l := range w.late {
		fmt.Fprintln(h, *l.request)
	}
	for _, key := range slices.Sorted(maps.Keys(w.target.Rows)) {
		fmt.Fprintln(h, key, w.target.Rows[key].Cells)
	}
	for _, s := range w.shards {
		fmt.Fprintln(h, s.id, s.closed, s.ended, len(s.records))
	}
	for _, s := range w.shards {
		fmt.Fprintln(h, w.lies[s.id])
	}
	for k, v := range w.readers { // one item, few rows: the order does not matter in a sum
		fmt.Fprintln(h, len(w.readers), k.row == "", v.commit)
	}
	for _, p := range w.processes {
		p.digest(h)
	}
	return h.Sum64()
}

// digest writes what a process knows.
func (p *process) digest(h io.Writer) {
	fmt.Fprintln(
		h,
		p.name,
		p.epoch,
		p.nonce,
		p.doubt,
		p.sent,
		p.wrote,
		p.conn,
		p.sure,
		p.frozen,
		p.woken,
		p.owns(),
		p.watch.Seq(),
		p.lookedAt,
	)
	if p.life == nil {
		fmt.Fprintln(
			h,
			p.watch.Silent(p.now.Time()),
			p.watch.Silent((p.now + 2500).Time()),
			p.watch.Silent((p.now + 5000).Time()),
		)
		return
	}
	fmt.Fprintln(h, p.s.Hash, p.s.Seq, p.listed, p.looked, p.ended)
	for _, pg := range p.pages {
		fmt.Fprintln(h, pg.head)
	}
	for _, id := range slices.Sorted(maps.Keys(p.through)) {
		fmt.Fprintln(h, id, p.through[id])
	}
	for _, id := range slices.Sorted(maps.Keys(p.doubts)) {
		fmt.Fprintln(h, id, *p.doubts[id])
	}
	fmt.Fprintln(h, p.sink.seq, p.sink.entry, p.sink.acks.Mark(), p.sink.highest.Seq)
	for i := range p.sink.lanes {
		ln := &p.sink.lanes[i]
		fmt.Fprintln(h, len(ln.units), ln.requests)
		for _, j := range ln.waiting {
			_ = binary.Write(h, binary.LittleEndian, int64(j.version))
		}
		for _, u := range ln.units {
			_ = binary.Write(h, binary.LittleEndian, int64(u[len(u)-1].version))
		}
	}
	if c := p.copy; c != nil {
		fmt.Fprintln(h, c.parts.Total(), c.moved)
		for _, pg := range c.pages {
			r := pg.r
			fmt.Fprintln(h, pg.CopyPage, pg.noted, r.Requested, r.wait, r.open, r.begun, r.stale)
		}
	}
}
