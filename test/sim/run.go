package sim

import (
	"errors"
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/test/sim/cells"
)

// usual are the options of a random history.
var usual = Options{items: 4, shards: 2, processes: 3, steps: 300, backfill: true, rest: 8000}

// Run runs the history of a tape, and returns the invariant that it breaks; nil when it breaks
// none.
func run(t *tape, o Options, m Mutant, verbose bool) (w *World, found *Violation) {
	defer func() {
		if r := recover(); r != nil {
			err, ok := r.(error)
			if !ok || !errors.As(err, &found) {
				panic(r)
			}
		}
	}()
	w = &World{tape: t, o: o, mutant: m, verbose: verbose}
	w.setUp()
	for range o.steps {
		if t.ended() {
			break
		}
		w.step()
	}
	w.drain()
	w.finished()
	return w, nil
}

// setUp makes a table that is older than its stream, and processes that wait for its log.
func (w *World) setUp() {
	o := w.o
	w.now, w.log, w.target = begin, newServer(), cells.New()
	w.lies, w.unread, w.letters = map[string]lie{}, map[string]bool{}, letters{}
	w.above, w.copied = map[string]change.Version{}, map[copiedItem]bool{}
	w.readers, w.tainted = map[viewKey]view{}, map[*item]bool{}
	i := o.mapping - 1
	if i < 0 {
		i = w.choose(len(mappings))
		w.profile = w.choose(3)
	}
	w.replaces = !o.letters && w.choose(2) == 1
	if o.letters {
		w.profile = 0
	}
	w.mapping = mappings[i]
	if o.workers {
		w.bulk.marks, w.bulk.exports = map[string]map[int]*delegation.FileMark{}, map[string][]int{}
		w.bulk.versions = map[string]change.Version{}
		for w.mapping.program.Unfit(false) != "" {
			i = (i + 1) % len(mappings)
			w.mapping = mappings[i]
		}
	}
	w.logf("mapping %s", w.mapping.name)
	for n := range o.items {
		w.items = append(w.items, newItem(n))
	}
	for _, x := range w.items {
		if w.choose(3) < 2 {
			w.write(x, w.now-3600_000, 0)
		}
	}
	w.enable()
	w.age()
	for n := range o.processes {
		w.processes = append(w.processes, &process{World: w, name: string(rune('A' + n)), watch: w.newWatch()})
	}
}

// age lets the first shards of the stream be split, written to and nearly forgotten, in some
// histories, before the first process starts.
func (w *World) age() {
	if w.small != nil || w.choose(6) < 5 {
		return
	}
	for range 1 + w.choose(4) {
		w.write(w.items[w.choose(len(w.items))], w.now, 0)
		w.now += 700
	}
	w.split()
	w.now += retention - change.Millis(w.choose(30))*500
}

// drain lets everything come to rest: no faults, one process, an operator that heals what was lost.
func (w *World) drain() {
	w.calm = true
	clear(w.lies)
	w.logf("from here on nothing goes wrong")
	for len(w.log.late) > 0 && !w.log.away {
		w.deliver(0)
	}
	for len(w.late) > 0 {
		w.arrive(0)
	}
	for len(w.bulk.late)+len(w.bulk.swaps) > 0 {
		w.arriveBulk()
	}
	if w.log.away {
		w.outage()
	}
	for _, p := range w.processes[1:] {
		p.end("it is stopped")
	}
	p := w.processes[0]
	p.thaw()
	for range w.o.rest {
		if w.live().disabled {
			w.enable()
		}
		if w.log.truth.Fence != nil {
			w.fence()
		}
		if c := w.log.truth.CopyRunning(); c != nil && c.Paused {
			w.orderCopy(checkpoint.CopyResume)
		}
		w.drainWorkers()
		if w.log.truth.OpenGaps() > 0 || w.differs() {
			w.heal()
		}
		w.observe()
		if w.replaces && p.s != nil && !p.doubt && p.whole != nil && len(p.whole.open) == 0 {
			w.replaces = false
			p.order()
		}
		if acts := p.due(); len(acts) > 0 {
			acts[0]()
			w.now += 7
			continue
		}
		if w.unrest(p) == "" {
			w.outlast()
			return
		}
		w.now += 2500
	}
	w.fail("comes to rest", "%s", w.unrest(p))
}

// unrest returns what is left to do; "" for nothing.
func (w *World) unrest(p *process) string {
	s := w.log.truth
	switch {
	case !p.owns() || p.doubt || p.s.Seq != w.log.last():
		return "no owner"
	case s.LiveStream() == nil:
		return "no start"
	case s.Unfinished().Copy != checkpoint.CopyNone:
		return fmt.Sprintf("copy %+v, mapping %+v, %+v", s.Copy, s.Accepting, s.Switched)
	case s.Resync != nil || w.differs():
		return fmt.Sprintf("resync %+v, gaps %+v", s.Resync, s.Gaps)
	case !p.stillLive() || s.LiveStream().Disabled:
		return fmt.Sprintf("the stream %+v", s.LiveStream())
	case s.Marks[checkpoint.SinkBigtable].Seq < s.LastFrame:
		return fmt.Sprintf("mark %d", s.Marks[checkpoint.SinkBigtable].Seq)
	}
	if len(w.letters) > 0 {
		return fmt.Sprintf("dead letters of %d items", len(w.letters))
	}
	for _, r := range w.records {
		if r.seq == 0 && r.shard.stream == s.LiveStream().ARN && !w.excused(r) && w.find(r.shard.id) != nil {
			return fmt.Sprintf("write %d of %s", r.n, r.shard.id)
		}
	}
	return ""
}
