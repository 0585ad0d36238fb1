package sim

import (
	"errors"
	"math"
	"slices"
	"strconv"

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
	protocol.Reading
	wait  protocol.Proof
	ops   []*operation
	open  int // operations that are in the lanes
	begun bool
	stale bool   // one of them was too old
	entry uint64 // for the mutant that looks once: the newest one when everything was read
}

// readItems reads items strongly.
func (p *process) readItems(all []*item, first, withRows bool) *reading {
	date := p.now - p.now%1000
	r := &reading{
		Reading: protocol.Reading{Requested: date, At: p.clocks()},
		wait:    protocol.Proof{Through: date + protocol.AnswerMargin},
	}
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
func (p *process) old(r *reading) bool { return !r.Fresh(p.clocks(), p.s.GapsUntil()) }

// fresh reports whether an operation may still be sent.
func (p *process) fresh(op *operation) bool { return !p.old(op.read) }

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
// Rule 6: at the version of the read, never at the version of a guard.
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
	op.retried.put.Equal = max(len(read)-len(write.Rows), 0)
	p.logf("%s resyncs item %d, commit %d, at %d", p.name, op.item.n, op.commit, op.version)
	return bigtable.Requests(write, families)
}

// copying is the table's copy as one life makes it.
type copying struct {
	id    string
	parts *protocol.Parts
	pages []*copyPage
	moved bool                          // a mark has moved
	late  []map[int]checkpoint.CopyMark // marks that were stored
}

// copyPage is a page of a copy in hand. It is noted only some time after it was read.
type copyPage struct {
	protocol.CopyPage
	part    *protocol.Part
	rewinds int
	noted   bool
	r       *reading
}

const (
	copyParts     = 2
	copyPageItems = 1 // on a page
	copyPages     = 4 // in hand
)

// copySteps returns the next steps of the copy; none when it has to wait, or there is none.
func (p *process) copySteps() (acts []func()) {
	if b := p.copyDue(); b != nil {
		return append(acts, func() { p.beginCopy(b) })
	}
	c := p.s.CopyRunning()
	if c != nil && c.Delegated > 0 {
		p.copy = nil
		return p.followSteps(c, p.proved)
	}
	if p.follow = nil; c == nil || c.Paused || c.PausedWhy != "" || p.s.Fence != nil {
		p.copy = nil
		return nil
	}
	if c.From == checkpoint.FromExport && p.outdated(c) {
		return append(acts, func() {
			p.append(&checkpoint.CopyMarks{ID: c.ID, Paused: "outdated", Date: p.now}, nil)
		})
	}
	if p.copy == nil || p.copy.id != c.ID {
		p.copy = &copying{id: c.ID, parts: protocol.NewParts(c)}
	}
	x := p.copy
	if x.moved {
		acts = append(acts, p.markCopy)
	}
	for _, pg := range x.pages {
		if do := p.pageStep(pg); do != nil {
			acts = append(acts, do)
			break
		}
	}
	for _, part := range x.parts.All {
		if part.Readable() && len(x.pages) < copyPages && p.now >= protocol.CopyFrom(c) {
			acts = append(acts, func() { p.readCopyPage(c, part) })
			break
		}
	}
	return acts
}

// copyDue returns the copy that the log needs and does not hold.
func (p *process) copyDue() *checkpoint.Copy {
	if b := protocol.FirstCopy(p.s); b != nil {
		return b
	}
	return protocol.MappingCopy(p.s, p.now)
}

func (p *process) beginCopy(b *checkpoint.Copy) {
	p.reachedIf(b.Why == checkpoint.CopyMapping, mappingCopied)
	b.Parts = min(copyParts, len(p.items))
	if b.From == checkpoint.FromExport {
		p.exportOf(b)
	}
	p.append(b, nil)
}

// switchMapping stores that an accepted mapping is in force.
func (p *process) switchMapping() {
	a := *p.s.Accepting
	a.Done = true
	if p.s.WorkersMayWrite() {
		a.To = a.From // they copy with the mapping before
	}
	p.reachedIf(p.s.CopyRunning() != nil, copyReplaced)
	p.append(&checkpoint.Control{Accept: &a, By: "owner", At: p.now}, nil)
}

