package preflight

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/host"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/limit"
	"github.com/tailrace-cdc/replicator/price"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
)

const (
	// itemsPerProcessor is how many items a second of a copy a processor takes, measured with items
	// of 1 KB, as `make bench` does.
	itemsPerProcessor = 19_000

	// heldSeconds is how long a copied item is in memory.copy: 12,100 a second were copied with 48
	// MiB.
	heldSeconds = 4
)

const (
	// latencyReads is how many reads of a row the latency is the median of, if they take no longer
	// than latencyTime for a table, and for all tables than measuring. With a tenth of these times
	// a Bigtable that answers in 100 ms is measured with one read; with ten times as much, many
	// tables take longer than the check may.
	latencyReads = 20
	latencyTime  = 3 * time.Second
	measuring    = 20 * time.Second
)

// The keys of the configuration that bound a copy, in Ceiling.CopyLimitedBy.
const (
	byReadUnits = limit.By("read_units")
	byWriteRows = limit.By("write_rows")
)

// Capacity is how much a deployment carries, computed from its configuration, from the latency of
// Bigtable as it is now, and from the sizes of its tables.
type Capacity struct {
	Processors float64      `json:"processors"` // of this machine, or of its control group
	Tables     []Ceiling    `json:"tables"`
	Memory     MemoryMiB    `json:"memory_mib"`
	LogBytes   int64        `json:"log_bytes_per_s"` // of the fastest table at its ceiling
	Cost       CeilingCosts `json:"cost"`
}

// MemoryMiB is the memory of the process, as Report.Cost has it.
type MemoryMiB struct {
	Usual int64 `json:"usual"`
	Most  int64 `json:"most"`
	Copy  int64 `json:"copy"` // beside either
}

// CeilingCosts are what the fastest table needs of Bigtable at its ceiling, and what all copies
// read, at list prices.
type CeilingCosts struct {
	Nodes       int     `json:"bigtable_nodes"`
	NodeDollars float64 `json:"bigtable_dollars_a_month"`
	CopyDollars float64 `json:"copy_dollars"`
	// CopyTransfer is what the way of the copies out of AWS costs beside CopyDollars.
	CopyTransfer float64 `json:"copy_transfer_dollars"`
}

// Ceiling is how much of one table is carried if no other table is busy.
type Ceiling struct {
	Source    string   `json:"source"`
	Target    string   `json:"target"`
	Changes   int64    `json:"changes_per_s"`
	LimitedBy limit.By `json:"limited_by"`
	LatencyMS float64  `json:"latency_ms"`
	Calls     int      `json:"calls_in_flight"`

	ItemBytes   int64   `json:"item_bytes"`    // in the mean
	RowsPerItem float64 `json:"rows_per_item"` // of the sample
	Shards      int     `json:"open_shards"`

	// By what limits them; CopyCeilings is empty where no copy will begin.
	Ceilings     map[limit.By]int64 `json:"ceilings"`      // changes a second
	CopyCeilings map[limit.By]int64 `json:"copy_ceilings"` // items a second

	Items         int64    `json:"items"`
	CopyHours     float64  `json:"copy_hours"` // rounded up to hundredths
	CopyLimitedBy limit.By `json:"copy_limited_by"`

	callsBy callBound
}

// callBound is what bounds the calls of a table in flight.
type callBound int

const (
	byConfig callBound = iota // bigtable.max_in_flight
	byTables                  // the lanes of each of so many tables
	byTurns                   // changes that wait for each other
	byMemory                  // memory.total
)

// Remedy returns what raises the ceiling of the changes. It is of one table: another replica
// carries other tables, and none of its changes.
func (c *Ceiling) Remedy() string {
	const nearer = "a replicator nearer to the cluster"
	switch c.LimitedBy {
	case limit.CPU:
		return "more or faster processors"
	case limit.Source:
		return "nothing to buy: DynamoDB splits the shards of a table that is written faster"
	case limit.Log:
		return "a faster volume or NATS: the figure is for a gp3 volume of 125 MB/s"
	case limit.Latency:
		switch c.callsBy {
		case byTables:
			return nearer + ", or fewer tables per process"
		case byTurns:
			return nearer + ": with on_remove: row a table reaches no more calls"
		}
	}
	return c.LimitedBy.Remedy(&limit.Calls{InFlight: c.Calls, Bound: c.Calls, Most: c.Calls})
}

// load is what a table is, and what its changes and copies meet.
type load struct {
	limit.Way
	info       *source.TableInfo
	backfill   *config.Backfill // nil: no copy will begin
	callsBy    callBound
	copyMemory int64
}

// itemBytes returns the mean size of the items. An empty table is assumed to get items of 1 KB.
func itemBytes(info *source.TableInfo) float64 {
	if info.Items <= 0 {
		return copyItemBytes
	}
	return max(1, float64(info.Bytes)/float64(info.Items))
}

// copies returns how many items a second of a copy each part carries; nil if none will begin.
func (l *load) copies() map[limit.By]float64 {
	if l.backfill == nil {
		return nil
	}
	by, calls := l.ByCalls()
	all := map[limit.By]float64{
		by:        calls,
		limit.CPU: itemsPerProcessor * l.Processors / l.Rows / limit.Weight(l.ItemBytes),
	}
	if l.backfill.From != "export" {
		all[byReadUnits] = readBudget(l.info, l.backfill) * unitBytes / l.ItemBytes
	}
	if l.backfill.WriteRows > 0 {
		all[byWriteRows] = float64(l.backfill.WriteRows) / l.Rows
	}
	held := float64(l.copyMemory) / heldSeconds / l.ItemBytes
	if before, there := all[limit.Memory]; !there || held < before {
		all[limit.Memory] = held
	}
	return all
}

