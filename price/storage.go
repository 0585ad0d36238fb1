package price

import "math"

// nodeShare is the share of a node's CPU that is used. Google advises to stay below 70 % where an
// instance has one cluster, because another one must not be needed for the peaks:
// https://docs.cloud.google.com/bigtable/docs/monitoring-instance
const nodeShare = 0.7

// Storage is a kind of storage of Bigtable: what a node stores at most, and what it does of rows of
// 1 KB.
//
// Sources: https://cloud.google.com/bigtable/quotas and
// https://docs.cloud.google.com/bigtable/docs/editions-overview for the sizes,
// https://docs.cloud.google.com/bigtable/docs/performance for the rates. The documents write TB for
// powers of two, as the limits of autoscaling show: 5120 and 16384 GiB.
type Storage struct {
	Name    string
	PerNode int64 // bytes

	reads, writes float64 // a second
	scan          float64 // bytes a second, of the slower tier
	gb            float64 // dollars a month; 0: not built in
}

const (
	tib = 1 << 40
	mb  = 1e6 // of rates
)

// The kinds of storage. A tiered table keeps what is younger than its threshold on SSD, and a write
// goes there. A conditional write also reads the row's guard: where that is older than the
// threshold, a node does 100 of them a second. So the nodes by rate are the least.
var (
	SSD = Storage{
		Name: "SSD", PerNode: 5 * tib, reads: 17_000, writes: 14_000, scan: 220 * mb, gb: Assumed().BigtableGB,
	}
	HDD = Storage{
		Name: "HDD", PerNode: 16 * tib, reads: 500, writes: 10_000, scan: 180 * mb, gb: Assumed().BigtableHDDGB,
	}
	Tiered     = Storage{Name: "tiered, Enterprise", PerNode: 32 * tib, reads: 17_000, writes: 14_000, scan: 36 * mb}
	TieredPlus = Storage{Name: "tiered, Enterprise Plus", PerNode: 64 * tib, reads: 17_000, writes: 14_000, scan: 36 * mb}
)

// share returns how many nodes, in fractions, so many conditional writes and reads of rows a second
// take. A conditional write reads the row and writes it, so that a node does fewer of them than of
// either alone.
func (s *Storage) share(writes, reads float64) float64 {
	return (writes*(1/s.reads+1/s.writes) + reads/s.reads) / nodeShare
}

// Nodes returns how many nodes conditional writes of so many rows of 1 KB a second need, and so
// many bytes: the larger of the two, and at least one.
func (s *Storage) Nodes(writes, bytes float64) int {
	return int(max(1, math.Ceil(s.share(writes, 0)), math.Ceil(bytes/float64(s.PerNode))))
}

// Dollars returns what so many bytes cost for a month; 0 where the price is not built in.
func (s *Storage) Dollars(bytes float64) float64 { return bytes / GB * s.gb }

// Choice is what tables would take with one kind of storage.
type Choice struct {
	Storage     string   `json:"storage"`
	Nodes       int      `json:"nodes"`
	NodeDollars float64  `json:"nodes_dollars_a_month"`
	Dollars     *float64 `json:"storage_dollars_a_month,omitempty"` // nil: the price is not built in
	// What reading all rows once takes, as a full verify does: at the highest rate of the nodes, if
	// they do nothing else. Of a tiered table all of it counts as infrequent access.
	VerifyHours   float64 `json:"verify_hours"`
	VerifyDollars float64 `json:"verify_dollars"` // the hours of all nodes
}

// Choices returns what so many conditional writes of rows of 1 KB a second and so many bytes take
// with each kind of storage.
func Choices(writes, bytes float64) (all []Choice) {
	for _, s := range []*Storage{&SSD, &HDD, &Tiered, &TieredPlus} {
		nodes := s.Nodes(writes, bytes)
		nodeHours := bytes / s.scan / 3600
		c := Choice{
			Storage: s.Name, Nodes: nodes, NodeDollars: Cents(NodeDollars(float64(nodes))),
			VerifyHours: nodeHours / float64(nodes), VerifyDollars: Cents(nodeHours * Assumed().NodeHour),
		}
		if s.gb > 0 {
			dollars := Cents(s.Dollars(bytes))
			c.Dollars = &dollars
		}
		all = append(all, c)
	}
	return all
}
