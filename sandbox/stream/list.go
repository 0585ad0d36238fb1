package stream

import (
	"encoding/json"
	"slices"
	"sort"
	"strings"
)

type listStreamsInput struct {
	TableName               string
	Limit                   *int
	ExclusiveStartStreamArn string
}

type streamSummary struct {
	StreamArn, TableName, StreamLabel string
}

type listStreamsOutput struct {
	Streams                []streamSummary
	LastEvaluatedStreamArn string `json:",omitempty"`
}

// limitOf returns how many entries a page may have: 1 to 100, by default 100.
func limitOf(limit *int) (int, *serviceError) {
	switch {
	case limit == nil:
		return 100, nil
	case *limit < 1:
		return 0, constraint(*limit, "limit", "have value greater than or equal to 1")
	case *limit > 100:
		return 0, constraint(*limit, "limit", "have value less than or equal to 100")
	}
	return *limit, nil
}

// listStreams lists streams by ARN, so that the next page can start after the ARN of a stream that
// was removed meanwhile.
func (e *Engine) listStreams(in *listStreamsInput) (*listStreamsOutput, *serviceError) {
	limit, bad := limitOf(in.Limit)
	if bad != nil {
		return nil, bad
	}
	if in.ExclusiveStartStreamArn != "" {
		if bad := checkARN("exclusiveStartStreamArn", in.ExclusiveStartStreamArn); bad != nil {
			return nil, bad
		}
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	out := &listStreamsOutput{Streams: []streamSummary{}}
	all := slices.Clone(e.streams)
	slices.SortFunc(all, func(a, b *stream) int { return strings.Compare(a.arn, b.arn) })
	for _, s := range all {
		if s.arn <= in.ExclusiveStartStreamArn || in.TableName != "" && s.table != in.TableName {
			continue
		}
		if len(out.Streams) == limit {
			out.LastEvaluatedStreamArn = out.Streams[limit-1].StreamArn
			break
		}
		out.Streams = append(out.Streams, streamSummary{s.arn, s.table, s.label})
	}
	return out, nil
}

type describeStreamInput struct {
	StreamArn             string
	Limit                 *int
	ExclusiveStartShardId string
	ShardFilter           *struct{ Type, ShardId string }
}

type sequenceRange struct {
	StartingSequenceNumber string
	EndingSequenceNumber   string `json:",omitempty"`
}

type shardDescription struct {
	ShardId             string
	SequenceNumberRange sequenceRange
	ParentShardId       string `json:",omitempty"`
}

type streamDescription struct {
	StreamArn, StreamLabel, StreamStatus, StreamViewType, TableName string
	CreationRequestDateTime                                         float64
	KeySchema                                                       json.RawMessage `json:",omitempty"`
	Shards                                                          []shardDescription
	LastEvaluatedShardId                                            string `json:",omitempty"`
}

type describeStreamOutput struct{ StreamDescription streamDescription }

// describeStream returns a stream with one page of its shards.
func (e *Engine) describeStream(in *describeStreamInput) (*describeStreamOutput, *serviceError) {
	limit, bad := limitOf(in.Limit)
	if bad != nil {
		return nil, bad
	}
	if bad := checkFilter(in); bad != nil {
		return nil, bad
	}
	if id := in.ExclusiveStartShardId; id != "" {
		if bad := checkShardID("exclusiveStartShardId", id); bad != nil {
			return nil, bad
		}
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	s, bad := e.find(in.StreamArn)
	if bad != nil {
		return nil, bad
	}
	d := streamDescription{
		StreamArn: s.arn, StreamLabel: s.label, StreamStatus: "ENABLED", StreamViewType: s.view, TableName: s.table,
		CreationRequestDateTime: float64(s.created.UnixMilli()) / 1000, KeySchema: s.keySchema,
	}
	if s.off {
		d.StreamStatus = "DISABLED"
	}
	d.Shards, d.LastEvaluatedShardId = e.listShards(s, in, limit)
	return &describeStreamOutput{d}, nil
}

// checkFilter checks the ShardFilter of a request.
func checkFilter(in *describeStreamInput) *serviceError {
	switch {
	case in.ShardFilter == nil:
	case in.ShardFilter.Type != "CHILD_SHARDS":
		return constraint(in.ShardFilter.Type, "shardFilter.type", "satisfy enum value set: [CHILD_SHARDS]")
	case in.ShardFilter.ShardId == "":
		return invalid("ShardId must be provided in ShardFilter for the type CHILD_SHARDS")
	default:
		return checkShardID("shardFilter.shardId", in.ShardFilter.ShardId)
	}
	return nil
}

// listShards returns one page of a stream's listing, as the faults in force distort it.
func (e *Engine) listShards(s *stream, in *describeStreamInput, limit int) (page []shardDescription, last string) {
	now, gone := e.now(), e.horizon().Add(-e.o.Linger)
	parents := make(map[string]bool, len(s.shards))
	for _, sh := range s.shards {
		parents[sh.parent] = true
	}
	x := e.faults
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.listPage > 0 {
		limit = min(limit, x.listPage)
	}
	page = []shardDescription{}
	for _, sh := range s.shards[startAfter(s, in.ExclusiveStartShardId):] {
		if in.ShardFilter != nil && sh.parent != in.ShardFilter.ShardId {
			continue
		}
		listed, open := x.listedAs(sh, parents[sh.id], now)
		if !listed || sh.closed && sh.closedAt.Before(gone) {
			continue
		}
		if len(page) == limit {
			return page, page[limit-1].ShardId
		}
		page = append(page, e.describe(sh, open))
	}
	return page, ""
}

// describe returns a shard as a listing shows it; an open shard has no ending sequence number.
func (e *Engine) describe(sh *shard, open bool) shardDescription {
	d := shardDescription{ShardId: sh.id, ParentShardId: sh.parent}
	d.SequenceNumberRange.StartingSequenceNumber = e.o.Numbers.Text(sh.first)
	if !open {
		d.SequenceNumberRange.EndingSequenceNumber = e.o.Numbers.Text(sh.end)
	}
	return d
}

// startAfter returns the index of the first shard past an id, whether or not a shard with that id
// exists.
func startAfter(s *stream, id string) int {
	return sort.Search(len(s.shards), func(i int) bool { return s.shards[i].id > id })
}
