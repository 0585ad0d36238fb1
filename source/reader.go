package source

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source/memory"
	"github.com/tailrace-cdc/replicator/source/raw"
)

// Start says what a Reader reads, and from where.
type Start struct {
	Feed     change.Feed
	Table    string // for metrics and logs
	Schema   change.KeySchema
	Position change.Position // as stored; the zero Position is the trim horizon
	Clock    int64           // as stored; a child starts with its parent's last
	Closed   bool            // listed with an end: it is read without pauses, for nothing new can come

	// Since is for a shard of which nothing has been read, so that its position is still the trim horizon or the start
	// time: unix ms up to which it did not exist yet, or was seen to be empty, whichever is later. Neither the trim
	// horizon nor a time ever says that something is missing before it; so when more than the retention has
	// passed since then, the reader ends with a GapError instead of reading what is left. Zero: what is left
	// is what is wanted.
	Since int64
}

// Reader reads one shard in order, page by page. It belongs to one goroutine or to one Pool. Between reads it
// holds an iterator and a few hundred bytes: no goroutine, no buffer.
//
// What can be repeated it repeats by itself for ever: throttles, time-outs, broken replies, expired
// iterators. It ends with io.EOF after the page that is Done, with *GapError when the position cannot be
// read any more, and with *Error when somebody must act.
type Reader struct {
	src   *Source
	m     *tableMetrics
	start Start
	born  time.Time

	pos   change.Position // after the last page delivered
	clock int64
	done  bool

	emptyAt int64 // Date of the newest page without records, unix ms

	last       string // sequence number that the iterator follows; pos.After, or a skipped record
	skipTo     int64  // unix ms; older records are skipped, for a server that cannot start at a time
	noAt       bool   // the server refused AT_TIMESTAMP
	iterator   string
	iteratorAt time.Time
	lost       uint8 // iterators that expired or were refused, in a row

	pace     pace
	feed     *memory.Feed
	lease    *memory.Lease // of the read to come; the read hands it to its page
	peeks    bool          // the last page was empty: the next read takes memory only if there is something to read
	parkedAt time.Time

	through    atomic.Int64 // see readThrough
	empties    int
	emptySince time.Time
}

// NewReader makes a reader and calls nothing. Close it, unless a Pool has it.
func (s *Source) NewReader(start Start) *Reader {
	r := &Reader{
		src: s, m: s.metrics.table(start.Table), start: start, born: time.Now(),
		pos: start.Position, clock: start.Clock, last: start.Position.After, feed: s.budget.Feed(start.Table),
	}
	r.pace.rate = float32(s.opt.ReadsPerShard)
	r.pace.due = r.born
	s.watch.add(r)
	return r
}

// Feed names the shard.
func (r *Reader) Feed() change.Feed { return r.start.Feed }

// Close gives back what the reader has reserved. Pages that were delivered stay valid until released.
func (r *Reader) Close() {
	r.unparked()
	r.lease.Release()
	r.src.watch.remove(r)
}

// Next waits until the shard may be read again and memory is free, and returns the next page; it may be
// empty: an empty page says that the shard was read up to its Date. Release every page.
func (r *Reader) Next(ctx context.Context) (*Page, error) {
	for {
		if r.done {
			return nil, io.EOF
		}
		if err := r.await(ctx); err != nil {
			return nil, wrap(ctx, r.op(), err)
		}
		page, err := r.step(ctx)
		<-r.src.slots
		if page != nil || err != nil {
			return page, err
		}
	}
}

func (r *Reader) op() string { return "read shard " + r.start.Feed.Shard }

