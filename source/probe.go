package source

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source/raw"
)

// MayRead checks the permissions to read a stream: it makes each of the calls that reading needs,
// on shards that a daemon would read next. The error names the refused call and the reason. The
// calls have no effect on later reads.
//
// A listing may show shards that are gone, and the oldest are the first to go. So a shard that
// cannot be read any more shows nothing about the stream, unless none of those that take records
// can be read.
func (s *Source) MayRead(ctx context.Context, arn string) error {
	l, err := s.List(ctx, arn)
	if err != nil || len(l.Shards) == 0 {
		return err
	}
	gone := error(nil)
	for _, sh := range probed(l.Shards) {
		err := s.tryRead(ctx, arn, &dynamodbstreams.GetShardIteratorInput{
			StreamArn: &arn, ShardId: aws.String(sh.ID), ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
		})
		switch Classify(err) {
		case failure.None, failure.Throttled:
			return nil // the stream may be read, though perhaps not now
		case failure.Gone:
			if gone == nil && !sh.Closed && !isTrimmed(err) {
				gone = err
			}
			continue
		}
		return err
	}
	return gone
}

// probes is how many shards are asked before "not found" is taken for an answer about their stream.
const probes = 3

// probed returns the shards of a listing that a question about their stream is asked with: the
// newest without an end first, because those with one may be gone at any moment.
func probed(shards []Shard) []Shard {
	newest := slices.Clone(shards)
	slices.SortStableFunc(newest, func(a, b Shard) int {
		switch {
		case a.Closed == b.Closed:
			return strings.Compare(b.ID, a.ID)
		case b.Closed:
			return -1
		}
		return 1
	})
	return newest[:min(len(newest), probes)]
}

// StartsAtTimes reports whether the service can read the shards of a listing from a time on. Some
// servers do not know AT_TIMESTAMP: they refuse such an iterator, or give one and then refuse to
// read with it, while they read from the trim horizon. An error means that it is unknown.
//
// Rule 13: only a refusal of the request itself shows that the server does not know times, and it
// is confirmed: the shard can be read from its trim horizon, and a second request with a time is
// refused as the first one was.
func (s *Source) StartsAtTimes(ctx context.Context, l Listing, at change.Millis) (bool, error) {
	var err error
	for _, sh := range probed(l.Shards) {
		timed := &dynamodbstreams.GetShardIteratorInput{
			StreamArn: &l.Stream, ShardId: aws.String(sh.ID), ShardIteratorType: types.ShardIteratorTypeAtTimestamp,
			Timestamp: aws.Time(at.Time()),
		}
		err = s.tryRead(ctx, l.Stream, timed)
		switch {
		case err == nil, isTrimmed(err): // the time was understood
			return true, nil
		case Classify(err) == failure.Gone:
			continue
		case !refusesTimes(err):
			return false, err
		}
		horizon := *timed
		horizon.ShardIteratorType, horizon.Timestamp = types.ShardIteratorTypeTrimHorizon, nil
		if err := s.tryRead(ctx, l.Stream, &horizon); err != nil {
			return false, err
		}
		if err = s.tryRead(ctx, l.Stream, timed); refusesTimes(err) {
			return false, nil
		}
		return err == nil, err
	}
	return false, err
}

// refusesTimes reports whether an error shows that a server does not know AT_TIMESTAMP. An outage,
// a damaged reply or an iterator that has expired do not.
func refusesTimes(err error) bool {
	return isValidation(err) || isCode(err, "UnknownOperationException")
}

// tryRead reads one record at a new iterator. It retries what is throttled or fails on the way, as
// the SDK does.
func (s *Source) tryRead(ctx context.Context, arn string, in *dynamodbstreams.GetShardIteratorInput) error {
	for n := 1; ; n++ {
		op, err := s.tryOnce(ctx, in)
		class := Classify(err)
		if class != failure.Transient && class != failure.Throttled || n >= s.opt.Attempts {
			if err != nil {
				err = s.wrap(ctx, op+" of "+arn, err)
			}
			return err
		}
		if err := failure.Pause(ctx, retryBackoff(n)); err != nil {
			return s.wrap(ctx, op+" of "+arn, err)
		}
	}
}

// tryOnce makes the two calls of tryRead, and returns the name of the one that failed.
func (s *Source) tryOnce(ctx context.Context, in *dynamodbstreams.GetShardIteratorInput) (op string, err error) {
	call, cancel := context.WithTimeout(ctx, s.opt.CallTimeout)
	defer cancel()
	it, err := s.shardIterator(call, in)
	if err != nil {
		return "GetShardIterator", err
	}
	records := &dynamodbstreams.GetRecordsInput{ShardIterator: &it, Limit: aws.Int32(1)}
	out, err := s.streams.GetRecords(call, records, s.withoutRetry)
	if err == nil && out.Records == nil {
		err = &raw.MalformedError{Err: errors.New("the reply has no Records")}
	}
	return "GetRecords", err
}

// Exists checks with the service whether a shard that a listing does not show still exists. It is
// the second half of the proof that a parent is gone (Rule 3). A trimmed shard exists as long as
// the service recognizes it. listed is a shard that the listing shows.
//
// Rule 13: one answer that there is no such shard proves nothing. It counts if the service finds
// the listed shard afterwards, and then gives the same answer again.
func (s *Source) Exists(ctx context.Context, feed change.Feed, listed string) (bool, error) {
	if known, err := s.knows(ctx, feed); err != nil || known {
		return known, err
	}
	if known, err := s.knows(ctx, change.Feed{Stream: feed.Stream, Shard: listed}); err != nil || !known {
		return true, err
	}
	return s.knows(ctx, feed)
}

// knows checks once whether the service recognizes a shard, trimmed or not.
func (s *Source) knows(ctx context.Context, feed change.Feed) (bool, error) {
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
