// byhand is what one would write with the SDKs of AWS and Google alone: no log, no checkpoint, no
// mapping, no retries of its own. Benchmarks compare the daemon with it.
//
// With -copy it reads the table by a parallel scan, else its stream, a goroutine for each shard.
// With -bulk it writes with MutateRows, 500 rows a call, which a late call may overwrite with older
// values. Else each record is a conditional write, whose predicate finds a newer version. It reports
// on standard output that it has written all, and ends when its standard input does.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"log"
	"os"
	"sync/atomic"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	tabletypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"golang.org/x/sync/errgroup"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	connections = 20
	segments    = 16  // of a scan
	rowsACall   = 500 // of MutateRows
	callsAPage  = 64  // conditional writes of a scanned page side by side; their order does not matter
)

// byHand carries one table.
type byHand struct {
	endpoint, source string
	bulk             bool
	target           *bigtable.Table
	written          atomic.Int64
	expected         int64
}

func main() {
	var h byHand
	flag.StringVar(&h.endpoint, "endpoint", "", "URL of DynamoDB")
	flag.StringVar(&h.source, "source", "", "table of DynamoDB")
	flag.BoolVar(&h.bulk, "bulk", false, "write with MutateRows")
	flag.Int64Var(&h.expected, "expect", 0, "records or items")
	service := flag.String("bigtable", "", "host:port of Bigtable")
	target := flag.String("target", "", "table of Bigtable")
	scan := flag.Bool("copy", false, "read the table, not its stream")
	flag.Parse()
	ctx := context.Background()
	// An emulator that BIGTABLE_EMULATOR_HOST names would get one connection, which carries 100 calls.
	client, err := bigtable.NewClientWithConfig(ctx, "local", "local",
		bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}},
		option.WithEndpoint(*service), option.WithoutAuthentication(), option.WithGRPCConnectionPool(connections),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		log.Fatal(err)
	}
	h.target = client.Open(*target)
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion("us-east-1"), config.WithBaseEndpoint(h.endpoint))
	if err != nil {
		log.Fatal(err)
	}
	if *scan {
		err = h.copy(ctx, dynamodb.NewFromConfig(cfg))
	} else {
		err = h.tail(ctx, dynamodbstreams.NewFromConfig(cfg))
	}
	if err != nil {
		log.Fatal(err)
	}
	_, _ = os.Stdout.WriteString("written\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func (h *byHand) tail(ctx context.Context, streams *dynamodbstreams.Client) error {
	list, err := streams.ListStreams(ctx, &dynamodbstreams.ListStreamsInput{TableName: &h.source})
	if err != nil {
		return err
	}
	stream := list.Streams[0].StreamArn
	g, ctx := errgroup.WithContext(ctx)
	for last := (*string)(nil); ; {
		d, err := streams.DescribeStream(ctx,
			&dynamodbstreams.DescribeStreamInput{StreamArn: stream, ExclusiveStartShardId: last})
		if err != nil {
			return err
		}
		for _, shard := range d.StreamDescription.Shards {
			g.Go(func() error { return h.tailShard(ctx, streams, stream, shard.ShardId) })
		}
		if last = d.StreamDescription.LastEvaluatedShardId; last == nil {
			return g.Wait()
		}
	}
}

func (h *byHand) tailShard(ctx context.Context, streams *dynamodbstreams.Client, stream, shard *string) error {
	begin, err := streams.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn: stream, ShardId: shard, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		return err
	}
	for next := begin.ShardIterator; next != nil && h.written.Load() < h.expected; {
		page, err := streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: next, Limit: aws.Int32(1000)})
		if err != nil {
			return err
		}
		rows := make([]row, len(page.Records))
		for i, r := range page.Records {
			rows[i] = newRow(r.Dynamodb.Keys, r.Dynamodb.NewImage, *r.Dynamodb.ApproximateCreationDateTime)
		}
		if err := h.write(ctx, rows, 1); err != nil { // in order
			return err
		}
		if next = page.NextShardIterator; len(rows) == 0 {
			<-time.After(200 * time.Millisecond)
		}
	}
	return nil
}

