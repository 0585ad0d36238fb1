package putback

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	tableschemas "github.com/aws/aws-sdk-go-v2/service/dynamodb/schemas"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source"
)

// Concurrency is how many writes should be in flight: BatchWriteItem has no conditions, so each
// item is a call.
const Concurrency = 16

// attempts is how often one item is sent before the table counts as out of order: about two
// minutes.
const attempts = 20

// Writer writes items into one table. It is safe for concurrent use.
type Writer struct {
	client  *dynamodb.Client
	table   string
	pk      string
	timeout time.Duration
	budget  *source.Budget

	pause func(context.Context, time.Duration) error // failure.Pause; tests replace it
}

// New makes a Writer that consumes at most the given write units a second.
func New(src *source.Source, table *source.TableInfo, units float64) *Writer {
	return &Writer{
		client: src.Tables(), table: src.Address(table.Name), pk: table.Schema.Partition.Name, timeout: src.CallTimeout(),
		budget: source.NewBudget(units), pause: failure.Pause,
	}
}

var (
	// ErrExists means that the table has an item with the key, which was left as it is. It may be
	// the very item of this call, where an earlier attempt was carried out and its reply was lost.
	ErrExists = errors.New("an item with the key exists")
	// ErrRefused means that DynamoDB will never accept the item: it is too large, or its key is not
	// one of the table.
	ErrRefused = errors.New("DynamoDB refuses the item")
)

// Put writes an item in typed JSON if none has its key, and returns the write units that it took.
// It retries what is throttled or lost. Other errors than ErrExists and ErrRefused have a class of
// their own, see source.Classify.
func (w *Writer) Put(ctx context.Context, item []byte) (units float64, err error) {
	size, err := Size(item)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	estimate := Units(size)
	for n := 1; ; n++ {
		if err = w.budget.Take(ctx, estimate); err != nil {
			return units, err
		}
		used, err := w.call(ctx, item)
		switch {
		case err == nil || errors.Is(err, ErrExists):
			w.budget.Settle(estimate, max(used, 1)) // a condition that fails is paid for too
			return units + used, err
		case errors.Is(err, ErrRefused):
			w.budget.Settle(estimate, 0)
			return units, err
		}
		w.budget.Settle(estimate, 0)
		class := source.Classify(err)
		if class != failure.Throttled && class != failure.Transient || n == attempts || ctx.Err() != nil {
			return units, fmt.Errorf("write item to %s: %w", w.table, err)
		}
		if err := w.pause(ctx, failure.Backoff(n)); err != nil {
			return units, err
		}
	}
}

// call sends an item once.
//
// Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_PutItem.html
func (w *Writer) call(ctx context.Context, item []byte) (units float64, err error) {
	call, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	in := &dynamodb.PutItemInput{TableName: &w.table, Item: map[string]types.AttributeValue{}} // body is what is sent
	out, err := w.client.PutItem(call, in, func(o *dynamodb.Options) {
		o.Retryer, o.Protocol = aws.NopRetryer{}, bodyProtocol{tableProtocol, w.body(item)}
	})
	var exists *types.ConditionalCheckFailedException
	var api smithy.APIError
	switch {
	case errors.As(err, &exists):
		return Units(0), ErrExists
	case errors.As(err, &api) && api.ErrorCode() == "ValidationException":
		return 0, fmt.Errorf("%w: %s", ErrRefused, api.ErrorMessage())
	case err != nil:
		return 0, err
	case out.ConsumedCapacity != nil:
		return aws.ToFloat64(out.ConsumedCapacity.CapacityUnits), nil
	}
	return 0, nil
}

// body returns the request with an item as it was archived.
func (w *Writer) body(item []byte) []byte {
	b := make([]byte, 0, len(item)+256)
	b = change.AppendString(append(b, `{"TableName":`...), w.table)
	b = append(append(b, `,"Item":`...), item...)
	b = append(b, `,"ConditionExpression":"attribute_not_exists(#pk)","ExpressionAttributeNames":{"#pk":`...)
	return append(change.AppendString(b, w.pk), `},"ReturnConsumedCapacity":"TOTAL"}`...)
}

var tableProtocol = awsjson.New10(tableschemas.DynamoDB_20120810)

// bodyProtocol replaces the SDK's protocol for one call: it sends a body that is JSON already. The
// SDK signs it, and decodes the reply.
type bodyProtocol struct {
	*awsjson.Protocol
	body []byte
}

// SerializeRequest does what the SDK's protocol does, without its serializer.
func (p bodyProtocol) SerializeRequest(
	_ context.Context, op *smithy.OperationSchema, _ smithy.Serializable, req *smithyhttp.Request,
) error {
	req.Method = http.MethodPost
	if req.URL.Path == "" {
		req.URL.Path = "/"
	}
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op.ID().Name)
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	with, err := req.SetStream(bytes.NewReader(p.body))
	if err != nil {
		return fmt.Errorf("set body: %w", err)
	}
	*req = *with
	return nil
}
