package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source/raw"
)

// An iterator lives 15 minutes; we take a new one well before, so that a reader which was parked does not
// come back with a dead one.
// Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_GetShardIterator.html
const iteratorAge = 10 * time.Minute

// position makes sure that the reader has a fresh iterator.
func (r *Reader) position(ctx context.Context) error {
	switch {
	case r.iterator == "":
		if r.lost == 0 {
			r.m.start.Inc()
		}
	case time.Since(r.iteratorAt) >= iteratorAge:
		r.m.age.Inc()
	default:
		return nil
	}
	in := r.request()
	it, err := r.src.shardIterator(ctx, in)
	if err != nil && in.ShardIteratorType == types.ShardIteratorTypeAtTimestamp && Classify(err) == failure.Fatal {
		r.startOver(err)
		it, err = r.src.shardIterator(ctx, r.request())
	}
	if err != nil {
		return err
	}
	r.iterator, r.iteratorAt = it, time.Now()
	return nil
}

// untrimmed refuses to go on without a sequence number, at the trim horizon or at a time, when the retention has passed
// since the shard was last known to be empty up to there: some of it may have been trimmed, and the service would answer
// with what is left. A sequence number it refuses itself when that is trimmed.
//
// Rule 8: what may be lost is said.
func (r *Reader) untrimmed() error {
	if r.last != "" || r.start.Since == 0 {
		return nil
	}
	if time.Duration(r.src.nowOr()-max(r.start.Since, r.emptyAt))*time.Millisecond > Retention {
		return fmt.Errorf("begin where nothing was read yet: %w", ErrTrimmed)
	}
	return nil
}

// request asks for where the reader stands. LATEST is never sent: it loses what is written before it is
// answered, and a child shard must be read from its beginning.
func (r *Reader) request() *dynamodbstreams.GetShardIteratorInput {
	in := &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &r.start.Feed.Stream, ShardId: &r.start.Feed.Shard, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	}
	switch {
	case r.last != "":
		in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, &r.last
	case r.pos.At > 0 && !r.noAt:
		in.ShardIteratorType, in.Timestamp = types.ShardIteratorTypeAtTimestamp, aws.Time(time.UnixMilli(r.pos.At))
	}
	return in
}

// startOver takes the trim horizon for a server that does not know AT_TIMESTAMP, and skips what is older
// than the start. Records carry their creation time cut to the second, on some servers to the minute: a few
// too many are harmless, one too few is lost.
func (r *Reader) startOver(err error) {
	r.noAt = true
	r.skipTo = r.pos.At - r.pos.At%time.Minute.Milliseconds()
	r.src.log.Warn("server cannot start at a time: reading from the trim horizon and skipping", zap.String("shard", r.start.Feed.Shard), zap.Error(err))
}

func (s *Source) shardIterator(ctx context.Context, in *dynamodbstreams.GetShardIteratorInput) (string, error) {
	start := time.Now()
	out, err := s.streams.GetShardIterator(ctx, in, s.onceStreams)
	if err == nil && aws.ToString(out.ShardIterator) == "" {
		err = &raw.MalformedError{Err: errors.New("reply has no iterator")}
	}
	s.metrics.done(ctx, "GetShardIterator", start, err)
	if err != nil {
		return "", err
	}
	s.date(out.ResultMetadata, start)
	return *out.ShardIterator, nil
}

// Retries of a shard are logged when they get many, and then again from time to time.
const (
	worryAfter   = 5
	worryEvery   = 50
	malformedMax = 10 // the same page, broken that often, is broken for good
)

// failed decides what a failed read means: nil to try again when due, or the error that ends the reader.
func (r *Reader) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return wrap(ctx, r.op(), err)
	}
	now := time.Now()
	class := Classify(err)
	switch {
	case errors.Is(err, raw.ErrNoMemory):
		r.peeks = false
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
		r.pace.failed(now, true)
		return nil
	case isValidation(err) && r.iterator != "" && r.lost == 0:
		r.m.invalidIts.Inc() // a server that was restarted does not know its own iterators
		return r.newIterator(now, err)
	case class == failure.Transient:
		return r.again(now, err)
	}
	return wrap(ctx, r.op(), err)
}

// newIterator drops the iterator: the next one is taken after the last record read, or where the reader
// began if there was none. At once, unless new iterators die too.
func (r *Reader) newIterator(now time.Time, err error) error {
	r.iterator = ""
	if r.lost++; r.lost > 3 {
		r.lost = 4
		return r.again(now, err)
	}
	return nil
}

func (r *Reader) again(now time.Time, err error) error {
	r.pace.failed(now, false)
	n := r.pace.fails
	var bad *raw.MalformedError
	if errors.As(err, &bad) && n >= malformedMax {
		return &Error{Op: r.op(), Class: failure.Fatal, Err: err, Hint: "the server sends pages that cannot be read: is something between us and DynamoDB changing them?"}
	}
	if n == worryAfter || n%worryEvery == 0 {
		r.src.log.Warn("cannot read shard, trying again", zap.String("table", r.start.Table), zap.String("shard", r.start.Feed.Shard), zap.Uint16("tries", n), zap.Error(err))
	}
	return nil
}

// gap describes what was lost between the reader's position and what can still be read.
func (r *Reader) gap(ctx context.Context, what, err error) error {
	g := &GapError{Feed: r.start.Feed, Position: r.pos, From: max(r.readThrough(), r.start.Since, r.emptyAt), To: r.src.nowOr(), Whole: errors.Is(what, ErrShardGone), Err: what}
	if errors.Is(what, ErrTrimmed) {
		g.Whole = r.probe(ctx, g)
	}
	r.src.log.Error("records are lost", zap.String("table", r.start.Table), zap.String("shard", g.Feed.Shard), zap.String("after", g.Position.After),
		zap.Time("from", time.UnixMilli(g.From)), zap.Time("to", time.UnixMilli(g.To)), zap.Bool("whole", g.Whole), zap.Error(err))
	return g
}

// probe looks at the trim horizon: the first record there is where the loss ends. It reports whether even
// that is unreadable: on some servers a wholly trimmed shard stays listed for a day.
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
	_, err = r.src.streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: &it, Limit: aws.Int32(1)}, b.ForStreams, r.src.onceStreams)
	if err != nil {
		return lost(err)
	}
	if recs, _, err := change.ScanPage(b.Bytes(), nil); err == nil && len(recs) > 0 {
		g.To = recs[0].Created
	}
	return false
}
