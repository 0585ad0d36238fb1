package source

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source/raw"
)

// Next waits until the shard may be read again and memory is free, and returns the next page. An
// empty page means that the shard has been read up to the page's Date. The caller must release
// every page.
func (r *Reader) Next(ctx context.Context) (*Page, error) {
	for {
		if r.done {
			return nil, io.EOF
		}
		if err := r.await(ctx); err != nil {
			return nil, wrap(ctx, r.op(), err)
		}
		page, err := r.readOnce(ctx)
		<-r.src.slots
		if page != nil || err != nil {
			return page, err
		}
	}
}

// await returns once the shard is due, memory is reserved and a slot is taken, or with the
// context's cause.
func (r *Reader) await(ctx context.Context) error {
	if wait := time.Until(r.pace.Due); wait > 0 {
		if err := failure.Pause(ctx, wait); err != nil {
			return err
		}
	}
	granted := make(chan struct{})
	if !r.reserve(func() { close(granted) }) {
		select {
		case <-granted:
		case <-ctx.Done():
			r.lease.Release()
			return context.Cause(ctx)
		}
	}
	select {
	case r.src.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		r.lease.Release()
		return context.Cause(ctx)
	}
}

// reserve takes the memory of one page and returns true, or parks the reader and returns false;
// granted is called once the memory is reserved.
//
// Rule 9: memory is taken before the read. A shard with an empty last page takes none, because ten
// thousand idle shards with a page for each read would wait for each other. If its reply turns out
// to have records, the memory is taken then, if it is free at once. If not, the reply is dropped,
// and the same records are read again after the reader has waited for memory. Keeping the reply
// until then would occupy a connection that other tables need.
func (r *Reader) reserve(granted func()) bool {
	if r.lease == nil {
		r.lease = r.feed.Lease()
	}
	if r.reserveLate || r.lease.Reserve(granted) {
		return true
	}
	r.parkedAt = time.Now()
	r.m.parked.Inc()
	r.m.reads.parked.Add(1)
	return false
}

// readOnce makes one GetRecords call, after taking a new iterator where it needs one. It returns a
// page, or the error that ends the reader, or neither: then the reader has to be read again when it
// is due.
func (r *Reader) readOnce(ctx context.Context) (*Page, error) {
	r.endPark()
	r.pace.ReadStarted(time.Now())
	page := &Page{lease: r.lease}
	r.lease = nil
	if r.reserveLate {
		page.body.Room = page.lease.TryReserve
	}
	next, err := r.read(ctx, page)
	if err == nil {
		err = r.advance(page, next)
	}
	if err != nil {
		page.Release()
		return nil, r.handleError(ctx, err)
	}
	page.lease.Settle(int64(page.Bytes))
	if page.skipped {
		page.Release()
		return nil, nil
	}
	return page, nil
}

// read makes the calls of one read and finds the records of the reply. next is the iterator that
// follows, as raw JSON.
func (r *Reader) read(ctx context.Context, page *Page) (next []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.src.opt.CallTimeout)
	defer cancel()
	if err := r.ensureIterator(ctx); err != nil {
		return nil, err
	}
	start := time.Now()
	timing, err := r.src.raw.GetRecords(ctx, r.iterator, &page.body)
	page.Asked, page.Answered = start, time.Now()
	if err == nil || errors.Is(err, raw.ErrNoMemory) { // a reply came, whatever becomes of it
		r.m.countCharged()
	}
	if err == nil {
		page.Date, err = r.src.observe(timing)
		// Only the answer of a read that may miss what was trimmed depends on the time: it is asked
		// for again. The Date of others is the earlier of header and estimate.
		if err == nil || r.lastRead != "" || r.start.Since == 0 {
			err = r.checkRetention()
		}
	}
	if err == nil {
		next, err = page.scan()
	}
	if err == nil && len(page.Records) > 0 && !page.body.MayGrow() {
		err = raw.ErrNoMemory
	}
	if errors.Is(err, raw.ErrNoMemory) {
		return nil, raw.ErrNoMemory // the call itself succeeded, so it is not counted as failed
	}
	r.src.metrics.callEnded(ctx, "GetRecords", start, err)
	if err != nil {
		return nil, err
	}
	return next, nil
}

