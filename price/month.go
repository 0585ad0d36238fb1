package price

import (
	"math"
	"time"
)

// A month, as Google computes its monthly prices.
const (
	hoursPerMonth   = 730
	SecondsPerMonth = hoursPerMonth * 3600
)

// GB is what both clouds call a GB in their prices.
const GB = 1 << 30

// Rates are what a table uses of the services in a second.
type Rates struct {
	StreamReads float64 `json:"stream_reads_per_s"`       // GetRecords calls
	ReadUnits   float64 `json:"read_units_per_s"`         // of copies, resyncs and comparisons
	Writes      float64 `json:"bigtable_writes_per_s"`    // CheckAndMutateRow calls
	RowsRead    float64 `json:"bigtable_rows_read_per_s"` // of resyncs and comparisons
}

// Add returns the sum of two tables.
func (r Rates) Add(o Rates) Rates {
	return Rates{
		StreamReads: r.StreamReads + o.StreamReads, ReadUnits: r.ReadUnits + o.ReadUnits,
		Writes: r.Writes + o.Writes, RowsRead: r.RowsRead + o.RowsRead,
	}
}

// Month are the dollars of a month.
type Month struct {
	StreamReads float64 `json:"stream_reads"`
	ReadUnits   float64 `json:"read_units"` // on demand; a provisioned table pays for its capacity alone
	Nodes       float64 `json:"bigtable_nodes"`
	Total       float64 `json:"total"`
}

// Month returns what these rates cost if they go on for a month. Nodes are counted by their share:
// other tables use the rest. Reads of streams are counted from the first one on: the account has
// some free, and not the table.
func (r Rates) Month() Month {
	m := Month{
		StreamReads: StreamReadDollars(r.StreamReads * SecondsPerMonth),
		ReadUnits:   ReadUnitDollars(r.ReadUnits * SecondsPerMonth),
		Nodes:       NodeDollars(r.NodeShare()),
	}
	m.Total = m.StreamReads + m.ReadUnits + m.Nodes
	return m
}

// NodeShare returns how many nodes with SSD the requests use, in fractions.
func (r Rates) NodeShare() float64 { return SSD.share(r.Writes, r.RowsRead) }

// MonthlyPolls returns how often a shard is read in a month that is read at this interval, which is
// what an idle shard costs.
func MonthlyPolls(every time.Duration) float64 { return SecondsPerMonth / every.Seconds() }

// Idle is what reading the shards of a table costs in a month in which nothing changes.
type Idle struct {
	Shards  int     `json:"open_shards"`
	Poll    float64 `json:"idle_poll_s"` // the lag that it adds, at most
	Reads   float64 `json:"reads_a_month"`
	Dollars float64 `json:"dollars_a_month"`
}

// IdleOf returns what so many shards cost that are each read so often a second.
func IdleOf(shards int, poll time.Duration, readsPerSecond float64) Idle {
	reads := math.Round(float64(shards) * readsPerSecond * SecondsPerMonth)
	return Idle{Shards: shards, Poll: poll.Seconds(), Reads: reads, Dollars: Cents(StreamReadDollars(reads))}
}

// StreamReadDollars returns what so many GetRecords calls cost, without those that are free.
func StreamReadDollars(calls float64) float64 { return calls / 100_000 * Assumed().StreamReads }

// PaidStreamReadDollars returns what all GetRecords calls of an account in a month cost.
func PaidStreamReadDollars(calls float64) float64 {
	return StreamReadDollars(max(0, calls-Assumed().FreeStreamReads))
}

// ReadUnitDollars returns what reads cost that a table on demand serves.
func ReadUnitDollars(units float64) float64 { return units / 1e6 * Assumed().MillionUnits }

// ExportDollars returns what the export of so many bytes costs, with a month in S3.
func ExportDollars(bytes float64) float64 {
	return bytes / GB * (Assumed().ExportedGB + Assumed().StoredGB)
}

// TransferDollars returns what so many bytes cost on their way from AWS to the other cloud.
func TransferDollars(bytes float64) float64 { return bytes / GB * Assumed().OutgoingGB }

// NodeDollars returns what so many nodes of Bigtable cost for a month.
func NodeDollars(nodes float64) float64 { return nodes * hoursPerMonth * Assumed().NodeHour }

// Cents rounds dollars to what is paid.
func Cents(dollars float64) float64 { return math.Round(dollars*100) / 100 }
