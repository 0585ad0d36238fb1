package sim

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

var errStale = errors.New("read too long ago")

// operation writes one item that was read from the table itself, in the lane of the item.
type operation struct {
	item    *item
	commit  int    // that was read
	image   []byte // nil: the table has no such item
	version change.Version
	read    *reading
	first   bool
	rows    [][]byte // further ones that may hold the item
	done    func(error)
	retried retried // dead letters of the item
}

// reading is one read of several items, until they are written.
type reading struct {
	requested change.Millis
	wait      protocol.Proof
	ops       []*operation
	open      int // operations that are in the lanes
	begun     bool
	stale     bool   // one of them was too old
	entry     uint64 // for the mutant that looks once: the newest one when everything was read
}

// readItems reads items strongly.
func (p *process) readItems(all []*item, first, withRows bool) *reading {
	date := p.now - p.now%1000
	r := &reading{requested: date, wait: protocol.Proof{Through: date + protocol.AnswerMargin}}
	v := protocol.Version(date, p.s.Floor())
	switch p.mutant {
	case NoMargin:
		v = max(change.Version(p.now), p.s.Floor()+1)
	case NoRoom:
		v = max(v, p.s.Floor()+2)
	}
	p.issue(v)
	p.reachedIf(v > protocol.Version(date, 0), floorRaised)
	for _, x := range all {
		op := &operation{
			item: x, commit: len(x.commits) - 1, image: x.newest().image, version: v, read: r, first: first,
		}
		x.noteRead(op.commit, v)
		if withRows {
			op.rows = p.rowsNaming(x)
		}
		op.done = func(err error) {
			r.open--
			r.stale = r.stale || err != nil
		}
		r.ops = append(r.ops, op)
	}
	return r
}

// old reports whether what was read is too old to be written.
func (p *process) old(r *reading) bool {
	return time.Duration(p.now-r.requested)*time.Millisecond >= protocol.ReadingAge || r.requested <= p.gapsUntil()
}

// fresh reports whether an operation may still be sent.
func (p *process) fresh(op *operation) bool { return !p.old(op.read) }

// gapsUntil returns the end of the latest gap.
func (p *process) gapsUntil() change.Millis { return p.s.GapsUntil() }

// proved reports whether Bigtable has everything that the reading may show.
func (p *process) proved(r *reading) bool {
	if p.mutant == NoWait {
		return true
	}
	m, read := p.sink.acks.Mark(), r.wait.Read()
	missing := p.missing(r, m.Seq)
	p.reachedIf(read && !r.wait.Read(), becameUnread)
	p.reachedIf(missing == protocol.MissingListing, waitsListing)
	p.reachedIf(missing == protocol.MissingApplied, waitsApplied)
	if missing == protocol.MissingNothing {
		p.provedFor(r, m.Seq)
		return true
	}
	return false
}

// missing returns what the proof of a reading lacks, a mark being what Bigtable has.
func (p *process) missing(r *reading, mark uint64) protocol.Missing {
	s := *p.s
	switch p.mutant {
	case NoListing:
		s.Listed = max(s.Listed, r.wait.Through)
	case NoMark:
		mark = math.MaxUint64
	}
	missing := p.ask(&r.wait, &s, mark)
	p.reachedIf(missing == protocol.MissingReader, readerMissing)
	if p.mutant == NeverUnread {
		if r.wait.Read() && r.entry == 0 {
			r.entry = max(s.LastFrame, 1)
		}
		if r.entry > 0 && mark >= r.entry {
			return protocol.MissingNothing
		}
	}
	return missing
}

// submit puts the items of a reading into their lanes.
func (p *process) submit(r *reading) {
	r.begun, r.open = true, len(r.ops)
	for _, op := range r.ops {
		ln := &p.sink.lanes[op.item.hash%uint64(len(p.sink.lanes))]
		ln.waiting = append(ln.waiting, job{op: op})
	}
}

