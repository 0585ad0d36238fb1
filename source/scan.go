package source

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source/raw"
)

// Items is one page of a scan: raw items in DynamoDB's typed JSON, for change.Decoder. They alias the page's memory,
// which is used again for the next page.
type Items struct {
	Items [][]byte
	Date  change.Millis // not later than the page's request
	Units float64       // read capacity that the page cost
}

// Scan reads one segment of a table with strong consistency, page by page. An error ends it, after the retries of the
// SDK.
func (s *Source) Scan(ctx context.Context, table string, segment, total int) iter.Seq2[*Items, error] {
	return func(yield func(*Items, error) bool) {
		in := &dynamodb.ScanInput{
			TableName: &table, ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		}
		if total > 1 {
			in.Segment, in.TotalSegments = aws.Int32(int32(segment)), aws.Int32(int32(total))
		}
		for {
			more, ok := s.scanPage(ctx, in, yield)
			if !ok || !more {
				return
			}
		}
	}
}

// sampleSegments is the number of segments that a sample is spread over, because all items of one segment may belong to
// one large item collection.
const sampleSegments = 16

// Sample reads about n items, or all if there are fewer, spread over a table. It reads with eventual consistency, which
// costs half, and may return some more than n.
func (s *Source) Sample(ctx context.Context, table string, n int) iter.Seq2[*Items, error] {
	return func(yield func(*Items, error) bool) {
		var segments []*dynamodb.ScanInput
		for i := range sampleSegments {
			segments = append(segments, &dynamodb.ScanInput{
				TableName: &table, Segment: aws.Int32(int32(i)), TotalSegments: aws.Int32(sampleSegments),
				Limit:                  aws.Int32(int32((n + sampleSegments - 1) / sampleSegments)),
				ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
			})
		}
		for len(segments) > 0 && n > 0 {
			more, ok := s.scanPage(ctx, segments[0], func(page *Items, err error) bool {
				if page != nil {
					n -= len(page.Items)
				}
				return yield(page, err)
			})
			if !ok {
				return
			}
			if more {
				segments = append(segments, segments[0])
			}
			segments = segments[1:]
		}
	}
}

// scanPage reads one page, yields it or its error, and moves in to the next page. more reports whether there is one, ok
// whether the consumer wants it.
func (s *Source) scanPage(
	ctx context.Context, in *dynamodb.ScanInput, yield func(*Items, error) bool,
) (more, ok bool) {
	op := "scan table " + *in.TableName
	call, cancel := context.WithTimeout(ctx, s.callDeadline())
	defer cancel()
	var b raw.Body
	defer b.Free()
	start := time.Now()
	out, err := s.tables.Scan(call, in, b.ForTables)
	s.metrics.callEnded(ctx, "Scan", start, err)
	if err != nil {
		return false, yield(nil, s.wrap(ctx, op, err))
	}
	var reply struct {
		Items            []json.RawMessage
		LastEvaluatedKey json.RawMessage
		ConsumedCapacity struct{ CapacityUnits float64 }
	}
	if err := json.Unmarshal(b.Bytes(), &reply); err != nil {
		return false, yield(nil, &Error{Op: op, Class: failure.Transient, Err: &raw.MalformedError{Err: err}})
	}
	page := &Items{
		Date: s.observeCall(out.ResultMetadata, start), Units: reply.ConsumedCapacity.CapacityUnits,
		Items: make([][]byte, len(reply.Items)),
	}
	for i, item := range reply.Items {
		page.Items[i] = item
	}
	in.ExclusiveStartKey = nil
	if len(reply.LastEvaluatedKey) > 0 && string(reply.LastEvaluatedKey) != "null" {
		if in.ExclusiveStartKey, err = keyOf(reply.LastEvaluatedKey); err != nil {
			return false, yield(nil, &Error{Op: op, Class: failure.Fatal, Err: err})
		}
	}
	return in.ExclusiveStartKey != nil, yield(page, nil)
}

// Item reads one item with strong consistency, and returns nil when there is no such item. key is its primary key in
// DynamoDB's typed JSON, as in change.Record.Keys or a canonical key.
func (s *Source) Item(ctx context.Context, table string, key []byte) ([]byte, error) {
	op := "get item of " + table
	k, err := keyOf(key)
	if err != nil {
		return nil, &Error{Op: op, Class: failure.Fatal, Err: err}
	}
	call, cancel := context.WithTimeout(ctx, s.callDeadline())
	defer cancel()
	var b raw.Body
	defer b.Free()
	start := time.Now()
	in := &dynamodb.GetItemInput{TableName: &table, Key: k, ConsistentRead: aws.Bool(true)}
	_, err = s.tables.GetItem(call, in, b.ForTables)
	s.metrics.callEnded(ctx, "GetItem", start, err)
	if err != nil {
		return nil, s.wrap(ctx, op, err)
	}
	var reply struct{ Item json.RawMessage }
	if err := json.Unmarshal(b.Bytes(), &reply); err != nil {
		return nil, &Error{Op: op, Class: failure.Transient, Err: &raw.MalformedError{Err: err}}
	}
	if string(reply.Item) == "null" {
		return nil, nil
	}
	return reply.Item, nil
}

// keyOf decodes a primary key, which has only strings, numbers and binaries.
func keyOf(raw []byte) (map[string]types.AttributeValue, error) {
	var attrs map[string]map[string]string
	if err := json.Unmarshal(raw, &attrs); err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	key := make(map[string]types.AttributeValue, len(attrs))
	for name, typed := range attrs {
		for kind, text := range typed {
			switch kind {
			case "S":
				key[name] = &types.AttributeValueMemberS{Value: text}
			case "N":
				key[name] = &types.AttributeValueMemberN{Value: text}
			case "B":
				b, err := base64.StdEncoding.DecodeString(text)
				if err != nil {
					return nil, fmt.Errorf("read key: %w", err)
				}
				key[name] = &types.AttributeValueMemberB{Value: b}
			default:
				return nil, fmt.Errorf("read key: attribute %q has type %s, not S, N or B", name, kind)
			}
		}
	}
	return key, nil
}