// readCopyPage reads the next page of a part of the copy: a scan shows the items that exist.
func (p *process) readCopyPage(c *checkpoint.CopyState, part *protocol.Part) {
	part.Take()
	pg := &copyPage{part: part}
	pg.From, pg.rewinds = part.Position()
	next, _ := strconv.Atoi(pg.From)
	var found []*item
	for next < len(p.items) && len(found) < copyPageItems {
		switch y := p.items[next]; {
		case next%c.Parts != part.Number:
		case c.From == checkpoint.FromExport && y.commits[p.bulk.exports[c.Export][next]].image != nil:
			found = append(found, y)
		case c.From == checkpoint.FromScan && y.newest().image != nil:
			found = append(found, y)
		default:
			p.copied[copiedItem{c.ID, next}] = true // there is nothing to write
		}
		next++
	}
	pg.After, pg.Items, pg.Last = strconv.Itoa(next), len(found), next == len(p.items)
	pg.r = p.readItems(found, c.Why == checkpoint.CopyBackfill && p.s.Floor() == 0, false)
	if c.From == checkpoint.FromExport {
		p.asExported(c, pg.r)
	}
	for _, op := range pg.r.ops {
		done := op.done
		op.done = func(err error) {
			p.copied[copiedItem{c.ID, op.item.n}] = p.copied[copiedItem{c.ID, op.item.n}] || err == nil
			done(err)
		}
	}
	p.copy.pages = append(p.copy.pages, pg)
	p.logf("%s reads a page of part %d of the copy up to item %d", p.name, part.Number, next)
}

// asExported makes a reading one of the export of a copy.
func (p *process) asExported(c *checkpoint.CopyState, r *reading) {
	r.wait = protocol.Proof{Through: exportTime(c) + protocol.AnswerMargin}
	for _, op := range r.ops {
		op.commit, op.version = p.bulk.exports[c.Export][op.item.n], c.Version
		op.image = op.item.commits[op.commit].image
	}
}

// pageStep returns the next step of a page in hand; nil when it has to wait.
func (p *process) pageStep(pg *copyPage) func() {
	x, r := p.copy, pg.r
	drop := func() { x.pages = slices.DeleteFunc(x.pages, func(o *copyPage) bool { return o == pg }) }
	again := func() {
		p.reached(partRewound)
		pg.part.ReadAgain(&pg.CopyPage)
		drop()
	}
	switch {
	case !pg.noted:
		return func() {
			if pg.noted = pg.part.Add(&pg.CopyPage, pg.rewinds); !pg.noted {
				p.reached(pageDropped)
				drop()
			}
			pg.part.GiveBack()
		}
	case !r.begun && len(r.ops) > 0 && p.old(r):
		return again
	case !r.begun && len(r.ops) > 0 && p.proved(r):
		return func() { p.submit(r) }
	case !r.begun && len(r.ops) > 0 || r.open > 0:
		return nil
	case r.stale:
		return again
	}
	return func() {
		x.parts.Complete(pg.part, &pg.CopyPage)
		x.moved = true
		drop()
	}
}

func (p *process) markCopy() {
	x := p.copy
	x.moved = false
	marks := x.parts.TakeMoved()
	if len(marks) > 0 && p.append(&checkpoint.CopyMarks{ID: x.id, Parts: marks, Date: p.now}, nil) {
		x.late = append(x.late, marks)
	}
}

// markLate lets a part of the owner ask for a mark that was stored long ago, as no part should. The
// log refuses it.
func (p *process) markLate() {
	var bodies []any
	if x := p.copy; x != nil {
		for _, marks := range x.late {
			bodies = append(bodies, &checkpoint.CopyMarks{ID: x.id, Parts: marks, Date: p.now})
		}
	}
	if len(bodies) == 0 || p.one(2) {
		for _, m := range p.marked {
			bodies = append(bodies, &checkpoint.Marks{Sinks: map[string]checkpoint.Mark{checkpoint.SinkBigtable: m}})
		}
	}
	if len(bodies) == 0 {
		return
	}
	body := bodies[p.choose(len(bodies))]
	if p.reachedIf(p.s.CheckNext(body) != nil, markRefused) {
		return
	}
	p.append(body, nil)
}
