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

// handleError decides what follows a failed read. Nil: the shard is read again when it is due. Otherwise it returns the
// error that ends the reader.
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
	case isTrimmed(err):
		return r.gap(ctx, ErrTrimmed, err)
	case class == failure.Gone:
		return r.gap(ctx, ErrShardGone, err)
	case class == failure.Throttled:
		r.m.throttled.Inc()
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

// newIterator drops the iterator, so that the next read takes one after the last record that was read, or at the
// reader's start. The next read is due at once, unless several new iterators in a row did not work either.
func (r *Reader) newIterator(now time.Time, err error) error {
	r.iterator = ""
	if r.iteratorsLost++; r.iteratorsLost > 3 {
		r.iteratorsLost = 4
		return r.retryLater(now, err)
	}
	return nil
}

// retryLater makes the shard due after a backoff, and warns about many failures in a row. After malformedMax malformed
// replies in a row it returns the error that ends the reader.
func (r *Reader) retryLater(now time.Time, err error) error {
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

// gap returns a GapError about what was lost between the reader's position and what can still be read. reason is
// ErrTrimmed or ErrShardGone, err the error of the service.
func (r *Reader) gap(ctx context.Context, reason, err error) error {
	g := &GapError{
		Feed: r.start.Feed, Position: r.pos, From: max(r.progress.readThrough(), r.start.Since, r.emptyUntil),
		To: r.src.nowOrLocal(), Whole: errors.Is(reason, ErrShardGone), Err: reason,
	}
	if errors.Is(reason, ErrTrimmed) {
		g.Whole = r.probe(ctx, g)
	}
	r.src.log.Error("records are lost", zap.String("table", r.start.Table), zap.String("shard", g.Feed.Shard),
		zap.String("after", string(g.Position.After)), zap.Time("from", g.From.Time()),
		zap.Time("to", g.To.Time()), zap.Bool("whole", g.Whole), zap.Error(err))
	return g
}

// probe reads the first record at the trim horizon, where the loss ends, and stores its creation time in g.To. It
// reports whether not even that record can be read: on some servers a shard that was trimmed whole stays listed for a
// day.
func (r *Reader) probe(ctx context.Context, g *GapError) (whole bool) {
	ctx, cancel := context.WithTimeout(ctx, r.src.opt.CallTimeout)
	defer cancel()
	lost := func(err error) bool { return Classify(err) == failure.Gone }
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
	if recs, _, err := change.ScanPage(b.Bytes(), nil); err == nil && len(recs) > 0 {
		g.To = recs[0].Created
	}
	return false
}
