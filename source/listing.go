package source

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"golang.org/x/time/rate"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
)

// DynamoDB takes ten DescribeStream calls a second for a stream, over all pages and callers. We
// make fewer. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_DescribeStream.html
const (
	describeRate  = 8
	describeBurst = 2
	listingPage   = 100
)

// ListingCalls returns how many calls a complete listing of so many shards takes.
func ListingCalls(shards int) int { return 1 + shards/listingPage }

// ListingTime returns how long so many calls take at least.
func ListingTime(calls int) time.Duration { return time.Duration(calls) * time.Second / describeRate }

// Shard is a shard as listed.
type Shard struct {
	ID       string
	Parent   string // empty: none
	Starting string // sequence number range; Starting need not be a record that can be read
	Ending   string // empty: open, as far as this listing knows
	Closed   bool   // it has an end, or a child of it is listed, which proves that it is closed
	Orphan   bool   // its parent is not in the listing: trimmed, if the listing is Complete
	Leaf     bool   // none of its children is listed
}

// Created returns the creation time that the shard's name contains, or 0. AWS does not document it,
// so it is for display and estimates only.
func (s Shard) Created() change.Millis { return shardCreated(s.ID) }

func shardCreated(id string) change.Millis {
	rest, ok := strings.CutPrefix(id, "shardId-")
	digits, _, cut := strings.Cut(rest, "-")
	ms, err := strconv.ParseInt(digits, 10, 64)
	if !ok || !cut || err != nil || ms < 1_000_000_000_000 {
		return 0
	}
	return change.Millis(ms)
}

// Listing is the shards of a stream, with contradictions between its pages resolved. An incomplete
// listing is still correct about the shards it has: the caller reads these, and lists again.
type Listing struct {
	Stream   string
	Status   string // ENABLING, ENABLED, DISABLING, DISABLED
	View     string
	Started  change.Millis // not later than the first request
	Complete bool          // every page was seen; only then does absence mean anything
	Shards   []Shard
}

// Disabled reports whether the stream takes no more records: its leaves end when they are drained,
// without children.
func (l Listing) Disabled() bool { return l.Status == string(types.StreamStatusDisabled) }

// Enabled reports whether the stream takes records.
func (l Listing) Enabled() bool { return l.Status == string(types.StreamStatusEnabled) }

// List returns all shards of a stream. It waits between pages where the stream's rate of calls
// demands it. On an error after the first page it returns the shards so far, with Complete false,
// together with the error.
func (s *Source) List(ctx context.Context, arn string) (Listing, error) {
	l := Listing{Stream: arn}
	err := s.describePages(ctx, &l, nil)
	l.Complete = err == nil
	l.repair()
	return l, err
}

// describePages appends the shards of all pages of a listing to l. Each page has its own deadline
// and retries.
func (s *Source) describePages(ctx context.Context, l *Listing, filter *types.ShardFilter) error {
	seen := map[string]bool{}
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &l.Stream, ShardFilter: filter, Limit: aws.Int32(listingPage)}
	for {
		d, err := s.describeStream(ctx, in, l)
		if err != nil {
			return err
		}
		l.Status, l.View = string(d.StreamStatus), string(d.StreamViewType)
		for _, sh := range d.Shards {
			l.Shards = append(l.Shards, shardOf(sh))
		}
		cursor := aws.ToString(d.LastEvaluatedShardId)
		if cursor == "" {
			return nil
		}
		if seen[cursor] {
			return &Error{Op: "list shards of " + l.Stream, Class: failure.Transient, Err: ErrRepeatedCursor}
		}
		seen[cursor] = true
		in.ExclusiveStartShardId = &cursor
	}
}

// describeStream reads one page of the listing l, within the stream's rate of calls.
func (s *Source) describeStream(
	ctx context.Context, in *dynamodbstreams.DescribeStreamInput, l *Listing,
) (*types.StreamDescription, error) {
	if err := s.describeLimiter(l.Stream).Wait(ctx); err != nil {
		return nil, s.wrap(ctx, "list shards of "+l.Stream, err)
	}
	call, cancel := context.WithTimeout(ctx, s.callDeadline())
	defer cancel()
	start := time.Now()
	out, err := s.streams.DescribeStream(call, in)
	s.metrics.callEnded(ctx, "DescribeStream", start, err)
	if err != nil {
		return nil, s.wrap(ctx, "list shards of "+l.Stream, err)
	}
	if date := s.observeCall(out.ResultMetadata, start); l.Started == 0 {
		l.Started = date
	}
	return out.StreamDescription, nil
}

