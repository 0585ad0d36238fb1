package checkpoint

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
)

const (
	pageAge    = 2 * 60 * 1000 // a page that is older when it is put is read again
	copyMargin = 60_000        // between the request of a page and the version of its items
	readDelay  = 5000          // after a request, for changes that the page has
)

// copyPage is a page of a copy in hand: read, not written.
type copyPage struct {
	id   string
	part int
	mark CopyMark
	read change.Millis
	at   change.Millis // that it shows; of an export long before
	rows map[int]int   // commit by item
}

// resyncing is a resync of the whole table as one process does it.
type resyncing struct {
	order PendingResync
	read  change.Millis
	open  map[int]bool // items that are not settled
	rows  map[int]int  // commit by item, as of the reading
	put   bool         // it was written; the reading is the one that settles
}

// version returns the version at which a page of this life is written.
func version(s *State, at change.Millis) change.Version {
	return max(change.Version(at-copyMargin), s.Floor()+1)
}

// proved says whether Bigtable has every change that was made up to a time (Rule 10).
func (p *process) proved(t change.Millis) bool {
	return min(p.wr.s.AppliedBy(SinkBigtable), p.wr.s.Listed-6000) >= t
}

// copy does the next step of the table's copy.
func (p *process) copy() {
	s := p.wr.s
	if s.CopyPending() {
		c := &Copy{ID: fmt.Sprint("backfill-", s.Life), Why: CopyBackfill, From: s.Backfill, Began: s.Streams[0].Date + 2000}
		if c.From == FromScan {
			c.Parts = 1 + p.w.IntN(4)
		}
		p.append(c, nil)
		return
	}
	c := s.CopyRunning()
	if c == nil && s.LiveStream() != nil && p.w.IntN(8) == 0 {
		p.w.orders++ // a mapping was accepted
		id := fmt.Sprint("mapping-", p.w.orders)
		p.append(&Copy{ID: id, Why: CopyMapping, From: FromScan, Parts: 2, Began: p.w.now}, nil)
		return
	}
	switch {
	case c != nil && c.Closes() && (len(p.copied) == 0 || p.copiedID != c.ID): // and what its workers wrote is marked
		p.append(&CopyMarks{ID: c.ID, Closed: true, Date: p.w.now}, nil)
	case c != nil && c.Parts == 0 && p.w.IntN(2) == 0: // the service is done with it, paused or not
		p.exported(c)
	case c == nil || c.Parts == 0 || c.Paused || c.PausedWhy != "" || p.w.now < c.Began:
		p.page = nil
	case p.page == nil:
		p.readPage(c)
	default:
		p.putPage(c)
	}
}

// exported completes a copy from an export that was asked for: it shows the table as of now.
func (p *process) exported(c *CopyState) {
	whole := c.Copy
	whole.Parts, whole.Version = 1+p.w.IntN(3), version(p.wr.s, p.w.now)
	whole.Unconfirmed = p.w.IntN(3) == 0
	if p.w.IntN(3) == 0 {
		whole.By = ByWorkers
	}
	whole.Export = strconv.FormatInt(int64(p.w.now), 10) // the time that it shows
	p.append(&whole, nil)
}

// readPage reads on in a part of the copy that is not done. An export is refused when a gap is
// younger than it.
func (p *process) readPage(c *CopyState) {
	part := p.w.IntN(c.Parts)
	mark, ok := p.copied[part]
	if !ok || p.copiedID != c.ID {
		mark = c.Marks[part]
	}
	if mark.Done {
		return
	}
	pg := &copyPage{id: c.ID, part: part, read: p.w.now, at: p.w.now, rows: map[int]int{}, mark: mark}
	if c.From == FromExport {
		at, _ := strconv.ParseInt(c.Export, 10, 64)
		pg.at = change.Millis(at)
		for i := range p.wr.s.Gaps {
			if g := &p.wr.s.Gaps[i]; !g.Canceled && g.Doubt == "" && g.Until > pg.at-copyMargin {
				p.append(&CopyMarks{ID: c.ID, Paused: "the export is older than a gap", Date: p.w.now}, nil)
				return
			}
		}
	}
	from, n := -1, 1+p.w.IntN(4)
	if mark.After != "" {
		from, _ = strconv.Atoi(mark.After)
	}
	pg.mark.Done = true
	for item := from + 1; item < items; item++ {
		if item%c.Parts != part {
			continue
		}
		if n == 0 {
			pg.mark.Done = false
			break
		}
		n--
		at := p.w.newest(item)
		if c.From == FromExport {
			at = p.w.asOf(item, pg.at)
		}
		if pg.mark.After = strconv.Itoa(item); !at.gone {
			pg.rows[item] = at.n
			pg.mark.Items++
		}
	}
	p.page = pg
}

// asOf returns the newest commit of an item at a moment.
func (w *world) asOf(item int, at change.Millis) (c worldCommit) {
	for _, h := range w.history[item] {
		if h.at <= at {
			c = h
		}
	}
	return c
}

