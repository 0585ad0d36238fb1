package limit

import (
	"maps"
	"math"
	"slices"
	"time"
)

// What one change takes. Those below are measured with items of 1 KB, as `make bench` does; of
// larger items each KB counts as one.
const (
	changesPerProcessor = 20_000 // a second

	// A record is two images, and in the log JSON around them, at most: compression is not counted.
	imagesPerChange, recordBytes = 2, 400

	// logBytesPerSecond is what a volume takes. gp3 gives 125 MB/s unless more is paid for:
	// https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html
	logBytesPerSecond = 125e6

	// What DynamoDB gives of one shard a second: five reads of at most 1,000 records, and 2 MB.
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html
	recordsPerShard, bytesPerShard = 5000, 2e6
)

// SmallItem is the size in bytes of the items that everything is measured with.
const SmallItem = 1024

// Way is what the changes of a table meet between DynamoDB and Bigtable, if no other table is busy.
type Way struct {
	ItemBytes  float64       // in the mean; at least 1
	Rows       float64       // calls to Bigtable for each change, in the mean
	Latency    time.Duration // of a call
	Calls      int           // in flight at most
	ByMemory   bool          // it is memory that allows no more calls
	Shards     int           // that are open; 0: not known
	Processors float64
}

// Weight returns as how many small items an item counts.
func Weight(itemBytes float64) float64 { return max(1, itemBytes/SmallItem) }

// ItemBytes returns the mean size of items from the mean size of records of a stream.
func ItemBytes(recordSize float64) float64 { return max(1, (recordSize-recordBytes)/imagesPerChange) }

// LogBytes returns the bytes that a change takes in the log, at most.
func (w *Way) LogBytes() float64 { return imagesPerChange*w.ItemBytes + recordBytes }

// ByCalls returns the changes a second that the calls in flight carry, and what bounds these.
func (w *Way) ByCalls() (By, float64) {
	by := Latency
	if w.ByMemory {
		by = Memory
	}
	return by, float64(w.Calls) / max(w.Latency.Seconds(), 50e-6) / w.Rows
}

// Changes returns how many changes a second each part carries.
func (w *Way) Changes() map[By]float64 {
	by, calls := w.ByCalls()
	all := map[By]float64{
		by:  calls,
		CPU: changesPerProcessor * w.Processors / w.Rows / Weight(w.ItemBytes),
		Log: logBytesPerSecond / w.LogBytes(),
	}
	if w.Shards > 0 {
		all[Source] = float64(w.Shards) * min(recordsPerShard, bytesPerShard/imagesPerChange/w.ItemBytes)
	}
	return all
}

// Lowest returns the part that carries least, and how much.
func Lowest(all map[By]float64) (By, float64) {
	least := Nothing
	for _, by := range slices.Sorted(maps.Keys(all)) {
		if least == Nothing || all[by] < all[least] {
			least = by
		}
	}
	return least, all[least]
}

// Carried is how many changes of a table a process carries at most if no other table is busy.
type Carried struct {
	Changes   int64   `json:"changes_per_s"`
	LimitedBy By      `json:"limited_by"`
	LatencyMS float64 `json:"latency_ms"`      // of a call to Bigtable, in the mean of the last seconds with calls
	Calls     int     `json:"calls_in_flight"` // at most
}

// Carried returns how many changes are carried.
func (w *Way) Carried() Carried {
	by, n := Lowest(w.Changes())
	return Carried{
		Changes: int64(n), LimitedBy: by, LatencyMS: Milliseconds(w.Latency), Calls: w.Calls,
	}
}

// Milliseconds returns a latency with two digits behind the point.
func Milliseconds(d time.Duration) float64 { return math.Round(float64(d.Microseconds())/10) / 100 }
