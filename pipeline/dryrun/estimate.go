package dryrun

import "math"

// Prices are the list prices that an estimate assumes, in dollars. They are not requested from the
// clouds; docs/dry-run.md repeats them and names the pages to compare with.
type Prices struct {
	Region       string  `json:"region"`
	NodeHour     float64 `json:"bigtable_node_hour"`
	StoredGB     float64 `json:"bigtable_gb_month"`
	StreamReads  float64 `json:"stream_reads_100000"`
	OutgoingGB   float64 `json:"outgoing_gb"`
	NotConfirmed bool    `json:"not_confirmed"`
}

// assumed is the one place where the prices are. The pages fill in their prices in the browser, so
// that none of these is confirmed by a dated page.
var assumed = Prices{
	Region: "us-central1 and us-east-1", NotConfirmed: true,
	// A provisioned node of the Enterprise edition, and SSD storage:
	// https://cloud.google.com/bigtable/pricing
	NodeHour: 0.65, StoredGB: 0.17,
	// "DynamoDB Streams", for 100,000 read request units, each a GetRecords call; the first 2.5
	// million of a month are free: https://aws.amazon.com/dynamodb/pricing/on-demand/
	StreamReads: 0.02,
	// Data transfer out to the internet, the first 10 TB:
	// https://aws.amazon.com/ec2/pricing/on-demand/
	OutgoingGB: 0.09,
}

// What a node of Bigtable does with SSD storage, for rows of 1 KB. Google advises to stay below 70
// % of the CPU where an instance has one cluster, because another one must not be needed for the
// peaks.
//
// Sources: https://docs.cloud.google.com/bigtable/docs/performance,
// https://docs.cloud.google.com/bigtable/docs/monitoring-instance
const (
	nodeReads    = 17_000
	nodeWrites   = 14_000
	nodeShare    = 0.7
	nodeStoredGB = 5 << 10

	hoursPerMonth   = 730
	secondsPerMonth = hoursPerMonth * 3600
	freeStreamReads = 2_500_000
	readsPerShard   = 5 // GetRecords calls a second
)

// Estimate is what a run at the counted rates takes.
type Estimate struct {
	RowsRate float64 `json:"rows_per_s"`
	Nodes    int     `json:"nodes"`
	Dollars  Dollars `json:"dollars_a_month"`
	Prices   Prices  `json:"prices"`
}

// Dollars are the parts of the costs of a month.
type Dollars struct {
	Nodes       float64 `json:"nodes"`
	Storage     float64 `json:"storage"`
	StreamReads float64 `json:"stream_reads"`
	Transfer    float64 `json:"transfer"` // from one cloud into the other
	Total       float64 `json:"total"`
}

// NodesFor returns how many nodes of Bigtable conditional writes of so many rows of 1 KB a second
// need, and so many GiB.
func NodesFor(rows, stored float64) int {
	perNode := nodeShare / (1.0/nodeReads + 1.0/nodeWrites)
	return int(max(1, math.Ceil(rows/perNode), math.Ceil(stored/nodeStoredGB)))
}

// NodeDollars returns what so many nodes cost for a month, at the assumed list price.
func NodeDollars(nodes int) float64 { return float64(nodes) * hoursPerMonth * assumed.NodeHour }

// estimate returns what the tables take together. reads are GetRecords calls a second.
//
// A conditional write reads the row and writes it, so a node does fewer of them than of either
// alone. Rows above 1 KB count as several. The replicator unites changes of an item that wait, so
// that bursts cost less than this.
func estimate(tables []*table, counted []TableReport, reads float64) Estimate {
	var load, bytes, stored float64
	e := Estimate{Prices: assumed}
	for i := range counted {
		c := &counted[i]
		size := ratio(float64(c.RowBytes), float64(c.Rows)) / 1024
		e.RowsRate += c.RowsRate
		load += c.RowsRate * max(size, 1)
		// From one cloud to the other go records, or rows, depending on where the replicator runs.
		bytes += max(c.BytesRate, ratio(float64(c.RowBytes), c.Seconds))
		stored += float64(tables[i].Info.Bytes) / (1 << 30)
	}
	e.Nodes = NodesFor(load, stored)
	d := &e.Dollars
	d.Nodes = NodeDollars(e.Nodes)
	d.Storage = stored * assumed.StoredGB
	d.StreamReads = max(0, reads*secondsPerMonth-freeStreamReads) / 100_000 * assumed.StreamReads
	d.Transfer = bytes * secondsPerMonth / (1 << 30) * assumed.OutgoingGB
	d.Total = d.Nodes + d.Storage + d.StreamReads + d.Transfer
	return e
}