// putPage writes the page in hand once everything that it shows is applied.
func (p *process) putPage(c *CopyState) {
	switch pg := p.page; {
	case pg.id != c.ID || p.w.now-pg.read > pageAge:
		p.page = nil
	case p.proved(pg.at + readDelay):
		if p.copiedID != c.ID {
			p.copied, p.copiedID = map[int]CopyMark{}, c.ID
		}
		v := version(p.wr.s, pg.at)
		if c.Version > 0 {
			v = c.Version
		}
		for item := range items {
			if n, ok := pg.rows[item]; ok {
				p.w.target.put(p, "the copy", item, n, v)
			}
		}
		p.copied[pg.part], p.page = pg.mark, nil
	}
}

// markCopy stores the marks of what this process has copied.
func (p *process) markCopy() {
	c := p.wr.s.CopyRunning()
	if c == nil || len(p.copied) == 0 || p.copiedID != c.ID {
		return
	}
	m := &CopyMarks{ID: c.ID, Parts: p.copied, Date: p.w.now}
	if p.copied = map[int]CopyMark{}; !p.append(m, nil) {
		p.page = nil
	}
}

// resync does the next step of a pending resync of the whole table: read all items, wait for the
// proof, write, read again, wait, and compare, until no item is left.
func (p *process) resync() {
	s := p.wr.s
	if h := p.healed; h != nil { // it may be stored late: after another order, after an append that was refused
		if p.append(h, nil) {
			p.healed = nil
		}
		return
	}
	if s.Resync == nil {
		p.whole = nil
		return
	}
	if p.whole == nil || p.whole.order.ID != s.Resync.ID {
		p.whole = &resyncing{order: *s.Resync, open: map[int]bool{}}
		for item := range items {
			p.whole.open[item] = true
		}
	}
	switch r := p.whole; {
	case r.rows == nil || p.w.now-r.read > pageAge:
		p.readWhole(r)
	case !p.proved(r.read + readDelay):
	case !r.put:
		for item := range items {
			if n, ok := r.rows[item]; ok {
				p.w.resync(p, item, n, version(s, r.read))
			}
		}
		r.rows, r.put = nil, true
	default:
		for item, n := range r.rows {
			if p.w.equal(item, n) && p.w.newest(item).n == n {
				delete(r.open, item)
			}
		}
		if r.rows, r.put = nil, false; len(r.open) == 0 {
			p.whole = nil
			p.healed = &Healed{ID: r.order.ID, Gaps: r.order.Gaps, Sinks: map[string]string{SinkBigtable: ""}, Date: p.w.now}
		}
	}
}

// readWhole reads the items that are not settled, once the version of the reading is above every
// gap, and no earlier owner may write any more what it read before that.
func (p *process) readWhole(r *resyncing) {
	v := version(p.wr.s, p.w.now)
	above := v > r.order.Above && !p.wr.s.WorkersMayWrite()
	late := r.order.Asked
	if c := p.wr.s.Copy; c != nil {
		late = max(late, c.Closed)
	}
	for i := range p.wr.s.Gaps {
		if g := &p.wr.s.Gaps[i]; r.order.Heals(g.ID()) {
			above = above && v > change.Version(g.Until)
			late = max(late, g.Until)
		}
	}
	if (r.order.Recover || len(r.order.Gaps) > 0) && p.w.now <= late+pageAge+readDelay {
		above = false
	}
	if !above {
		return
	}
	r.read, r.rows = p.w.now, map[int]int{}
	for item := range r.open {
		r.rows[item] = p.w.newest(item).n
	}
}

// catchUp is what a healthy owner does within some seconds: list, read to the end, store, beat,
// mark.
func (p *process) catchUp() {
	p.w.now += 7000 + change.Millis(p.w.Int64N(5000))
	steps := []func(){func() { p.list(true) }}
	for range 3 * len(p.w.shards) {
		steps = append(steps, p.read)
	}
	steps = append(steps, p.frame, p.readAll, p.beat)
	if p.w.IntN(3) > 0 { // or Bigtable lags behind
		steps = append(steps, func() { p.markUpTo(p.wr.s.Seq) })
	}
	for _, do := range steps {
		if p.wr == nil {
			return
		}
		p.w.now += 7
		do()
	}
}

// readAll reads every shard once.
func (p *process) readAll() {
	for _, sh := range p.w.shards {
		if p.wr != nil && p.wr.s.Shards[sh.id] != nil && p.wr.s.Readable(p.wr.s.Shards[sh.id]) {
			p.readShard(p.wr.s.Shards[sh.id])
		}
	}
}

