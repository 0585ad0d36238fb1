package source

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source/raw"
)

const (
	warnAfter    = 5  // failures in a row before the first warning
	warnEvery    = 50 // failures between two further warnings
	malformedMax = 10 // malformed replies in a row that end the reader: the page is malformed for good
)

// handleError decides what follows a failed read. Nil: the shard is read again when it is due.
// Otherwise it returns the error that ends the reader.
func (r *Reader) handleError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return wrap(ctx, r.op(), err)
	}
	now := time.Now()
	class := Classify(err)
	switch {
	case errors.Is(err, raw.ErrNoMemory):
		r.reserveLate = false
		return nil
	case isExpired(err):
		r.m.expired.Inc()
		return r.newIterator(now, err)
	case r.atLast && (isTrimmed(err) || isValidation(err)):
		r.lastGone = true // that says nothing about what is behind the last record
		return r.newIterator(now, err)
	case isTrimmed(err):
		return r.gap(ctx, ErrTrimmed, err)
	case class == failure.Gone:
		return r.gap(ctx, ErrShardGone, err)
	case class == failure.Throttled:
		r.m.throttled.Inc()
		r.countFailed()
		r.src.throttled.Note(r.start.Table, now)
		r.pace.ReadFailed(now, true)
		return nil
	case isValidation(err) && r.iterator != "" && r.iteratorsLost == 0:
		r.m.invalidIts.Inc() // a server that was restarted does not know the iterators it gave out before
		return r.newIterator(now, err)
	case class == failure.Transient:
		return r.retryLater(now, err)
	}
	return wrap(ctx, r.op(), err)
}

// countFailed counts a read that failed and will be repeated.
func (r *Reader) countFailed() {
	r.m.reads.all.Add(1)
	r.m.reads.failed.Add(1)
}

// newIterator drops the iterator, so that the next read takes one after the last record that was
// read, or at the reader's start. The next read is due at once, unless several new iterators in a
// row did not work either.
func (r *Reader) newIterator(now time.Time, err error) error {
	r.iterator = ""
	if r.iteratorsLost++; r.iteratorsLost > 3 {
		r.iteratorsLost = 4
		return r.retryLater(now, err)
	}
	return nil
}

// retryLater makes the shard due after a backoff, and warns about many failures in a row. After
// malformedMax malformed replies in a row it returns the error that ends the reader.
func (r *Reader) retryLater(now time.Time, err error) error {
	r.countFailed()
	r.pace.ReadFailed(now, false)
	n := r.pace.Fails
	var bad *raw.MalformedError
	if errors.As(err, &bad) && n >= malformedMax {
		return &Error{Op: r.op(), Class: failure.Fatal, Err: err,
			Hint: "pages from the server are malformed: check whether a proxy between the replicator and DynamoDB changes them"}
	}
	if n == warnAfter || n%warnEvery == 0 {
		r.src.log.Warn("cannot read shard, trying again", zap.String("table", r.start.Table),
			zap.String("shard", r.start.Feed.Shard), zap.Uint16("tries", n), zap.Error(err))
	}
	return nil
}

// gap returns what the service's answer means for the records behind the reader's position. reason
// is ErrTrimmed or ErrShardGone, err the error of the service.
func (r *Reader) gap(ctx context.Context, reason, err error) error {
	what := shardUnknown
	if errors.Is(reason, ErrTrimmed) {
		what = recordsTrimmed
	}
	r.deny(time.Now(), what)
	g := &GapError{
		Feed: r.start.Feed, Position: r.pos, After: r.lastRead,
		From: max(r.progress.readThrough(), r.start.Since, r.emptyUntil), To: r.src.nowOrLocal(), Err: reason,
	}
	if errors.Is(reason, ErrTrimmed) {
		if g.Horizon = r.probe(ctx); g.Horizon.Created > 0 {
			g.To = g.Horizon.Created
		}
	}
	if r.denials > 1 && r.denials%warnEvery != 0 {
		return g
	}
	r.src.log.Warn("the service denies a shard: looking for confirmation",
		zap.String("table", r.start.Table), zap.String("shard", g.Feed.Shard),
		zap.String("after", string(g.Position.After)), zap.Time("from", g.From.Time()),
		zap.Time("to", g.To.Time()), zap.Uint16("answers", r.denials), zap.Error(err))
	return g
}