// prepareResync returns the requests that make the rows of an item true.
//
// Rule 6: at the version of the read, never at that of a guard.
func (p *process) prepareResync(op *operation) ([]bigtable.RowWrite, error) {
	if !p.fresh(op) {
		return nil, errStale
	}
	r := &transform.Resync{
		Keys: op.item.keys, Item: op.image, Version: op.version, First: op.first, Rows: op.rows,
	}
	program, write := p.mapping.program, new(transform.Write)
	read, err := program.RowsToRead(&p.dec, r)
	if err != nil {
		return nil, err
	}
	if len(read) > 0 {
		p.dec.Reset()
		name, err := program.ItemOf(&p.dec, op.item.keys, write)
		if err != nil {
			return nil, err
		}
		r.Held = p.target.Held(name, read)
	}
	p.dec.Reset()
	if err := program.Resync(&p.dec, r, write); err != nil {
		return nil, err
	}
	op.retried.equal = len(read) > len(write.Rows)
	p.logf("%s resyncs item %d, commit %d, at %d", p.name, op.item.n, op.commit, op.version)
	return bigtable.Requests(write, families)
}

// copying is the table's copy as one life makes it.
type copying struct {
	id    string
	mark  checkpoint.CopyMark
	moved bool
	r     *reading
	next  checkpoint.CopyMark // once the reading is written
}

// copyPageItems is how many items a page of a copy has.
const copyPageItems = 2

// copyStep returns the next step of the copy; nil when it has to wait, or there is none.
func (p *process) copyStep() func() {
	if p.s.CopyPending() {
		return p.beginCopy
	}
	c := p.s.CopyRunning()
	if c == nil || c.Paused || p.s.Fence != nil {
		p.copy = nil
		return nil
	}
	if p.copy == nil || p.copy.id != c.ID {
		p.copy = &copying{id: c.ID, mark: c.Marks[0]}
	}
	switch x := p.copy; {
	case x.moved:
		return p.markCopy
	case x.mark.Done || p.now < protocol.CopyFrom(c):
		return nil
	case x.r == nil:
		return p.readCopyPage
	case !x.r.begun && p.old(x.r):
		return func() {
			p.reached(partRewound)
			x.r = nil
		}
	case !x.r.begun && p.proved(x.r):
		return func() { p.submit(x.r) }
	case x.r.begun && x.r.open == 0:
		return func() {
			if !p.reachedIf(x.r.stale, partRewound) {
				x.mark, x.moved = x.next, true
			}
			x.r = nil
		}
	}
	return nil
}

func (p *process) beginCopy() {
	p.append(&checkpoint.Copy{
		ID: fmt.Sprint("backfill-", p.s.Life), Why: checkpoint.CopyBackfill, From: p.s.Backfill, Parts: 1,
		Began: p.s.Streams[0].Date + firstPage,
	}, nil)
}

// readCopyPage reads the next page of the copy: a scan shows the items that exist.
func (p *process) readCopyPage() {
	x := p.copy
	from, _ := strconv.Atoi(x.mark.After)
	var found []*item
	next := from
	for next < len(p.items) && len(found) < copyPageItems {
		if y := p.items[next]; y.newest().image != nil {
			found = append(found, y)
		}
		next++
	}
	x.next = checkpoint.CopyMark{
		After: strconv.Itoa(next), Items: x.mark.Items + int64(len(found)), Done: next == len(p.items),
	}
	x.r = p.readItems(found, p.s.Floor() == 0, false)
	p.logf("%s reads a page of the copy up to item %d", p.name, next)
}

func (p *process) markCopy() {
	x := p.copy
	if p.append(&checkpoint.CopyMarks{ID: x.id, Parts: map[int]checkpoint.CopyMark{0: x.mark}, Date: p.now}, nil) {
		x.moved = false
	}
}

// whole is a resync of the whole table as one life makes it: read, write, read again, compare, until no item differs.
type whole struct {
	order checkpoint.PendingResync
	open  map[int]bool // items that are not proven equal
	put   bool         // they were written: the next reading is compared
	r     *reading
}

// wholeStep returns the next step of a pending resync; nil when it has to wait, or there is none.
func (p *process) wholeStep() func() {
	order := p.s.Resync
	if order == nil || p.s.Fence != nil {
		p.whole = nil
		return nil
	}
	if p.whole == nil || p.whole.order.ID != order.ID || len(p.whole.order.Gaps) != len(order.Gaps) {
		p.whole = &whole{order: *order, open: map[int]bool{}}
		for _, x := range p.items {
			p.whole.open[x.n] = true
		}
	}
	switch x := p.whole; {
	case len(x.open) == 0:
		return p.healed
	case x.r == nil && p.now < protocol.ResyncFrom(order, p.gapsUntil()):
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
	p.append(&checkpoint.Healed{
		ID: x.order.ID, Gaps: x.order.Gaps, Sinks: map[string]string{checkpoint.SinkBigtable: ""}, Date: p.now,
	}, nil)
}
