package queue_test

import (
	"context"
	"fmt"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/frame"
)

// The log of a table, from its first entry to its newest one of this moment. A walk needs no claim:
// it reads beside the owner of the log. What it returns is where the next walk begins.
func ExampleWalk() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "queue-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	o := queue.Options{Pipeline: "shop", Dir: dir, MaxBytes: 64 << 20} // a server in this process
	q, err := queue.Open(ctx, o, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = q.Close() }()
	if err := store(ctx, q); err != nil {
		fmt.Println(err)
		return
	}

	log, err := q.Log(ctx, "Orders") // errors.Is(err, queue.ErrNoLog) where the table has none
	if err != nil {
		fmt.Println(err)
		return
	}
	end, err := queue.Walk{Log: log}.Entries(ctx, func(e *queue.WalkedEntry) error {
		fmt.Println(e.Kind, "of", e.Owner)
		return e.Changes(func(c *queue.WalkedChange) error {
			fmt.Println("  ", c.Op, string(c.Keys), c.Version)
			return nil
		})
	})
	if err != nil { // errors.Is(err, queue.ErrTrimmed): entries were deleted before they were read
		fmt.Println(err)
		return
	}
	more := 0
	_, err = queue.Walk{Log: log, After: end}.Entries(ctx, func(*queue.WalkedEntry) error { more++; return nil })
	fmt.Println(more, "entries behind the last one;", err)
	// Output:
	// claim of replica-1
	// start of replica-1
	// frame of replica-1
	//    INSERT {"pk": {"S": "hats"}} 1790000000000
	// snapshot of replica-1
	// release of replica-1
	// 0 entries behind the last one; <nil>
}

// store claims a new log, and appends the start of a table and a page with one record, as the write
// loop of its owner does.
func store(ctx context.Context, q *queue.Queue) error {
	log, err := q.CreateLog(ctx, "Orders", "t0ken")
	if err != nil {
		return err
	}
	w, err := log.Claim(ctx, queue.ClaimOptions{Owner: "replica-1"})
	if err != nil {
		return err
	}
	const stream = "arn:aws:dynamodb:eu-west-1:1:table/Orders/stream/2026-01-01T00:00:00.000"
	const now = change.Millis(1_790_000_000_000)
	start := &checkpoint.Start{Stream: stream, Date: now, Shards: []checkpoint.ShardSeen{{ID: "shard-1"}}}
	if _, err := w.Append(ctx, start, nil); err != nil {
		return err
	}
	records, _, err := change.ScanPage([]byte(`{"Records": [{"eventName": "INSERT", "dynamodb": {
		"ApproximateCreationDateTime": 1790000000, "SequenceNumber": "100000000000000000001", "SizeBytes": 9,
		"Keys": {"pk": {"S": "hats"}}, "NewImage": {"pk": {"S": "hats"}}}}]}`), nil)
	if err != nil {
		return err
	}
	var clock change.Clock
	records[0].Version = clock.Next(records[0].Created)
	frames, err := frame.Pack([]*change.Page{{
		Feed: change.Feed{Stream: stream, Shard: "shard-1"}, Date: now, Records: records, Clock: records[0].Version,
		To: change.Position{After: change.SequenceNumber(records[0].SequenceNumber)},
	}}, q.MaxPayload())
	if err != nil {
		return err
	}
	for _, f := range frames {
		if _, err := w.Append(ctx, f.Body, f.Data); err != nil {
			return err
		}
	}
	return w.Release(ctx)
}
