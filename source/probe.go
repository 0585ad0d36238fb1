package source

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
)

// MayRead makes the calls that reading a stream consists of, once each and on one shard: the error says which of them is
// refused, and why. Nothing is used up by it.
func (s *Source) MayRead(ctx context.Context, arn string) error {
	once := s.withoutRetry
	described, err := s.streams.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &arn}, once)
	if err != nil {
		return s.wrap(ctx, "DescribeStream of "+arn, err)
	}
	if described.StreamDescription == nil || len(described.StreamDescription.Shards) == 0 {
		return nil
	}
	shard := described.StreamDescription.Shards[0].ShardId
	begun, err := s.streams.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &arn, ShardId: shard, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	}, once)
	if err != nil {
		return s.wrap(ctx, "GetShardIterator of "+arn, err)
	}
	_, err = s.streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: begun.ShardIterator, Limit: aws.Int32(1)}, once)
	switch {
	case err == nil, Classify(err) == failure.Gone, Classify(err) == failure.Throttled:
		return nil // it may be read, though not this shard, or not now
	}
	return s.wrap(ctx, "GetRecords of "+arn, err)
}

// Exists asks the service whether it still knows a shard that listings do not show. It is the second half of
// the proof that a parent is gone (Rule 3); a trimmed shard that can still be asked for exists.
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