func (h *byHand) copy(ctx context.Context, tables *dynamodb.Client) error {
	g, ctx := errgroup.WithContext(ctx)
	at := time.Now()
	for i := range int32(segments) {
		g.Go(func() error {
			pages := dynamodb.NewScanPaginator(tables,
				&dynamodb.ScanInput{TableName: &h.source, Segment: &i, TotalSegments: aws.Int32(segments)})
			for pages.HasMorePages() {
				page, err := pages.NextPage(ctx)
				if err != nil {
					return err
				}
				rows := make([]row, len(page.Items))
				for i, item := range page.Items {
					rows[i] = newRow(item, item, at)
				}
				if err := h.write(ctx, rows, callsAPage); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// row is what becomes of a record or an item.
type row struct {
	key      string
	version  bigtable.Timestamp
	mutation *bigtable.Mutation
}

// newRow takes values of either SDK, whose types differ in their packages alone.
func newRow[V any](keys, image map[string]V, at time.Time) row {
	r := row{
		key: string(text(keys["pk"])) + "#" + string(text(keys["sk"])), version: bigtable.Time(at),
		mutation: bigtable.NewMutation(),
	}
	r.mutation.DeleteRow()
	for name, v := range image {
		if name != "pk" && name != "sk" {
			r.mutation.Set("d", name, r.version, text(v))
		}
	}
	return r
}

func (h *byHand) write(ctx context.Context, rows []row, together int) error {
	defer h.written.Add(int64(len(rows)))
	if !h.bulk {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(together)
		for _, r := range rows {
			g.Go(func() error {
				r.mutation.Set("v", "i", r.version, nil)
				newer := bigtable.ChainFilters(bigtable.ColumnRangeFilter("v", "i", "i\x00"),
					bigtable.TimestampRangeFilterMicros(r.version+1, 0))
				return h.target.Apply(ctx, r.key, bigtable.NewCondMutation(newer, nil, r.mutation))
			})
		}
		return g.Wait()
	}
	for len(rows) > 0 {
		n := min(len(rows), rowsACall)
		keys, mutations := make([]string, n), make([]*bigtable.Mutation, n)
		for i, r := range rows[:n] {
			keys[i], mutations[i] = r.key, r.mutation
		}
		failed, err := h.target.ApplyBulk(ctx, keys, mutations)
		if err == nil && len(failed) > 0 {
			err = failed[0]
		}
		if err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// text is a value as a cell has it: numbers and strings as they are, the rest as JSON.
func text(v any) []byte {
	switch v := plain(v).(type) {
	case string:
		return []byte(v)
	case json.Number:
		return []byte(v)
	case []byte:
		return v
	default:
		b, _ := json.Marshal(v)
		return b
	}
}

func plain(v any) any {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return json.Number(v.Value)
	case *types.AttributeValueMemberB:
		return v.Value
	case *types.AttributeValueMemberBOOL:
		return v.Value
	case *types.AttributeValueMemberSS:
		return v.Value
	case *types.AttributeValueMemberL:
		return list(v.Value)
	case *types.AttributeValueMemberM:
		return fields(v.Value)
	case *tabletypes.AttributeValueMemberS:
		return v.Value
	case *tabletypes.AttributeValueMemberN:
		return json.Number(v.Value)
	case *tabletypes.AttributeValueMemberB:
		return v.Value
	case *tabletypes.AttributeValueMemberBOOL:
		return v.Value
	case *tabletypes.AttributeValueMemberL:
		return list(v.Value)
	case *tabletypes.AttributeValueMemberM:
		return fields(v.Value)
	}
	log.Fatalf("a value of type %T, which no benchmark has", v)
	return nil
}

func list[V any](values []V) []any {
	l := make([]any, len(values))
	for i, v := range values {
		l[i] = plain(v)
	}
	return l
}

func fields[V any](values map[string]V) map[string]any {
	m := make(map[string]any, len(values))
	for name, v := range values {
		m[name] = plain(v)
	}
	return m
}
