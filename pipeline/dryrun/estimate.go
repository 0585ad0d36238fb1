package dryrun

import "github.com/tailrace-cdc/replicator/price"

// readsPerShard is how many GetRecords calls a second DynamoDB serves of one shard.
const readsPerShard = 5

// Estimate is what a run at the counted rates takes.
type Estimate struct {
	RowsRate float64 `json:"rows_per_s"`
	Nodes    int     `json:"nodes"`
	Dollars  Dollars `json:"dollars_a_month"`
	// Storages are the same rows and bytes with each kind of storage; Nodes and Dollars count SSD.
	Storages []price.Choice `json:"storages"`
	Prices   price.List     `json:"prices"`
}

// Dollars are the parts of the costs of a month.
type Dollars struct {
	Nodes       float64 `json:"nodes"`
	Storage     float64 `json:"storage"`
	StreamReads float64 `json:"stream_reads"`
	Transfer    float64 `json:"transfer"` // from one cloud into the other
	Total       float64 `json:"total"`
}

// estimate returns what the tables take together. reads are GetRecords calls a second.
//
// Rows above 1 KB count as several. The replicator unites changes of an item that wait, so
// that bursts cost less than this.
func estimate(tables []*table, counted []TableReport, reads float64) Estimate {
	var load, bytes, stored float64
	e := Estimate{Prices: price.Assumed()}
	for i := range counted {
		c := &counted[i]
		size := ratio(float64(c.RowBytes), float64(c.Rows)) / 1024
		e.RowsRate += c.RowsRate
		load += c.RowsRate * max(size, 1)
		// From one cloud to the other go records, or rows, depending on where the replicator runs.
		bytes += max(c.BytesRate, ratio(float64(c.RowBytes), c.Seconds))
		stored += float64(tables[i].Info.Bytes)
	}
	e.Nodes, e.Storages = price.SSD.Nodes(load, stored), price.Choices(load, stored)
	d := &e.Dollars
	d.Nodes = price.NodeDollars(float64(e.Nodes))
	d.Storage = price.SSD.Dollars(stored)
	d.StreamReads = price.PaidStreamReadDollars(reads * price.SecondsPerMonth)
	d.Transfer = price.TransferDollars(bytes * price.SecondsPerMonth)
	d.Total = d.Nodes + d.Storage + d.StreamReads + d.Transfer
	return e
}
