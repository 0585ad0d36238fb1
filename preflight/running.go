package preflight

import (
	"context"
	"fmt"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/price"
)

// Running is what a pipeline costs in a month in which nothing changes.
type Running struct {
	Idle  price.Idle `json:"idle"`  // of all tables; its Poll is the shortest
	Bytes int64      `json:"bytes"` // of the tables with a target, in DynamoDB
	// Storages are what these bytes take with each kind of storage of Bigtable, and what a full
	// verify takes there: it reads all rows.
	Storages []price.Choice `json:"storages,omitempty"`
	Prices   price.List     `json:"prices"`
}

// running computes what the pipeline costs while nothing changes. The number of shards is left out
// where the stream cannot be listed, which is a finding of its own.
func (c *check) running(ctx context.Context) {
	all := &Running{Prices: price.Assumed()}
	for _, r := range c.Tables {
		if !r.Archived {
			all.Bytes += r.table.Info.Bytes
		}
		shards, err := c.openShards(ctx, r.table)
		if err != nil || shards == 0 {
			continue
		}
		idle := clients.IdleCost(c.cfg, &r.table.Table, shards)
		r.Idle = &idle
		if all.Idle.Poll == 0 || idle.Poll < all.Idle.Poll {
			all.Idle.Poll = idle.Poll
		}
		all.Idle.Shards, all.Idle.Reads = all.Idle.Shards+idle.Shards, all.Idle.Reads+idle.Reads
	}
	all.Idle.Dollars = price.Cents(price.StreamReadDollars(all.Idle.Reads))
	if all.Bytes > 0 {
		all.Storages = price.Choices(0, float64(all.Bytes))
	}
	if all.Idle.Shards > 0 || all.Bytes > 0 {
		c.Running = all
	}
}

// openShards returns how many shards of a table's stream take writes; 0 without a stream.
func (c *check) openShards(ctx context.Context, t *catalog.Table) (n int, err error) {
	if t.Info.StreamARN == "" {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, clients.AskTimeout)
	defer cancel()
	listing, err := c.src.List(ctx, t.Info.StreamARN)
	if err != nil {
		return 0, fmt.Errorf("count shards of %s: %w", t.Source, err)
	}
	for i := range listing.Shards {
		if !listing.Shards[i].Closed {
			n++
		}
	}
	return n, nil
}