// await returns when the shard is due, memory reserved, and a slot taken.
func (r *Reader) await(ctx context.Context) error {
	if wait := time.Until(r.pace.due); wait > 0 {
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

// reserve takes the memory of one page out of the budget, or parks the reader until granted is called.
//
// Rule 9: memory is taken before the read. A shard whose last page was empty takes none: with a page for each read,
// ten thousand idle shards would wait for each other. When its reply turns out to have records, a page is taken if it is
// free at once. If not, the reply is dropped, and the same records are read again when the reader has waited for its
// turn: holding the reply until then would hold a call that other tables need.
func (r *Reader) reserve(granted func()) bool {
	if r.lease == nil {
		r.lease = r.feed.Lease()
	}
	if r.peeks || r.lease.Reserve(granted) {
		return true
	}
	r.parkedAt = time.Now()
	r.m.parked.Inc()
	return false
}

// A reader that was parked longer than this is worth a line in the log.
const longPark = 30 * time.Second

func (r *Reader) unparked() {
	if r.parkedAt.IsZero() {
		return
	}
	parked := time.Since(r.parkedAt)
	r.parkedAt = time.Time{}
	r.m.parked.Dec()
	r.m.parks.Observe(parked.Seconds())
	if parked > longPark {
		r.src.log.Warn("shard waited for memory", zap.String("table", r.start.Table), zap.String("shard", r.start.Feed.Shard), zap.Duration("parked", parked))
	}
}

// step makes one GetRecords call, with a new iterator before it when it needs one. It returns a page, or the
// error that ends the reader, or neither: then it is to be called again when due.
func (r *Reader) step(ctx context.Context) (*Page, error) {
	r.unparked()
	r.pace.begun(time.Now())
	page := &Page{lease: r.lease}
	r.lease = nil
	if r.peeks {
		page.body.Room = page.lease.TryReserve
	}
	next, err := r.read(ctx, page)
	if err == nil {
		err = r.take(page, next)
	}
	if err != nil {
		page.Release()
		return nil, r.failed(ctx, err)
	}
	page.lease.Settle(int64(page.Bytes))
	if page.skipped {
		page.Release()
		return nil, nil
	}
	return page, nil
}

func (r *Reader) read(ctx context.Context, page *Page) (next []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.src.opt.CallTimeout)
	defer cancel()
	if err := r.untrimmed(); err != nil {
		return nil, err
	}
	if err := r.position(ctx); err != nil {
		return nil, err
	}
	start := time.Now()
	timing, err := r.src.raw.GetRecords(ctx, r.iterator, &page.body)
	if err == nil {
		page.Date = r.src.dated(timing)
		next, err = page.scan()
	}
	if err == nil && len(page.Records) > 0 && !page.body.MayGrow() {
		err = raw.ErrNoMemory
	}
	if errors.Is(err, raw.ErrNoMemory) {
		return nil, raw.ErrNoMemory // the call is not to blame
	}
	r.src.metrics.done(ctx, "GetRecords", start, err)
	if err != nil {
		return nil, err
	}
	return next, nil
}

func (s *Source) onceStreams(o *dynamodbstreams.Options) { o.Retryer = s.once }

// take moves the reader past the page. The records count before the missing iterator does: the last page of
// a shard carries both.
func (r *Reader) take(p *Page, next []byte) error {
	kind := kindOf(p)
	last := r.last
	if n := len(p.Records); n > 0 {
		last = string(p.Records[n-1].SequenceNumber)
	}
	kept := r.skip(p)
	clock, err := stampRecords(p.Records, r.start.Schema, r.clock, r.last)
	if err != nil {
		return &Error{Op: r.op(), Class: failure.Fatal, Err: err, Hint: "a record is not what DynamoDB promises, or of another table: was the table re-created with another key?"}
	}
	p.Feed, p.From, p.ClockFrom = r.start.Feed, r.pos, r.clock
	if kept {
		r.pos, r.skipTo = change.Position{After: last}, 0
	}
	r.last, r.clock, r.lost = last, clock, 0
	if r.peeks = kind == empty; r.peeks {
		r.emptyAt = max(r.emptyAt, p.Date)
	}
	p.To, p.Clock = r.pos, clock
	r.iterator, r.iteratorAt = unescape(next), time.Now()
	r.done = r.iterator == ""
	p.Done = r.done
	r.count(p, kind)
	p.weigh()
	r.pace.served(r.iteratorAt, r.src.opt.ReadsPerShard, kind, r.start.Closed, r.src.opt.IdlePoll)
	// Rule 10: a page of which nothing is wanted looks empty, and proves nothing: there may be more behind it.
	if p.skipped = kind != empty && !kept && !r.done; !p.skipped {
		r.readTo(p)
	}
	return nil
}

// skip drops the records before the start time where the server could not start there, and says whether
// records are left. Until one is, the position stays the start time, so that a restart skips again.
func (r *Reader) skip(p *Page) (kept bool) {
	if r.skipTo > 0 {
		n := 0
		for n < len(p.Records) && p.Records[n].Created < r.skipTo {
			n++
		}
		r.m.skipped.Add(float64(n))
		kept := copy(p.Records, p.Records[n:])
		p.Records = p.Records[:kept]
	}
	return len(p.Records) > 0
}

// fullBytes is near enough to the service's 1 MB that there is more.
const fullBytes = 900 << 10

func kindOf(p *Page) pageKind {
	switch {
	case len(p.Records) == 0:
		return empty
	case len(p.Records) >= raw.RecordsLimit, len(p.body.Bytes()) >= fullBytes:
		return full
	}
	return part
}

func (r *Reader) count(p *Page, kind pageKind) {
	r.m.bytes.Add(float64(len(p.body.Bytes())))
	r.m.records.Add(float64(len(p.Records)))
	switch kind {
	case full:
		r.m.full.Inc()
	case part:
		r.m.part.Inc()
	case empty:
		r.m.empty.Inc()
	}
	if n := len(p.Records); n > 0 {
		r.m.newest.Set(float64(p.Records[n-1].Created) / 1000)
	}
}