// whole returns the numbers without their fractions, which promise too much.
func whole(all map[limit.By]float64) map[limit.By]int64 {
	n := map[limit.By]int64{}
	for by, x := range all {
		n[by] = int64(x)
	}
	return n
}

// ceiling returns how much of the table is carried.
func (l *load) ceiling() Ceiling {
	c := Ceiling{
		ItemBytes: int64(l.ItemBytes), RowsPerItem: math.Round(l.Rows*100) / 100, Shards: l.Shards, Items: l.info.Items,
		Ceilings: whole(l.Changes()), CopyCeilings: whole(l.copies()), callsBy: l.callsBy,
	}
	carried := l.Carried()
	c.LimitedBy, c.Changes, c.LatencyMS, c.Calls = carried.LimitedBy, carried.Changes, carried.LatencyMS, carried.Calls
	if copies := l.copies(); copies != nil {
		by, n := limit.Lowest(copies)
		c.CopyLimitedBy, c.CopyHours = by, math.Ceil(float64(l.info.Items)/n/36)/100
	}
	return c
}

// capacity computes the capacity. What cannot be measured is a problem of the environment.
func (c *check) capacity(ctx context.Context) {
	k := &Capacity{Processors: host.Processors(), Memory: MemoryMiB{
		Usual: c.Cost[CostMemory] >> 20, Most: c.Cost[CostMemoryLarge] >> 20, Copy: c.Cost[CostMemoryCopy] >> 20,
	}}
	c.Capacity = k
	k.Tables = []Ceiling{}
	if c.sink == nil || problem.AnyError(c.Problems) {
		return
	}
	for _, r := range c.Tables {
		if r.table.ArchivedOnly() {
			continue
		}
		l := c.load(ctx, r)
		if l == nil {
			continue
		}
		t := l.ceiling()
		t.Source, t.Target = r.Source, r.Target
		k.Tables = append(k.Tables, t)
		k.LogBytes = max(k.LogBytes, int64(float64(t.Changes)*l.LogBytes()))
		rows := float64(t.Changes) * l.Rows * limit.Weight(l.ItemBytes)
		k.Cost.Nodes = max(k.Cost.Nodes, price.SSD.Nodes(rows, float64(l.info.Bytes)))
		if r.Copy != nil {
			if way := r.Copy.chosen(); way != nil {
				k.Cost.CopyDollars, k.Cost.CopyTransfer = k.Cost.CopyDollars+way.Dollars, k.Cost.CopyTransfer+way.Transfer
			}
		}
	}
	k.Cost.CopyDollars, k.Cost.CopyTransfer = price.Cents(k.Cost.CopyDollars), price.Cents(k.Cost.CopyTransfer)
	k.Cost.NodeDollars = price.NodeDollars(float64(k.Cost.Nodes))
}

// load asks the servers about a table; nil if its target is not there yet, which is a finding of
// its own, or if they do not answer.
func (c *check) load(ctx context.Context, r *TableReport) *load {
	t := r.table
	asking, cancel := context.WithTimeout(ctx, clients.AskTimeout)
	there, err := c.sink.HasTable(asking, t.Target)
	cancel()
	if err == nil && !there {
		return nil
	}
	l := &load{
		Way:  limit.Way{ItemBytes: itemBytes(&t.Info), Rows: r.rowsPerItem(), Processors: host.Processors()},
		info: &t.Info, copyMemory: int64(c.cfg.Memory.Copy),
	}
	l.Calls, l.callsBy = c.callsOf(t)
	l.ByMemory = l.callsBy == byMemory
	if r.Copy != nil && t.Backfill.From != "none" {
		l.backfill = &t.Backfill
	}
	if l.Latency, err = c.latency(ctx, t.Target); err != nil {
		c.failed("bigtable", t.Path+".target", bigtable.Explain(fmt.Errorf("read a row of %s: %w", t.Target, err)))
		return nil
	}
	if t.Info.StreamARN == "" {
		return l
	}
	if r.Idle != nil {
		l.Shards = r.Idle.Shards
	} else if l.Shards, err = c.openShards(ctx, t); err != nil {
		c.failed("stream", t.Path+".source", source.Explain(err))
		return nil
	}
	return l
}

// callsOf returns how many calls of a table can be in flight, and what bounds them.
func (c *check) callsOf(t *catalog.Table) (calls int, by callBound) {
	calls, memory, lanes := c.callBounds()
	if lanes < calls {
		calls, by = lanes, byTables
	}
	if t.Program.Wipes() != nil && apply.LanesWithTurns < calls {
		calls, by = apply.LanesWithTurns, byTurns
	}
	if memory < calls {
		calls, by = memory, byMemory
	}
	return calls, by
}

// latency measures how long Bigtable takes for a read of a target, in a time of its own: the
// answers of a Bigtable that is far away are what the ceiling is made of.
func (c *check) latency(ctx context.Context, target string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, latencyTime+2*clients.AskTimeout)
	defer cancel()
	return c.sink.Latency(ctx, target, latencyReads, min(latencyTime, measuring/time.Duration(max(len(c.Tables), 1))))
}
