package source

import (
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/source/memory"
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

	pos   change.Position // after the last page delivered
	clock int64
	done  bool

	emptyUntil int64 // Date of the newest page without records, unix ms

	lastRead         string // sequence number that the iterator follows; pos.After, or a skipped record
	skipTo           int64  // unix ms; older records are skipped, for a server that cannot start at a time
	noTimestampStart bool   // the server refused AT_TIMESTAMP
	iterator         string
	iteratorAt       time.Time
	iteratorsLost    uint8 // iterators that expired or were refused, in a row

	pace        pace
	feed        *memory.Feed
	lease       *memory.Lease // of the read to come; the read hands it to its page
	reserveLate bool          // the last page was empty: the next read takes memory only if there is something to read
	parkedAt    time.Time

	progress progress
}

// NewReader makes a reader and calls nothing. Close it, unless a Pool has it.
func (s *Source) NewReader(start Start) *Reader {
	r := &Reader{
		src: s, m: s.metrics.table(start.Table), start: start,
		pos: start.Position, clock: start.Clock, lastRead: start.Position.After, feed: s.budget.Feed(start.Table),
	}
	r.pace.rate = float32(s.opt.ReadsPerShard)
	r.pace.due = time.Now()
	r.progress.table, r.progress.born, r.progress.first = start.Table, r.pace.due, start.Clock
	if start.Clock <= 0 {
		r.progress.first = shardCreated(start.Feed.Shard)
	}
	s.watch.add(&r.progress)
	return r
}

// Feed names the shard.
func (r *Reader) Feed() change.Feed { return r.start.Feed }

// Close gives back what the reader has reserved. Pages that were delivered stay valid until released.
func (r *Reader) Close() {
	r.endPark()
	r.lease.Release()
	r.src.watch.remove(&r.progress)
}

func (r *Reader) op() string { return "read shard " + r.start.Feed.Shard }

// A reader that was parked longer than this is worth a line in the log.
const longPark = 30 * time.Second

func (r *Reader) endPark() {
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
