package source

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
)

// MayRead checks the permissions to read a stream: it makes each of the necessary calls once, on one shard. The error
// names the refused call and the reason. The calls have no effect on later reads.
func (s *Source) MayRead(ctx context.Context, arn string) error {
	described, err := s.streams.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &arn}, s.withoutRetry)
	if err != nil {
		return s.wrap(ctx, "DescribeStream of "+arn, err)
	}
	if described.StreamDescription == nil || len(described.StreamDescription.Shards) == 0 {
		return nil
	}
	shard := described.StreamDescription.Shards[0].ShardId
	iterator, err := s.streams.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &arn, ShardId: shard, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	}, s.withoutRetry)
	if err != nil {
		return s.wrap(ctx, "GetShardIterator of "+arn, err)
	}
	in := &dynamodbstreams.GetRecordsInput{ShardIterator: iterator.ShardIterator, Limit: aws.Int32(1)}
	_, err = s.streams.GetRecords(ctx, in, s.withoutRetry)
	switch Classify(err) {
	case failure.None, failure.Gone, failure.Throttled:
		return nil // the stream may be read, though not this shard, or not now
	}
	return s.wrap(ctx, "GetRecords of "+arn, err)
}

// StartsAtTimes reports whether the service can read a shard from a time on. Some servers do not know AT_TIMESTAMP:
// they refuse such an iterator, or give one and then fail to read with it, while they read from the trim horizon. An
// error says nothing about that.
func (s *Source) StartsAtTimes(ctx context.Context, feed change.Feed, at change.Millis) (bool, error) {
	err := s.tryRead(ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &feed.Stream, ShardId: &feed.Shard, ShardIteratorType: types.ShardIteratorTypeAtTimestamp,
		Timestamp: aws.Time(at.Time()),
	})
	switch Classify(err) {
	case failure.None, failure.Gone, failure.Throttled:
		return true, nil
	case failure.Denied, failure.Canceled:
		return false, s.wrap(ctx, "read shard "+feed.Shard, err)
	}
	horizon := s.tryRead(ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &feed.Stream, ShardId: &feed.Shard, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	if horizon != nil {
		return false, s.wrap(ctx, "read shard "+feed.Shard, err)
	}
	return false, nil
}

// tryRead reads one record, once.
func (s *Source) tryRead(ctx context.Context, in *dynamodbstreams.GetShardIteratorInput) error {
	call, cancel := context.WithTimeout(ctx, s.callDeadline())
	defer cancel()
	iterator, err := s.streams.GetShardIterator(call, in, s.withoutRetry)
	if err != nil {
		return err
	}
	records := &dynamodbstreams.GetRecordsInput{ShardIterator: iterator.ShardIterator, Limit: aws.Int32(1)}
	_, err = s.streams.GetRecords(call, records, s.withoutRetry)
	return err
}

// Exists asks the service whether it still knows a shard that listings do not show. It is the second half of the proof
// that a parent is gone (Rule 3). A trimmed shard exists as long as the service knows it.
func (s *Source) Exists(ctx context.Context, feed change.Feed) (bool, error) {
	call, cancel := context.WithTimeout(ctx, s.opt.CallTimeout)
	defer cancel()
	_, err := s.shardIterator(call, &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &feed.Stream, ShardId: &feed.Shard, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	switch {
	case err == nil, isTrimmed(err):
		return true, nil
	case Classify(err) == failure.Gone:
		return false, nil
	}
	return false, s.wrap(ctx, "look for shard "+feed.Shard, err)
}
