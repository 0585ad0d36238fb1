package sim

import (
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

// delegating are the options of histories in which workers outside the daemon copy the table.
var delegating = Options{items: 4, shards: 2, processes: 2, steps: 300, backfill: true, rest: 8000, workers: true}

// workersMutant is a defence against workers that live on, which is taken away.
type workersMutant int

// The defences.
const (
	allWorkersDefences workersMutant = iota
	// noClosingWait: the owner appends that an order is closed as soon as it has stored that.
	noClosingWait
	// noLease: a worker reads its order until it may write, and never again.
	noLease
	// noBeat: a worker takes the date of the order for the time.
	noBeat
	// otherMarks: the marks of any order count.
	otherMarks
	// noNote: a log that lost the entry which delegated the copy is gone on with.
	noNote
	// noSecondWait: an owner that takes over finds the order closed, and does not wait again.
	noSecondWait
	workersMutants
)

// workersDefences say what each mutant takes away.
var workersDefences = [workersMutants]string{
	noClosingWait: "the wait until an order is closed in the log", noLease: "a worker's lease",
	noBeat: "the owner's beats", otherMarks: "marks are of one order", noNote: "a log that lost its order is refused",
	noSecondWait: "the next owner waits as well",
}

// bulk is what workers and owner share: the cells of the table's row, and the export.
type bulk struct {
	order   *delegation.Order
	beat    *delegation.Beat
	marks   map[string]map[int]*delegation.FileMark // by order
	swaps   []swap                                  // of the order, under way
	exports map[string][]int                        // by URL: the commit of each item
	// versions of the items of exports, by URL.
	versions map[string]change.Version
	workers  []*worker
	late     []bulkWrite // of workers, under way
	noted    uint64      // an entry that the log must hold
	names    int
}

// swap is a replacement of the order in the row.
type swap struct {
	old  int64 // revision; 0: none
	next *delegation.Order
}

// bulkWrite is a request of a worker that has not arrived. Its deadline is that of its call.
type bulkWrite struct {
	request  bigtable.RowWrite
	order    *delegation.Order
	deadline change.Millis
}

// callTime is how long a call of a worker may take, in ms.
const callTime = 10_000

// worker is a process of a distributed engine. The engine starts as many as it likes, lets two of
// them copy one file, and does not end one that it has given up.
type worker struct {
	*World
	name      string
	order     *delegation.Order
	lease     *delegation.Lease
	looked    change.Millis
	file      int   // that it copies; -1: none
	items     []int // of the file, that are left
	copied    int64
	pending   []bigtable.RowWrite // of the item
	frozen    int
	suspended change.Millis // since when its machine is suspended; 0: it is not
	asleep    change.Millis // how long it was suspended before
}

// clocks returns what the clocks of the worker show.
func (x *worker) clocks() protocol.Instant {
	mono := x.now - x.asleep
	if x.suspended > 0 {
		mono = x.suspended - x.asleep
	}
	return protocol.Instant{Wall: x.now.Time(), Mono: time.Duration(mono) * time.Millisecond}
}

// engine lets something happen to the workers: one acts, is started, dies, or is suspended, or a
// request arrives.
func (w *World) engine() {
	b := &w.bulk
	for _, x := range b.workers {
		if x.frozen--; x.frozen <= 0 && x.suspended > 0 {
			x.asleep, x.suspended = x.asleep+w.now-x.suspended, 0
		}
	}
	switch w.weighted(20, 3, 1, 2, 3, 1, 1) {
	case 0:
		for range 1 + w.choose(4) {
			w.workerActs()
		}
	case 1:
		w.launch()
	case 2:
		if n := len(b.workers); n > 0 {
			i := w.choose(n)
			b.workers = slices.Delete(b.workers, i, i+1)
		}
	case 3:
		if n := len(b.workers); n > 0 {
			x := b.workers[w.choose(n)]
			if x.frozen = 3 + 10*w.choose(6); w.one(2) && x.suspended == 0 {
				x.suspended = w.now
			}
		}
	case 4:
		w.arriveBulk()
	case 5:
		w.now += 20_000 + 30_000*change.Millis(w.choose(5))
	case 6:
		if w.profile == 2 && w.one(3) {
			w.now += 8 * 24 * 3600 * 1000
			w.logf("a week later")
		}
	}
}

// launch starts a worker, where the row has an order.
func (w *World) launch() {
	b := &w.bulk
	if !b.order.Open() || len(b.workers) > 4 {
		return
	}
	b.names++
	x := &worker{World: w, name: "worker " + string(rune('0'+b.names%10)), order: b.order, file: -1}
	x.lease = delegation.NewLease(x.order)
	b.workers = append(b.workers, x)
	x.look()
	w.logf("%s begins with order %s", x.name, x.order.ID)
}

// workerActs lets a worker do one step.
func (w *World) workerActs() {
	var able []*worker
	for _, x := range w.bulk.workers {
		if x.frozen <= 0 {
			able = append(able, x)
		}
	}
	if len(able) > 0 {
		able[w.choose(len(able))].act()
		w.now += 7
	}
}

// act is the next step of a worker.
func (x *worker) act() {
	may := x.o.workersWithout != noLease || x.lease.Date(x.clocks()) == 0 // it reads until it may write
	if may && x.now-x.looked >= change.Millis(x.lease.ReadAfter()/time.Millisecond) && !x.one(4) {
		x.look()
	}
	switch v := x.verdict(); {
	case !v.Permits():
		if v == delegation.Closed {
			x.file, x.pending = -1, nil
		}
	case len(x.pending) > 0:
		x.send()
	case len(x.items) > 0:
		x.prepare()
	case x.file >= 0:
		x.mark()
	case v == delegation.Writes:
		x.take()
	}
}

// verdict returns whether the worker may write.
func (x *worker) verdict() delegation.Verdict {
	v := x.lease.Judge(x.clocks())
	switch {
	case x.o.workersWithout == noLease && x.lease.Date(x.clocks()) > 0,
		x.o.workersWithout == noBeat && v == delegation.Silent:
		return delegation.Writes
	}
	return v
}

// look reads the order.
func (x *worker) look() {
	x.looked = x.now
	x.lease.Note(x.clocks(), x.seen())
}

// seen is what the row of the table shows.
func (x *worker) seen() delegation.Seen {
	return delegation.Seen{Order: x.bulk.order, Beat: x.bulk.beat, Life: x.lives}
}

// take begins a file that is not marked. An engine may hand out one that another worker copies.
func (x *worker) take() {
	file := x.choose(x.order.Export.Files)
	for x.calm && file < x.order.Export.Files-1 && x.bulk.marks[x.order.ID][file] != nil {
		file++
	}
	if x.bulk.marks[x.order.ID][file] != nil && !x.one(4) || !x.order.Needs(file) {
		return
	}
	x.file, x.items, x.copied = file, nil, 0
	for n := file; n < len(x.World.items); n += x.order.Export.Files {
		if x.World.items[n].commits[x.bulk.exports[x.order.Export.URL][n]].image != nil {
			x.items = append(x.items, n)
		} else {
			x.World.copied[copiedItem{x.order.Copy, n}] = true // there is nothing to write
		}
	}
}

// prepare makes the requests of the next item.
func (x *worker) prepare() {
	it := x.World.items[x.items[0]]
	r := &transform.Resync{
		Keys: it.keys, Item: it.commits[x.bulk.exports[x.order.Export.URL][it.n]].image, Version: x.order.Version,
		First: x.order.First,
	}
	var write transform.Write
	x.dec.Reset()
	x.must(x.mapping.program.Resync(&x.dec, r, &write))
	reqs, err := bigtable.Requests(&write, families)
	x.must(err)
	x.pending = reqs
	if len(reqs) == 0 {
		x.wrote()
	}
}

// send sends the next request of an item. It may be lost, or its answer, or it arrives late.
func (x *worker) send() {
	date := x.lease.Date(x.clocks())
	if x.o.workersWithout == noBeat && x.bulk.beat != nil {
		date = x.bulk.beat.Date
	}
	const gate = 6 * 24 * 3600 * 1000 // a day before tombstones are collected
	if change.Millis(x.order.Version) < date-gate {
		x.file, x.items, x.pending = -1, nil, nil
		return
	}
	c := x.pending[0]
	switch x.fault(faultWrite, 4) {
	case 1:
		return
	case 2:
		x.applyBulk(bulkWrite{request: c, order: x.order})
		return
	case 3:
		x.bulk.late = append(x.bulk.late, bulkWrite{c, x.order, x.now + callTime})
		return
	}
	x.applyBulk(bulkWrite{request: c, order: x.order})
	if x.pending = x.pending[1:]; len(x.pending) == 0 {
		x.wrote()
	}
}

// wrote ends an item.
func (x *worker) wrote() {
	x.World.copied[copiedItem{x.order.Copy, x.items[0]}] = true
	x.items, x.copied = x.items[1:], x.copied+1
}

// mark stores the mark of a file.
func (x *worker) mark() {
	all := x.bulk.marks[x.order.ID]
	if all == nil {
		all = map[int]*delegation.FileMark{}
		x.bulk.marks[x.order.ID] = all
	}
	all[x.file] = &delegation.FileMark{Order: x.order.ID, Items: x.copied}
	x.logf("%s marks file %d of order %s", x.name, x.file, x.order.ID)
	x.file = -1
}

// arriveBulk lets a request of a worker, or a replacement of the order, arrive.
func (w *World) arriveBulk() {
	b := &w.bulk
	b.late = slices.DeleteFunc(b.late, func(c bulkWrite) bool { return c.deadline < w.now })
	n, m := len(b.late), len(b.swaps)
	if n+m == 0 {
		return
	}
	if i := w.choose(n + m); i < n {
		c := b.late[i]
		b.late = slices.Delete(b.late, i, i+1)
		w.applyBulk(c)
	} else {
		s := b.swaps[i-n]
		b.swaps = slices.Delete(b.swaps, i-n, i-n+1)
		w.swap(s)
	}
}

// applyBulk executes a request of a worker.
//
// Rule 12: none arrives behind a fence, and none of an order that the log has closed.
func (w *World) applyBulk(c bulkWrite) {
	t := w.log.truth
	if t.Fence != nil {
		w.fail("fence", "a worker of order %s brings row %q back", c.order.ID, c.request.Row)
	}
	if !w.o.afterClosed && w.lives == c.order.Life && (t.Copy == nil || w.orderID(t.Copy) != c.order.ID) {
		w.fail("closed is closed", "a worker of order %s writes row %q", c.order.ID, c.request.Row)
	}
	if age := w.now - change.Millis(c.order.Version); age > 7*24*3600*1000 {
		w.fail("tombstones are older than what is written", "a worker writes row %q as of %d h ago", c.request.Row,
			age/3600_000)
	}
	matched := w.apply(&c.request)
	w.reachedIf(matched, workerSkipped)
	w.logf("a worker of order %s writes %q at %d, skipped: %v", c.order.ID, c.request.Row, c.request.Version, matched)
}

// drainWorkers lets workers go on, and an operator cancel a copy that cannot.
func (w *World) drainWorkers() {
	if !w.o.workers {
		return
	}
	for _, x := range w.bulk.workers {
		if x.frozen = 0; x.suspended > 0 {
			x.asleep, x.suspended = x.asleep+w.now-x.suspended, 0
		}
	}
	if o := w.bulk.order; o.Open() && !slices.ContainsFunc(w.bulk.workers, func(x *worker) bool {
		return x.order.ID == o.ID && x.lease.Judge(x.clocks()) != delegation.Closed
	}) {
		w.bulk.workers = w.bulk.workers[:min(len(w.bulk.workers), 4)]
		w.launch()
	}
	for _, x := range w.bulk.workers {
		x.act()
		w.now += 7
	}
	if c := w.log.truth.CopyRunning(); c != nil && c.PausedWhy != "" && c.Delegated == 0 {
		w.orderCopy(checkpoint.CopyCancel)
	}
}

// outlast lets the workers that are left act after everything has come to rest.
func (w *World) outlast() {
	for range 40 {
		for _, x := range w.bulk.workers {
			if x.frozen = 0; x.suspended > 0 {
				x.asleep, x.suspended = x.asleep+w.now-x.suspended, 0
			}
			x.act()
			x.act()
		}
		w.now += 4000
	}
}
