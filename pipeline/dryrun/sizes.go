package dryrun

import (
	"math"
	"math/bits"
)

// sizes counts sizes in buckets, four for each power of two, so that a percentile is at most a
// quarter too high.
type sizes struct {
	buckets [4 * 64]int64
	n       int64
	max     int64
}

func (s *sizes) add(size int64) {
	s.n++
	s.max = max(s.max, size)
	s.buckets[bucketOf(size)]++
}

func (s *sizes) merge(other *sizes) {
	s.n, s.max = s.n+other.n, max(s.max, other.max)
	for i, n := range other.buckets {
		s.buckets[i] += n
	}
}

// bucketOf returns the bucket of a size: by its highest bit and the two below it.
func bucketOf(size int64) int {
	if size < 4 {
		return int(max(size, 0))
	}
	high := bits.Len64(uint64(size)) - 1
	return 4*(high-1) + int(size>>(high-2)&3)
}

// upperOf returns the largest size of a bucket.
func upperOf(bucket int) int64 {
	if bucket < 4 {
		return int64(bucket)
	}
	high, part := bucket/4+1, int64(bucket%4)
	return (4+part+1)<<(high-2) - 1
}

// percentile returns the size that a share of all sizes do not exceed; 0 without any.
func (s *sizes) percentile(share float64) int64 {
	rank := int64(math.Ceil(share * float64(s.n)))
	for i, n := range s.buckets {
		if rank -= n; rank <= 0 && s.n > 0 {
			return min(upperOf(i), s.max)
		}
	}
	return 0
}

// Sizes is a distribution in bytes.
type Sizes struct {
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
}

func (s *sizes) report() Sizes {
	return Sizes{P50: s.percentile(0.5), P99: s.percentile(0.99), Max: s.max}
}

// ratio returns a / b, 0 where b is not positive.
func ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}
