package pattern

import (
	"maps"
	"math/bits"
	"slices"
)

// Histogram counts values in fixed buckets, so that histograms of several instances merge exactly:
// one bucket for each value below 16, then eight for each power of two. A quantile is up to an
// eighth too high.
type Histogram struct {
	N       int64         `json:"n"`
	Sum     int64         `json:"sum"`
	Max     int64         `json:"max"`
	Buckets map[int]int64 `json:"buckets,omitempty"`
}

const (
	exact     = 16 // values below have a bucket each
	exactBits = 4
	perPower  = 8
	powerBits = 3
)

// bucketOf returns the bucket of a value.
func bucketOf(v int64) int {
	if v < exact {
		return int(v)
	}
	power := bits.Len64(uint64(v)) - 1
	return exact + (power-exactBits)*perPower + int(v>>(power-powerBits)&(perPower-1))
}

// highest returns the highest value of a bucket.
func highest(bucket int) int64 {
	if bucket < exact {
		return int64(bucket)
	}
	power := (bucket-exact)/perPower + exactBits
	part := int64((bucket-exact)%perPower + perPower)
	return (part+1)<<(power-powerBits) - 1
}

// Add adds a value; a negative one counts as 0.
func (h *Histogram) Add(v int64) {
	v = max(v, 0)
	if h.Buckets == nil {
		h.Buckets = map[int]int64{}
	}
	h.Buckets[bucketOf(v)]++
	h.N++
	h.Sum += v
	h.Max = max(h.Max, v)
}

// Within returns how many values are up to each of some bounds and above the one before, and at last
// how many are above all. A value counts as the highest of its bucket.
func (h *Histogram) Within(bounds []int64) []int64 {
	out := make([]int64, len(bounds)+1)
	for bucket, n := range h.Buckets {
		at, _ := slices.BinarySearch(bounds, highest(bucket))
		out[at] += n
	}
	return out
}

// Merge adds the values of another histogram.
func (h *Histogram) Merge(o *Histogram) {
	if h.Buckets == nil && len(o.Buckets) > 0 {
		h.Buckets = make(map[int]int64, len(o.Buckets))
	}
	for bucket, n := range o.Buckets {
		h.Buckets[bucket] += n
	}
	h.N += o.N
	h.Sum += o.Sum
	h.Max = max(h.Max, o.Max)
}

// Quantile returns a value that a share q of all values does not exceed; 0 without any.
func (h *Histogram) Quantile(q float64) int64 {
	rank := int64(q * float64(h.N))
	if float64(rank) < q*float64(h.N) {
		rank++
	}
	rank = min(max(rank, 1), h.N)
	for _, bucket := range slices.Sorted(maps.Keys(h.Buckets)) {
		if rank -= h.Buckets[bucket]; rank <= 0 {
			return min(highest(bucket), h.Max)
		}
	}
	return h.Max
}

// clone returns a copy that shares nothing.
func (h *Histogram) clone() Histogram {
	c := *h
	c.Buckets = maps.Clone(h.Buckets)
	return c
}
