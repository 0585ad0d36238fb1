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

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source/raw"
)

// An iterator lives 15 minutes; we take a new one well before, so that a reader which was parked does not
// come back with a dead one.
// Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_GetShardIterator.html
const iteratorAge = 10 * time.Minute

// position makes sure that the reader has a fresh iterator.
func (r *Reader) ensureIterator(ctx context.Context) error {
	switch {
	case r.iterator == "":
		if r.iteratorsLost == 0 {
			r.m.start.Inc()
		}
	case time.Since(r.iteratorAt) >= iteratorAge:
		r.m.age.Inc()
	default:
		return nil
	}
	in := r.iteratorInput()
	it, err := r.src.shardIterator(ctx, in)
	if err != nil && in.ShardIteratorType == types.ShardIteratorTypeAtTimestamp && Classify(err) == failure.Fatal {
		r.skipFromTrimHorizon(err)
		it, err = r.src.shardIterator(ctx, r.iteratorInput())
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
func (r *Reader) checkRetention() error {
	if r.lastRead != "" || r.start.Since == 0 {
		return nil
	}
	if time.Duration(r.src.nowOrLocal()-max(r.start.Since, r.emptyUntil))*time.Millisecond > Retention {
		return fmt.Errorf("begin where nothing was read yet: %w", ErrTrimmed)
	}
	return nil
}

// request asks for where the reader stands. LATEST is never sent: it loses what is written before it is
// answered, and a child shard must be read from its beginning.
func (r *Reader) iteratorInput() *dynamodbstreams.GetShardIteratorInput {
	in := &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &r.start.Feed.Stream, ShardId: &r.start.Feed.Shard, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	}
	switch {
	case r.lastRead != "":
		in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, &r.lastRead
	case r.pos.At > 0 && !r.noTimestampStart:
		in.ShardIteratorType, in.Timestamp = types.ShardIteratorTypeAtTimestamp, aws.Time(time.UnixMilli(r.pos.At))
	}
	return in
}

// startOver takes the trim horizon for a server that does not know AT_TIMESTAMP, and skips what is older
// than the start. Records carry their creation time cut to the second, on some servers to the minute: a few
// too many are harmless, one too few is lost.
func (r *Reader) skipFromTrimHorizon(err error) {
	r.noTimestampStart = true
	r.skipTo = r.pos.At - r.pos.At%time.Minute.Milliseconds()
	r.src.log.Warn("server cannot start at a time: reading from the trim horizon and skipping", zap.String("shard", r.start.Feed.Shard), zap.Error(err))
}

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