// advance stamps the page's records with their versions and moves the reader's position, clock and
// iterator past the page. The last page of a shard may have records too, so they are processed
// before the missing iterator ends the reader.
func (r *Reader) advance(p *Page, next []byte) error {
	kind := pageKindOf(p)
	last := r.lastRead
	if n := len(p.Records); n > 0 {
		last = change.SequenceNumber(p.Records[n-1].SequenceNumber)
	}
	r.skipLast(p, len(next) > 0)
	r.skip(p)
	clock, err := p.stampRecords(&r.start, r.clock, r.lastRead)
	if err != nil {
		return &Error{Op: r.op(), Class: failure.Fatal, Err: err,
			Hint: "the record is malformed or belongs to another table: check whether the table was re-created with another key"}
	}
	// Until a record is left the position stays: a restart skips older ones again, and reads
	// heartbeats again, since pages without records are in no log.
	kept := len(p.Records) > 0
	p.Feed, p.From, p.ClockFrom = r.start.Feed, r.pos, r.clock
	if kept {
		r.pos, r.skipTo = change.Position{After: last}, 0
	}
	more := last != r.lastRead
	if more {
		r.denials, r.lastGone, r.lastHeld, r.lastCut = 0, false, false, false // whatever was answered before
	}
	r.lastRead, r.clock, r.iteratorsLost = last, clock, 0
	if r.reserveLate = kind == pageEmpty; r.reserveLate && len(next) > 0 { // else it proves nothing
		r.emptyUntil = max(r.emptyUntil, p.Date)
	}
	p.To, p.Clock = r.pos, clock
	r.iterator, r.iteratorAt = unescape(next), time.Now()
	if r.done = r.iterator == ""; r.done {
		r.deny(r.iteratorAt, nothingFollows)
	} else if more || !r.endShown { // behind the end of a shard an iterator is no news
		r.denials, r.endShown, r.answered = 0, false, p.Date
	}
	p.Done = r.done
	r.count(p, kind)
	p.countBytes()
	r.pace.ReadSucceeded(r.iteratorAt, r.src.opt.ReadsPerShard, kind, r.start.Closed, r.idlePoll)
	// Rule 10: a page with only skipped records proves nothing about idleness, because more may
	// follow it.
	if p.skipped = kind != pageEmpty && !kept && len(p.Heartbeats) == 0 && !r.done; !p.skipped &&
		(!r.done || kept || len(p.Heartbeats) > 0) {
		r.progress.note(&p.Page)
	}
	return nil
}

// skip drops the records before the start time, for a server that could not start there.
func (r *Reader) skip(p *Page) {
	if r.skipTo > 0 {
		n := 0
		for n < len(p.Records) && p.Records[n].Created < r.skipTo {
			n++
		}
		r.m.skipped.Add(float64(n))
		kept := copy(p.Records, p.Records[n:])
		p.Records = p.Records[:kept]
	}
}

// A page that holds a record this small, and no other, shows that none follows: the service puts 1
// MB into a page, and a record, with both images of an item, has 800 KB at most.
const smallRecord = 100 << 10

// skipLast drops the last record that was read, where the iterator began at it, and notes whether
// the page holds it alone. That shows that none follows it, unless the page was cut behind it.
func (r *Reader) skipLast(p *Page, iterator bool) {
	if !r.atLast {
		return
	}
	r.atLast = false // the next iterator goes on behind it
	if len(p.Records) == 0 || string(p.Records[0].SequenceNumber) != string(r.lastRead) {
		return
	}
	p.Records = p.Records[:copy(p.Records, p.Records[1:])]
	r.lastCut = len(p.Records) == 0 && iterator && len(p.body.Bytes()) > smallRecord
	r.lastHeld = len(p.Records) == 0 && !r.lastCut
}

// fullBytes is the size of a page, close to the service's 1 MB, from which more records are
// expected at once.
const fullBytes = 900 << 10

// pageKindOf returns whether the page is empty, full, or in between.
func pageKindOf(p *Page) pageKind {
	switch {
	case len(p.Records) == 0:
		return pageEmpty
	case len(p.Records) >= raw.RecordsLimit, len(p.body.Bytes()) >= fullBytes:
		return pageFull
	}
	return pagePart
}

// count adds the page to the table's metrics.
func (r *Reader) count(p *Page, kind pageKind) {
	r.m.reads.all.Add(1)
	r.m.countPage(len(p.Records), len(p.body.Bytes()))
	for i := range p.Records {
		if p.Records[i].TTL {
			r.m.deletedByTTL.Inc()
		}
	}
	switch kind {
	case pageFull:
		r.m.full.Inc()
		r.m.reads.full.Add(1)
	case pagePart:
		r.m.part.Inc()
	case pageEmpty:
		r.m.empty.Inc()
	}
	if n := len(p.Records); n > 0 {
		r.m.newest.Set(float64(p.Records[n-1].Created) / 1000)
	}
}
