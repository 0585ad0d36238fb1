package dryrun

import (
	"cmp"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// Report is what a dry run counted, and what a run would cost at that rate.
type Report struct {
	Schema   int           `json:"schema"`
	From     string        `json:"from"`    // latest or trim_horizon
	Seconds  float64       `json:"seconds"` // since it began
	Tables   []TableReport `json:"tables"`
	Estimate Estimate      `json:"estimate"`
	Warnings []string      `json:"warnings"`
}

// TableReport is what was counted of one table. Rates are per second of the time in which the
// changes were made: from the trim horizon, a day of changes is read in minutes.
type TableReport struct {
	Source  string     `json:"source"`
	Target  string     `json:"target"`
	Seconds float64    `json:"seconds"`           // of changes
	Through *time.Time `json:"through,omitempty"` // creation of the newest change that was read
	Shards  Shards     `json:"shards"`

	Reads       int64   `json:"reads"` // GetRecords calls that returned
	Records     int64   `json:"records"`
	RecordsRate float64 `json:"records_per_s"`
	Bytes       int64   `json:"bytes"` // of records
	BytesRate   float64 `json:"bytes_per_s"`
	Rows        int64   `json:"rows"` // conditional writes, of which each is one call
	RowsRate    float64 `json:"rows_per_s"`
	Cells       int64   `json:"cells"`
	CellsRate   float64 `json:"cells_per_s"`
	RowBytes    int64   `json:"row_bytes"`
	Left        int64   `json:"rows_left"` // rows among these that an item leaves
	Ignored     int64   `json:"ignored"`   // records from which the mapping makes no row
	TTL         int64   `json:"ttl_deletes"`
	TTLRate     float64 `json:"ttl_deletes_per_s"`

	Refused  int64     `json:"refused"` // records that would become dead letters
	Refusals []Refusal `json:"refusals"`

	ItemSizes Sizes `json:"item_bytes"` // new images in DynamoDB's JSON
	RowSizes  Sizes `json:"row_sizes"`  // key and cells of a row

	HotRows       []Heavy `json:"hot_rows"`
	HotPartitions []Heavy `json:"hot_partitions"`
	HottestRow    float64 `json:"hottest_row_per_s"`        // in the ten seconds in which a row was hottest
	LargestGrowth int64   `json:"largest_row_growth_bytes"` // of a row that several items share
}

// Shards are the shards of the table's stream, as far as the dry run reads them.
type Shards struct {
	Reading int `json:"reading"`
	Waiting int `json:"waiting"`
	Gaps    int `json:"gaps"` // shards with records that were lost before they were read
}

// Refusal is why records would become dead letters.
type Refusal struct {
	Code   string `json:"code"`
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
}

// warnThroughput is what a dry run costs beside another reader of the stream.
//
// Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html#limits-dynamodb-streams
const warnThroughput = "the dry run reads the streams: DynamoDB serves two readers of a shard, one for a global " +
	"table; beside a replicator and a Lambda trigger it is the third, and all of them may be throttled"

func reportOf(tables []*table, began, now time.Time) *Report {
	r := &Report{Schema: 1, From: "latest", Seconds: now.Sub(began).Seconds(), Warnings: []string{warnThroughput}}
	var reads float64
	for _, t := range tables {
		x := t.report(r.Seconds, now)
		if t.o.Horizon {
			r.From = "trim_horizon"
			// How often open shards are read once a run has caught up is not known yet: at most
			// this often.
			reads += readsPerShard * float64(x.Shards.Reading)
		} else {
			reads += ratio(float64(x.Reads), r.Seconds)
		}
		r.Tables = append(r.Tables, x)
	}
	r.Estimate = estimate(tables, r.Tables, reads)
	return r
}

// report returns the counts of the table.
func (t *table) report(elapsed float64, now time.Time) TableReport {
	n, peak := t.counts.snapshot()
	t.mu.Lock()
	shards := t.shards
	t.mu.Unlock()
	seconds := elapsed
	if t.o.Horizon {
		seconds = max(seconds, float64(n.newest-n.oldest)/1000)
	}
	per := func(count int64) float64 { return ratio(float64(count), seconds) }
	r := TableReport{
		Source: t.Source, Target: t.Target, Seconds: seconds, Shards: shards, Reads: n.pages,
		Records: n.records, RecordsRate: per(n.records), Bytes: n.bytes, BytesRate: per(n.bytes),
		Rows: n.rows, RowsRate: per(n.rows), Cells: n.cells, CellsRate: per(n.cells), RowBytes: n.rowBytes,
		Left: n.left, Ignored: n.ignored, TTL: n.ttl, TTLRate: per(n.ttl), Refused: n.refused, Refusals: []Refusal{},
		ItemSizes: n.items.report(), RowSizes: n.rowSizes.report(),
		HotRows: n.rowKeys.report(n.rows, seconds), HotPartitions: n.partitions.report(n.records, seconds),
		HottestRow: max(peak, t.counts.sensor.Hottest(now)), LargestGrowth: t.counts.sensor.LargestGrowth(),
	}
	if t.o.Horizon {
		r.HottestRow = 0 // the changes of hours come within seconds
	}
	if n.newest > 0 {
		r.Through = timeOf(n.newest)
	}
	for why, count := range n.refusals {
		r.Refusals = append(r.Refusals, Refusal{Code: why.code, Reason: why.reason, Count: count})
	}
	slices.SortFunc(r.Refusals, func(a, b Refusal) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Reason, b.Reason))
	})
	return r
}

func timeOf(ms change.Millis) *time.Time {
	at := ms.Time().UTC()
	return &at
}
