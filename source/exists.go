package source

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
)

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