// probe reads the first record at the trim horizon, where a loss ends. On some servers a shard that
// was trimmed whole stays listed for a day, and not even that record can be read.
func (r *Reader) probe(ctx context.Context) (h Horizon) {
	ctx, cancel := context.WithTimeout(ctx, r.src.opt.CallTimeout)
	defer cancel()
	lost := func(err error) Horizon { return Horizon{Nothing: Classify(err) == failure.Gone} }
	it, err := r.src.shardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &r.start.Feed.Stream, ShardId: &r.start.Feed.Shard, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		return lost(err)
	}
	var b raw.Body
	defer b.Free()
	in := &dynamodbstreams.GetRecordsInput{ShardIterator: &it, Limit: aws.Int32(1)}
	_, err = r.src.streams.GetRecords(ctx, in, b.ForStreams, r.src.withoutRetry)
	if err != nil {
		return lost(err)
	}
	r.m.countCharged()
	if recs, _, err := change.ScanPage(b.Bytes(), nil); err == nil && len(recs) > 0 {
		h.First, h.Created = change.SequenceNumber(string(recs[0].SequenceNumber)), recs[0].Created
	}
	return h
}

// deny notes a negative answer about the shard.
func (r *Reader) deny(now time.Time, what denial) {
	if r.denials == 0 {
		r.deniedSince = now
	}
	if r.denials == 0 || r.denial != what {
		r.denial, r.alikeSince = what, now
	}
	r.denied, r.denials = now, min(r.denials+1, 1000)
}

// Denied is the state of a reader after an answer that has ended it.
type Denied struct {
	// Since and Answered are the times of the first and the newest answer that deny the shard, with
	// no page in between. Alike is the time of the first answer that denies the same as the newest.
	Since, Alike, Answered time.Time

	After    change.SequenceNumber // the last record that was read, also one that was skipped; empty: none
	EndShown bool                  // the newest answer was asked for after ReadAgain
	LastHeld bool                  // the newest iterator began at that record, which was shown, and that none follows
	LastNone bool                  // there is none, no iterator can begin at it, or the page was cut behind it
}

// Denied returns the state of the reader after an answer that has ended it.
func (r *Reader) Denied() Denied {
	return Denied{
		Since: r.deniedSince, Alike: r.alikeSince, Answered: r.denied, After: r.lastRead,
		EndShown: r.endShown, LastHeld: r.lastHeld, LastNone: r.lastRead == "" || r.lastGone || r.lastCut,
	}
}

// Read returns the time of the last reply that proves how far the shard is read; 0: it was never
// read.
func (r *Reader) Read() change.Millis { return max(r.start.Read, r.answered) }

// ReadOn makes a reader that a GapError or a page that is Done has ended read on behind its last
// page, after a backoff: the end is not confirmed. The caller adds it to a Pool again.
func (r *Reader) ReadOn() {
	r.readAgain()
	if r.endShown && (r.denials == warnAfter || r.denials%warnEvery == 0) {
		r.src.log.Warn("a shard has ended, and the service does not show that its last record is the last: reading it again",
			zap.String("table", r.start.Table), zap.String("shard", r.start.Feed.Shard), zap.String("after", string(r.lastRead)),
			zap.Uint16("answers", r.denials))
	}
	r.pace.Fails = r.denials - min(1, r.denials)
	r.pace.ReadFailed(time.Now(), false)
}

// ReadAgain is ReadOn without the backoff: a listing has shown the end of the shard, and the next
// reply shows whether it is reached. From here on iterators begin at the last record that was read.
func (r *Reader) ReadAgain() {
	r.readAgain()
	r.endShown = true
}

func (r *Reader) readAgain() {
	r.done, r.iterator = false, ""
	r.src.fuse.add(&r.progress)
}

// End returns the page that ends the shard behind the last page that was read: its end is
// confirmed.
func (r *Reader) End() *Page {
	p := &Page{}
	p.Feed, p.From, p.To, p.ClockFrom, p.Clock = r.start.Feed, r.pos, r.pos, r.clock, r.clock
	p.Date, p.Done = r.src.nowOrLocal(), true
	return p
}
