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
	"github.com/tailrace-cdc/replicator/source/raw"
)

// iteratorAge is how long an iterator is used. The service lets it expire after 15 minutes; a new
// one is taken well before that, so that a reader that was parked does not begin with an expired
// one. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_GetShardIterator.html
const iteratorAge = 10 * time.Minute

// ensureIterator takes a new iterator where the reader has none or an old one.
func (r *Reader) ensureIterator(ctx context.Context) error {
	switch {
	case r.iterator == "":
		switch {
		case r.denials > 0:
			r.m.deniedIts.Inc() // nothing confirmed that the shard is gone, or at its end
		case r.iteratorsLost == 0:
			r.m.start.Inc()
		}
	case time.Since(r.iteratorAt) >= iteratorAge:
		r.m.age.Inc()
	default:
		return nil
	}
	r.atLast, r.lastHeld, r.lastCut = r.endShown && !r.lastGone && r.lastRead != "", false, false
	in := r.iteratorInput()
	it, err := r.src.shardIterator(ctx, in)
	if err != nil && in.ShardIteratorType == types.ShardIteratorTypeAtTimestamp && refusesTimes(err) {
		r.skipFromTrimHorizon(err)
		it, err = r.src.shardIterator(ctx, r.iteratorInput())
	}
	if err != nil {
		return err
	}
	r.iterator, r.iteratorAt = it, time.Now()
	return nil
}

// checkRetention returns ErrTrimmed where a reply came from a read that began without a sequence
// number (at the trim horizon or at a time) and the retention has passed since the shard was last
// known to be empty up to there. Some records may have been trimmed then, and the service answers
// with what is left. A trimmed sequence number is refused by the service. It is called after the
// reply, because the reply's Date is the service's time. Before it, a machine that was suspended
// still has the old time: the clock that measures the time since the last reply stood still.
//
// Rule 8: what may be lost is reported.
func (r *Reader) checkRetention() error {
	if r.lastRead != "" || r.start.Since == 0 {
		return nil
	}
	if time.Duration(r.src.nowOrLocal()-max(r.start.Since, r.emptyUntil))*time.Millisecond > Retention {
		return fmt.Errorf("start without a sequence number after the retention: %w", ErrTrimmed)
	}
	return nil
}

// iteratorInput returns a request for an iterator at the reader's position. It never uses LATEST:
// that loses what is written before the reply, and a child shard must be read from its beginning.
//
// A time is cut to its second, as the creation of records is: at .4 of a second the service would
// leave out what was written at .9.
func (r *Reader) iteratorInput() *dynamodbstreams.GetShardIteratorInput {
	in := &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &r.start.Feed.Stream, ShardId: &r.start.Feed.Shard, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	}
	switch {
	case r.atLast:
		in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeAtSequenceNumber, aws.String(string(r.lastRead))
	case r.lastRead != "":
		in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, aws.String(string(r.lastRead))
	case r.pos.At > 0 && !r.noTimestampStart:
		in.ShardIteratorType = types.ShardIteratorTypeAtTimestamp
		in.Timestamp = aws.Time(r.pos.At.Time().Truncate(time.Second))
	}
	return in
}

// skipFromTrimHorizon makes the reader begin at the trim horizon and skip what is older than the
// start time, for a server that does not know AT_TIMESTAMP. Records have creation times cut to the
// second, on some servers to the minute, so it skips only up to the minute: a few records too many
// are harmless, a record too few would be lost.
func (r *Reader) skipFromTrimHorizon(err error) {
	r.noTimestampStart = true
	r.skipTo = r.pos.At - r.pos.At%change.Millis(time.Minute.Milliseconds())
	r.src.log.Warn("server does not support AT_TIMESTAMP: reading from the trim horizon, skipping older records",
		zap.String("shard", r.start.Feed.Shard), zap.Error(err))
}

// shardIterator makes one GetShardIterator call, without retries.
func (s *Source) shardIterator(ctx context.Context, in *dynamodbstreams.GetShardIteratorInput) (string, error) {
	start := time.Now()
	out, err := s.streams.GetShardIterator(ctx, in, s.withoutRetry)
	if err == nil && aws.ToString(out.ShardIterator) == "" {
		err = &raw.MalformedError{Err: errors.New("reply has no iterator")}
	}
	s.metrics.callEnded(ctx, "GetShardIterator", start, err)
	if err != nil {
		return "", err
	}
	s.observeCall(out.ResultMetadata, start)
	return *out.ShardIterator, nil
}
