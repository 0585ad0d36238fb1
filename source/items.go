package source

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source/raw"
)

// ItemBatch is the answer to ReadItems.
type ItemBatch struct {
	Items [][]byte // for each key its item in typed JSON; nil: there is no such item

	// Requested and Answered enclose the readings by the service's clock, as in an ItemPage. For
	// several calls they are the earliest and the latest.
	Requested, Answered change.Millis

	At    time.Time // of the first request, by our clock
	Units float64   // read capacity of all calls
}

// ErrUnprocessed means that the service kept returning keys unread: their items are neither there
// nor absent.
var ErrUnprocessed = errors.New("the service left keys unprocessed")

// ReadItems reads items by their keys with strong consistency; for a heartbeat there is none. keys
// are in typed JSON, as change.KeySchema.Canonical or change.Record.Keys give them; a key that
// occurs twice, be it in another notation, is read once. ReadItems makes as many calls as it needs:
// keys that the service leaves unprocessed are asked for again after a backoff, and so are all keys
// of a reply without a Date, because the time of the reading is unknown. It returns all items or an
// error.
//
// All items are in memory at once: 100 keys may be 40 MB.
//
// Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
func (s *Source) ReadItems(ctx context.Context, table string, keys [][]byte) (*ItemBatch, error) {
	return s.readItems(ctx, table, keys, true)
}

// ReadItemsEventually is ReadItems with eventual consistency, at half the cost: an item may be as
// it was before.
func (s *Source) ReadItemsEventually(ctx context.Context, table string, keys [][]byte) (*ItemBatch, error) {
	return s.readItems(ctx, table, keys, false)
}

// readItems reads the items again where a Date of the replies was dropped.
func (s *Source) readItems(ctx context.Context, table string, keys [][]byte, strong bool) (*ItemBatch, error) {
	for n := 1; ; n++ {
		b, err := s.readItemsOnce(ctx, table, keys, strong)
		if !errors.Is(err, ErrDateDropped) || n >= s.opt.Attempts {
			return b, err
		}
		if err := failure.Pause(ctx, retryBackoff(n)); err != nil {
			return nil, s.wrap(ctx, "read items of "+table, err)
		}
	}
}

func (s *Source) readItemsOnce(ctx context.Context, table string, keys [][]byte, strong bool) (*ItemBatch, error) {
	op := "read items of " + table
	b, err := newBatch(keys)
	if err != nil {
		return nil, &Error{Op: op, Class: failure.Fatal, Err: err}
	}
	ours, err := s.Heartbeats(ctx, table)
	if err != nil {
		return nil, err
	}
	result := &ItemBatch{At: time.Now()}
	for stalled := 0; b.Open() > 0; {
		before := b.Open()
		left, err := s.readBatch(ctx, table, b, result, strong)
		switch {
		case err != nil:
			return nil, s.wrap(ctx, op, err)
		case left == 0:
			continue
		case b.Open() < before:
			stalled = 1
		default:
			stalled++
		}
		if stalled > s.opt.Attempts {
			hint := "the table is throttled: raise its read capacity, or read with a smaller budget"
			return nil, &Error{Op: op, Class: failure.Throttled, Hint: hint, Err: ErrUnprocessed}
		}
		if err := failure.Pause(ctx, retryBackoff(stalled)); err != nil {
			return nil, s.wrap(ctx, op, err)
		}
	}
	result.Items, result.Units = b.Items, b.Units
	ours.Blank(result.Items)
	return result, nil
}

// readBatch makes one call for the next open keys, and returns how many of them the service left
// unprocessed.
func (s *Source) readBatch(
	ctx context.Context, table string, b *itemBatchReply, result *ItemBatch, strong bool,
) (left int, err error) {
	asked, paid, counts := b.Next(), b.Units, s.metrics.table(table)
	table = s.Address(table)
	in := &dynamodb.BatchGetItemInput{
		RequestItems: map[string]types.KeysAndAttributes{
			table: {Keys: make([]map[string]types.AttributeValue, len(asked)), ConsistentRead: &strong},
		},
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	for i, key := range asked {
		if in.RequestItems[table].Keys[i], err = itemKey([]byte(key)); err != nil {
			return 0, err
		}
	}
	call, cancel := context.WithTimeout(ctx, s.callDeadline())
	defer cancel()
	body := raw.Body{NeedDate: true} // not freed: the items alias it
	start := time.Now()
	out, err := s.tables.BatchGetItem(call, in, body.ForTables)
	if err == nil {
		left, err = b.Take(asked, body.Bytes())
		counts.countUnits(b.Units - paid)
	}
	s.metrics.callEnded(ctx, "BatchGetItem", start, err)
	if err != nil {
		return 0, err
	}
	requested, answered, err := s.observeDates(out.ResultMetadata, start)
	if err != nil {
		return 0, err
	}
	if result.Requested == 0 || requested < result.Requested {
		result.Requested = requested
	}
	result.Answered = max(result.Answered, answered)
	return left, nil
}
