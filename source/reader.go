package source

import (
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/source/heartbeat"
)

// Start is the shard that a Reader reads, and the position where it begins.
type Start struct {
	Feed     change.Feed
	Table    string // for metrics and logs
	Schema   change.KeySchema
	Position change.Position // as stored; the zero Position is the trim horizon
	Clock    change.Version  // as stored; a child starts with its parent's last
	Life     change.Life     // of the pipeline
	Closed   bool            // listed with an end: it is read without pauses, because nothing new can come

	heartbeats *heartbeat.Filter // of the table

	// Since matters while nothing of the shard has been read, so that its position is still the
	// trim horizon or the start time. It is the time up to which the shard did not exist yet or was
	// seen to be empty, whichever is later. The service does not report records that are missing
	// before the trim horizon or a time, so when more than the retention has passed since then, the
	// reader ends with a GapError instead of reading what is left. Zero: read what is left.
	Since change.Millis
	// Read is the time up to which records of the shard were read, as stored; 0: none was.
	Read change.Millis
}

// denial is what the service denies about a shard.
type denial uint8

const (
	nothingFollows denial = iota
	recordsTrimmed
	shardUnknown
)

// Reader reads one shard in order, page by page. It belongs to one goroutine or to one Pool.
// Between reads it holds an iterator and a few hundred bytes: no goroutine, no buffer.
//
// It repeats throttled calls, time-outs, malformed replies and expired iterators for ever. It ends
// with io.EOF after the page that is Done, with a *GapError when the service answers that the
// position cannot be read any more, and with an *Error when an operator has to act. Rule 13: the
// first two rest on one answer, and ReadOn takes them back.
type Reader struct {
	src   *Source
	m     *tableMetrics
	start Start

	pos   change.Position // after the last page delivered
	clock change.Version
	done  bool

	emptyUntil change.Millis // Date of the newest page without records

	lastRead         change.SequenceNumber // the iterator begins after it: pos.After, or a skipped record
	skipTo           change.Millis         // older records are skipped, for a server that cannot start at a time
	noTimestampStart bool                  // the server refused AT_TIMESTAMP
	iterator         string
	iteratorAt       time.Time
	iteratorsLost    uint8 // iterators that expired or were refused, in a row

	denials             uint16 // answers in a row that deny the shard, or that anything follows in it
	deniedSince, denied time.Time
	denial              denial // the newest of them, and since when all were such
	alikeSince          time.Time
	endShown            bool          // a listing has shown the end since the first of them
	atLast              bool          // the iterator begins at the last record that was read
	lastGone            bool          // no iterator can begin there any more
	lastHeld            bool          // the first page of the iterator held that record alone, and none came since
	lastCut             bool          // so it did, and may have been cut behind it
	answered            change.Millis // Date of the newest page behind which more may follow

	pace        Pace
	idlePoll    time.Duration
	feed        *FeedMemory
	lease       *PageLease // of the next read, which passes it on to its page
	reserveLate bool       // the last page was empty: the next read takes memory only if the reply has records
	parkedAt    time.Time

	progress progress
}

// NewReader makes a reader, without any call to the service. The caller must close it, unless it
// adds it to a Pool.
func (s *Source) NewReader(start Start) *Reader {
	start.heartbeats = heartbeat.NewFilter(s.heartbeatKeys(start.Table), start.Schema.Partition)
	r := &Reader{
		src: s, m: s.metrics.table(start.Table), start: start,
		pos: start.Position, clock: start.Clock, lastRead: start.Position.After, feed: s.budget.Feed(start.Table),
	}
	r.pace.Rate, r.idlePoll = float32(s.opt.ReadsPerShard), s.idlePoll(start.Table)
	r.pace.Due = time.Now()
	r.progress.table, r.progress.began, r.progress.initial = start.Table, r.pace.Due, change.Millis(start.Clock)
	if start.Clock <= 0 {
		r.progress.initial = shardCreated(start.Feed.Shard)
	}
	s.fuse.add(&r.progress)
	return r
}

// Feed returns the shard that is read.
func (r *Reader) Feed() change.Feed { return r.start.Feed }

// Close gives back the memory that the reader has reserved. Pages that were delivered stay valid
// until released.
func (r *Reader) Close() {
	r.endPark()
	r.lease.Release()
	r.src.fuse.remove(&r.progress)
}

func (r *Reader) op() string { return "read shard " + r.start.Feed.Shard }

// longPark is how long a reader may wait for memory before that is logged.
const longPark = 30 * time.Second

// endPark counts and logs how long the reader waited for memory, if it did.
func (r *Reader) endPark() {
	if r.parkedAt.IsZero() {
		return
	}
	parked := time.Since(r.parkedAt)
	r.parkedAt = time.Time{}
	r.m.parked.Dec()
	r.m.reads.parked.Add(-1)
	r.m.parks.Observe(parked.Seconds())
	if parked > longPark {
		r.src.log.Warn("shard waited for memory", zap.String("table", r.start.Table),
			zap.String("shard", r.start.Feed.Shard), zap.Duration("parked", parked))
	}
}