// order is what operators do beside the owner: they steer the copy, order resyncs, accept mappings.
func (p *process) order() {
	wr := &writer{l: p.l, s: p.l.restored(p)}
	s := wr.s
	if s.LiveStream() == nil {
		return
	}
	if f := s.Fence; f != nil {
		if p.refusedByFence(s); f.Behind == 0 && p.w.IntN(2) == 0 {
			wr.must(p, &Control{Certify: &Certify{ID: f.ID}, At: p.w.now})
		}
		return
	}
	n := 16
	if p.l.calm {
		n = 6
	}
	newest := ""
	if s.Copy != nil {
		newest = s.Copy.ID
	}
	switch x := p.w.IntN(n); {
	case x < 2:
		do := []string{CopyPause, CopyDelegate, CopyTakeback}[p.w.IntN(3)]
		wr.must(p, &Control{Copy: &CopyOrder{newest, do}})
	case x < 6:
		wr.must(p, &Control{Copy: &CopyOrder{newest, CopyResume}})
	case x == 6 && p.w.IntN(3) == 0:
		wr.must(p, &Control{Copy: &CopyOrder{newest, CopyCancel}, At: p.w.now})
	case x < 12:
		p.w.orders++
		order := &ResyncOrder{ID: fmt.Sprint("order-", p.w.orders-p.w.orders%2)} // some come twice
		for i := range s.Gaps {
			if p.w.IntN(2) == 0 {
				order.Gaps = append(order.Gaps, s.Gaps[i].ID())
			}
		}
		wr.must(p, &Control{Resync: order, At: p.w.now})
	case x == 12 && p.w.IntN(2) == 0: // a comparison found everything equal: nothing was left out
		wr.must(p, &Control{Verified: &Verified{Gaps: append(s.Doubts(), "unknown")}, At: p.w.now})
	case x == 12:
		wr.must(p, &Control{Resync: &ResyncOrder{ID: "unknown", Gaps: []string{"unknown"}}})
	case s.Identity != nil && !s.WorkersMayWrite():
		p.w.orders++
		to := fmt.Sprint("mapping-", p.w.orders)
		if a := s.Accepting; a != nil && p.w.IntN(2) == 0 {
			to = a.To
		}
		wr.must(p, &Control{Accept: &Accept{From: s.Identity.Mapping, To: to, Done: x > 13}})
	}
}

// recover deletes the log, or finds it lost, and gives the table a new life above every version
// that was given out.
func (w *world) recover(t *testing.T, l *memLog, keep bool) {
	if l.kept || len(l.msgs) > 0 && l.fold(t).Fence != nil {
		return
	}
	l.msgs, l.format = nil, 0
	l.life++
	l.floor = max(w.target.issued, change.Version(w.now+1000)) + change.Version(w.Int64N(60_000))
	l.horizon = keep
}

// finishCopies lets a process bring the table's copy and the pending resync to their ends.
func finishCopies(t *testing.T, w *world, l *memLog, p *process) {
	t.Helper()
	if w.live().disabled {
		w.enable() // nothing proves how far a stream was read that takes no writes
	}
	for range 400 {
		if p.wr == nil {
			p.claim()
		}
		if s := p.wr.s; !s.CopyPending() && s.CopyRunning() == nil && s.Resync == nil && s.OpenGaps() == 0 {
			return
		}
		if c := p.wr.s.CopyRunning(); c != nil && (c.Paused || c.PausedWhy != "") && c.Cancels == 0 {
			what := CopyResume
			if c.PausedWhy != "" && c.From == FromExport {
				what = CopyCancel // a younger export is the operator's to ask for
			}
			(&writer{l: l, s: l.restored(t)}).must(t, &Control{Copy: &CopyOrder{c.ID, what}, At: w.now})
			p.wr = nil
			continue
		}
		if p.wr.s.OpenGaps() > 0 {
			(&writer{l: l, s: l.restored(t)}).must(t, &Control{Resume: true})
			p.wr = nil
			continue
		}
		for _, do := range []func(){p.copy, p.markCopy, p.resync, p.catchUp} {
			if p.wr != nil {
				do()
			}
		}
	}
	t.Fatalf("the copy and the resync never end\n%s", stateJSON(l.fold(t)))
}

// equal checks that a last resync of the whole table leaves every row as its item is, and every gap
// healed or waived.
func equal(t *testing.T, w *world, l *memLog, p *process) {
	t.Helper()
	s := l.fold(t)
	for n := 0; n == 0 || n < 3 && s.DiffersSince() != 0; n++ { // a gap may be found meanwhile
		id := fmt.Sprint("last-", n)
		(&writer{l: l, s: l.restored(t)}).must(t, &Control{Resync: &ResyncOrder{ID: id}})
		p.wr = nil
		finishCopies(t, w, l, p)
		if s = l.fold(t); s.LastResync == nil || s.LastResync.ID != id {
			t.Fatalf("the last resync did not end: %s", stateJSON(s))
		}
	}
	if s.DiffersSince() != 0 {
		t.Fatalf("not healed: %s", stateJSON(s))
	}
	for item := range items {
		if c, row := w.newest(item), w.target.rows[item]; !w.equal(item, c.n) {
			t.Fatalf("item %d is at commit %d, its row at %d, version %d", item, c.n, row.n, row.version)
		}
	}
}