// describeLimiter returns the limiter of DescribeStream calls for a stream, which all its listings
// share.
func (s *Source) describeLimiter(arn string) *rate.Limiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.limiters[arn]
	if b == nil {
		b = rate.NewLimiter(describeRate, describeBurst)
		s.limiters[arn] = b
	}
	return b
}

func shardOf(sh types.Shard) Shard {
	out := Shard{ID: aws.ToString(sh.ShardId), Parent: aws.ToString(sh.ParentShardId)}
	if r := sh.SequenceNumberRange; r != nil {
		out.Starting, out.Ending = aws.ToString(r.StartingSequenceNumber), aws.ToString(r.EndingSequenceNumber)
	}
	return out
}

// repair makes one graph of pages that were read at different moments: it merges a shard that is
// listed twice, closes a parent without an end if a child of it is listed, and marks shards as
// orphans if their parent is not listed.
func (l *Listing) repair() {
	index := make(map[string]int, len(l.Shards))
	unique := l.Shards[:0]
	for _, sh := range l.Shards {
		if i, dup := index[sh.ID]; dup {
			if unique[i].Ending == "" {
				unique[i].Ending = sh.Ending
			}
			continue
		}
		index[sh.ID] = len(unique)
		sh.Closed, sh.Leaf, sh.Orphan = sh.Ending != "", true, false
		unique = append(unique, sh)
	}
	l.Shards = unique
	for i := range l.Shards {
		sh := &l.Shards[i]
		sh.Closed = sh.Closed || sh.Ending != ""
		if sh.Parent == "" {
			continue
		}
		if p, listed := index[sh.Parent]; listed {
			l.Shards[p].Closed, l.Shards[p].Leaf = true, false
		} else {
			sh.Orphan = true
		}
	}
}

const childTries = 10

// Children returns the children of a shard that has ended. Children may become visible seconds
// after the end, so it makes up to ten calls within about six seconds. It returns none, without an
// error, when there are still none or the stream is disabled; the caller has to List the stream
// later.
func (s *Source) Children(ctx context.Context, arn, shard string) ([]Shard, error) {
	for try := range childTries {
		found, disabled, err := s.children(ctx, arn, shard)
		if err != nil || len(found) > 0 || disabled {
			return found, err
		}
		if try == childTries-1 {
			break
		}
		wait := min(50*time.Millisecond<<try, time.Second)
		// The jitter only adds to wait: children that become visible five seconds late are not
		// rare.
		if err := failure.Pause(ctx, jitter(wait+wait/10, 0.1)); err != nil {
			return nil, s.wrap(ctx, "list children of "+shard, err)
		}
	}
	return nil, nil
}

// ChildrenNow requests the children of a shard once.
func (s *Source) ChildrenNow(ctx context.Context, arn, shard string) ([]Shard, error) {
	found, _, err := s.children(ctx, arn, shard)
	return found, err
}

// children makes one request, with the filter CHILD_SHARDS. A server that does not support the
// filter lists all shards or refuses the call, which is then made without it. The children are
// selected by their parent in either case.
func (s *Source) children(ctx context.Context, arn, shard string) (found []Shard, disabled bool, err error) {
	l := Listing{Stream: arn}
	err = s.describePages(ctx, &l, &types.ShardFilter{Type: types.ShardFilterTypeChildShards, ShardId: &shard})
	if err != nil && Classify(err) == failure.Fatal {
		l.Shards = nil
		err = s.describePages(ctx, &l, nil)
	}
	l.repair()
	found = slices.DeleteFunc(l.Shards, func(sh Shard) bool { return sh.Parent != shard })
	for i := range found {
		found[i].Orphan = false
	}
	if len(found) > 0 {
		err = nil
	}
	return found, l.Disabled(), err
}
