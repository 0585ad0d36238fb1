package control

import (
	"context"
	"fmt"

	"github.com/tailrace-cdc/replicator/sandbox/capacity"
	"github.com/tailrace-cdc/replicator/sandbox/dynamo"
)

// readCommands registers what counts, limits and disturbs reads of tables, and the switches of
// streams.
func (c *Console) readCommands() {
	db := c.DynamoDB
	add(c, "read_units", "shows the read units that a table consumed and the reads that its limits refused, by second",
		func(_ context.Context, a table) (any, error) {
			return map[string][]capacity.Second{"seconds": db.Reads.Seconds(a.Table)}, nil
		})
	add(c, "read_limit", "refuses reads of a table beyond its provisioned capacity, and those of one hot partition "+
		"beyond hot units a second; without both it ends", c.readLimit)
	add(c, "counts", "makes DescribeTable show these numbers for a table; exact shows the exact ones again",
		func(_ context.Context, a struct {
			table
			Items int64 `json:"items"`
			Bytes int64 `json:"bytes"`
			Exact bool  `json:"exact"`
		}) (any, error) {
			if a.Exact {
				return nil, db.ShowExactCounts(a.Table)
			}
			return nil, db.ShowCounts(a.Table, a.Items, a.Bytes)
		})
	do(c, "lag_reads", "makes eventually consistent reads show the tables as they were this long ago; 0s ends it",
		func(a forSpan) { db.LagReads(a.For.d()) })
	add(c, "unprocessed_keys", "makes BatchGetItem leave keys unprocessed, each with this probability; 0 ends it",
		func(_ context.Context, a struct {
			Share float64 `json:"share"`
			Times int     `json:"times"`
		}) (any, error) {
			if a.Share < 0 || a.Share > 1 || a.Times < 0 {
				return nil, fmt.Errorf("want a share of 0 to 1, and times of at least 0")
			}
			db.Faults.LeaveUnprocessed(dynamo.Unprocessed{Share: a.Share, Times: a.Times})
			return nil, nil
		})
	do(c, "disorder", "makes BatchGetItem return items in random order", func(a onOff) { db.Faults.Disorder(a.on()) })
	do(c, "repeat_items", "makes BatchGetItem return items twice with this probability; 0 ends it", func(a struct {
		Share float64 `json:"share"`
	}) {
		db.Faults.Repeat(a.Share)
	})
	add(c, "exports", "keeps exports in progress for this long, and divides them into so many data files; 0 are as many "+
		"as the table has partitions", func(_ context.Context, a struct {
		Takes Span `json:"takes"`
		Files int  `json:"files"`
	}) (any, error) {
		if a.Files < 0 || a.Takes < 0 {
			return nil, fmt.Errorf("want takes and files of at least 0")
		}
		db.SetExports(a.Takes.d(), a.Files)
		return nil, nil
	})
	add(c, "stream_off", "disables the stream of a table", func(_ context.Context, a table) (any, error) {
		return nil, db.SwitchStream(a.Table, "")
	})
	add(c, "stream_on", "enables a new stream of a table (view: NEW_AND_OLD_IMAGES)", func(_ context.Context, a struct {
		table
		View string `json:"view"`
	}) (any, error) {
		if a.View == "" {
			a.View = "NEW_AND_OLD_IMAGES"
		}
		return nil, db.SwitchStream(a.Table, a.View)
	})
}

// readLimit limits the reads of a table.
func (c *Console) readLimit(_ context.Context, a struct {
	table
	Provisioned bool    `json:"provisioned"`
	Hot         float64 `json:"hot"`
	Partitions  int     `json:"partitions"`
	Burst       Span    `json:"burst"`
}) (any, error) {
	if a.Table == "" || a.Hot < 0 || a.Partitions < 0 || a.Burst < 0 {
		return nil, fmt.Errorf("want a table, and hot, partitions and burst of at least 0")
	}
	c.DynamoDB.Reads.Limit(a.Table, capacity.Limit{Provisioned: a.Provisioned, Hot: a.Hot, Partitions: a.Partitions,
		Burst: a.Burst.d()})
	return nil, nil
}
