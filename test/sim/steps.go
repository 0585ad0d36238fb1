package sim

import (
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
)

// step lets one thing happen: in the table, to the log or the processes, or one process acts.
func (w *World) step() {
	w.now += [...]change.Millis{7, 180, 600, 1500}[w.weighted(3, 3, 3, 2)]
	w.observe()
	for _, p := range w.processes {
		p.waited()
	}
	if w.o.workers && w.one(3) {
		w.engine()
	}
	switch w.weighted(62, 11, 6, w.disasters()) {
	case 0:
		w.act()
	case 1:
		w.happen()
	case 2:
		w.arrivals()
	case 3:
		w.disaster()
	}
}

// disasters returns the weight of disasters in this history.
func (w *World) disasters() int { return [...]int{1, 5, 12}[w.profile] }

// happen changes the table, or its shards.
func (w *World) happen() {
	switch w.weighted(24, 3, 3) {
	case 0:
		w.write(w.busy(), w.now, 0)
	case 1:
		w.split()
	case 2: // a burst runs the shard's clock ahead
		w.write(w.busy(), w.now, [...]change.Version{1000, 90_000, 400_000}[w.choose(3)])
	}
}

// busy returns an item to write. In calm histories nobody writes the last item once the stream has
// begun: only a copy, or a resync, brings it to the target.
func (w *World) busy() *item {
	n := w.choose(len(w.items))
	if w.profile == 0 && !w.o.letters && n == len(w.items)-1 {
		n = 0
	}
	return w.items[n]
}

// act lets a process do some steps, most of them the first of its due steps.
func (w *World) act() {
	var able []*process
	for _, p := range w.processes {
		if p.frozen == 0 && (p.owns() || p.silent()) {
			able = append(able, p)
		}
	}
	if len(able) == 0 {
		return
	}
	p := able[w.choose(len(able))]
	for range [...]int{1, 3, 10}[w.weighted(2, 2, 3)] {
		acts := append(p.due(), p.extra()...)
		if len(acts) == 0 {
			return
		}
		acts[w.weighted(append([]int{3 * len(acts)}, many[:len(acts)-1]...)...)]()
		w.now += 7
	}
}

var many = [...]int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}

// due returns the steps that a process has to do now, in the order of their urgency.
func (p *process) due() (acts []func()) {
	add := func(ok bool, do func()) {
		if ok {
			acts = append(acts, do)
		}
	}
	switch {
	case !p.owns():
		add(p.silent(), p.claim)
		return acts
	case p.doubt || p.conn != p.World.log.conn:
		add(!p.World.log.away && !p.doubt && p.hasEntry(), p.readEntry) // the pass over the log may be faster
		add(!p.World.log.away, p.recover)
		return acts
	case p.s.LiveStream() == nil:
		return append(acts, p.start)
	}
	s := p.s
	_, marked := s.Marks[checkpoint.SinkBigtable]
	if !marked { // a sink has a mark before anything is read
		return append(acts, p.mark)
	}
	add(p.now-p.described > 60_000 && p.nextStream() == protocol.StreamFollows, p.start)
	for _, sh := range p.doubted() {
		add(true, func() { p.settle(sh) })
	}
	if p.woken { // what is in hand goes on at once
		acts = append(acts, p.laneSteps()...)
	}
	add(p.listingDue(), func() { p.refresh(true) })
	add(len(p.pages) > 0, p.frame)
	for _, sh := range p.readable() {
		add(p.readDue(sh), func() { p.readShard(sh, 1+p.choose(3)) })
	}
	add(p.hasEntry(), p.readEntry)
	acts = append(acts, p.laneSteps()...)
	add(s.Accepting != nil, p.switchMapping)
	acts = append(acts, p.copySteps()...)
	do := p.wholeStep()
	add(do != nil, do)
	do = p.retryStep()
	add(do != nil, do)
	_, changes := p.ackedMark()
	add(changes > s.Marks[checkpoint.SinkBigtable].Seq, p.mark)
	add(p.beatDue(), p.beat)
	add(p.World.log.last()-max(s.SnapshotLast, p.World.log.first) > 30, p.snapshot)
	return acts
}

// laneSteps returns the next steps of the lanes that have something to do.
func (p *process) laneSteps() (acts []func()) {
	for i := range p.sink.lanes {
		ln := &p.sink.lanes[i]
		if ln.busy() && !p.reachedIf(!p.mayWrite(), silentOwner) {
			acts = append(acts, func() { p.work(ln) })
		}
	}
	return acts
}

// extra returns a step that a process may do at any time, now and then.
func (p *process) extra() (acts []func()) {
	if !p.owns() || p.doubt || p.s.LiveStream() == nil || len(p.s.Marks) == 0 || !p.one(3) {
		return nil
	}
	switch p.weighted(6, 4, 2, 1, 1, 1) {
	case 0:
		for _, sh := range p.readable() {
			acts = append(acts, func() { p.readShard(sh, 1) })
		}
		return acts
	case 1:
		return append(acts, func() { p.refresh(false) })
	case 2:
		return append(acts, p.beat, p.snapshot)
	case 3:
		return append(acts, p.markLate)
	case 4:
		return append(acts, p.order)
	}
	return append(acts, p.release)
}

// release gives up the log. Nothing is done with it afterwards, even where the outcome is unknown:
// the append may arrive late, and then another process claims the log at once.
func (p *process) release() {
	p.append(&checkpoint.Release{}, nil)
	p.end("it releases the log")
}

// listingDue reports whether a listing is wanted: for a proof, for children or parents, or since
// the last is old.
func (p *process) listingDue() bool {
	live, age := p.s.LiveStream(), p.now-max(p.listed, p.looked)
	need := p.needed()
	return age > 60_000 || age > 1500 && p.ended ||
		age > 3000 && (len(p.s.MissingParents()) > 0 || p.s.AwaitsChildren()) ||
		need > p.listed && p.now > need+1000 && age > 1000 ||
		age > 2000 && !live.Disabled && !p.stillLive()
}

// beatDue reports whether a beat is due, or wanted for a proof.
func (p *process) beatDue() bool {
	if p.now-p.wrote > claimTTL/3 {
		return true
	}
	need := p.needed()
	return need > 0 && p.now-p.wrote > 1000 && min(p.listed, p.lowest()) >= need &&
		min(p.s.Listed, p.s.ReadWatermark()) < need
}
