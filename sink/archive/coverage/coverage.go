// Package coverage represents the records of a table's stream that an archive has: intervals of
// sequence numbers for each shard.
//
// The intervals of a class are disjoint: an event extends the interval of its object, or begins a
// new one, from the last record of the shard that was archived before it. So records in overlapping
// intervals are archived twice, and records between two intervals of a shard were never archived.
package coverage

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
)

// Interval is a range of a shard's records: those after From, up to To and including it.
type Interval struct {
	From, To change.SequenceNumber
	// First is set when no earlier record of the shard is known: From is Before the first one, and
	// between it and an earlier interval nothing needs to be missing.
	First bool
}

// MarshalJSON writes [from, to] or [from, to, "first"].
func (i Interval) MarshalJSON() ([]byte, error) {
	x := []string{string(i.From), string(i.To)}
	if i.First {
		x = append(x, "first")
	}
	return json.Marshal(x)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (i *Interval) UnmarshalJSON(b []byte) error {
	var x []change.SequenceNumber
	if err := json.Unmarshal(b, &x); err != nil {
		return err
	}
	if len(x) < 2 || x[0].Compare(x[1]) >= 0 {
		return fmt.Errorf("interval %s is empty", b)
	}
	i.From, i.To, i.First = x[0], x[1], len(x) == 3 && x[2] == "first"
	return nil
}

// Set holds the intervals of each shard, rising and disjoint. The keys are Key of stream and shard.
// The zero value is empty and may be read.
type Set map[string][]Interval

// Key names a shard of a stream.
func Key(stream, shard string) string { return stream + "/" + shard }

// Before returns the number just below a sequence number, where the record before it is not known.
// It need not be the number of a record.
func Before(n change.SequenceNumber) change.SequenceNumber {
	x, ok := new(big.Int).SetString(string(n), 10)
	if !ok || x.Sign() <= 0 {
		return ""
	}
	return change.SequenceNumber(x.Sub(x, big.NewInt(1)).String())
}

// Contains reports whether a record is covered.
func (s Set) Contains(key string, n change.SequenceNumber) bool {
	all := s[key]
	at := reaching(all, n)
	return at < len(all) && all[at].From.Compare(n) < 0
}

// reaching returns the place of the first interval that ends at n or after it.
func reaching(all []Interval, n change.SequenceNumber) int {
	at, _ := slices.BinarySearchFunc(all, n, func(i Interval, n change.SequenceNumber) int { return i.To.Compare(n) })
	return at
}

// Add covers an interval besides what is covered already. Intervals that touch become one.
func (s Set) Add(key string, i Interval) {
	all := s[key]
	if n := len(all); n > 0 && all[n-1].To == i.From { // the usual case
		all[n-1].To = i.To
		return
	}
	first := reaching(all, i.From)
	last := first
	for ; last < len(all) && all[last].From.Compare(i.To) <= 0; last++ {
		if all[last].From.Compare(i.From) <= 0 {
			i.From, i.First = all[last].From, all[last].First
		}
		i.To = higher(i.To, all[last].To)
	}
	s[key] = slices.Replace(all, first, last, i)
}

// Union adds everything that another set covers.
func (s Set) Union(other Set) {
	for _, key := range slices.Sorted(maps.Keys(other)) {
		for _, i := range other[key] {
			s.Add(key, i)
		}
	}
}

// Overlap returns what both sets cover.
func (s Set) Overlap(other Set) Set {
	both := Set{}
	for key, theirs := range other {
		for _, i := range theirs {
			ours := s[key]
			for at := reaching(ours, i.From); at < len(ours) && ours[at].From.Compare(i.To) < 0; at++ {
				common := Interval{From: higher(i.From, ours[at].From), To: lower(i.To, ours[at].To)}
				if common.From.Compare(common.To) < 0 {
					both.Add(key, common)
				}
			}
		}
	}
	return both
}

// Holes returns what lies between the intervals of each shard and was never archived.
func (s Set) Holes() Set {
	holes := Set{}
	for key, all := range s {
		for n := 1; n < len(all); n++ {
			if !all[n].First {
				holes.Add(key, Interval{From: all[n-1].To, To: all[n].From})
			}
		}
	}
	return holes
}

// Subtract removes everything that another set covers.
func (s Set) Subtract(other Set) {
	for key, theirs := range other {
		for _, i := range theirs {
			s.remove(key, i)
		}
		if len(s[key]) == 0 {
			delete(s, key)
		}
	}
}

func (s Set) remove(key string, i Interval) {
	all := s[key]
	first := reaching(all, i.From)
	if first < len(all) && all[first].To == i.From {
		first++
	}
	last := first
	var rest []Interval
	for ; last < len(all) && all[last].From.Compare(i.To) < 0; last++ {
		x := all[last]
		if x.From.Compare(i.From) < 0 {
			rest = append(rest, Interval{From: x.From, To: i.From, First: x.First})
		}
		if x.To.Compare(i.To) > 0 {
			rest = append(rest, Interval{From: i.To, To: x.To})
		}
	}
	s[key] = slices.Replace(all, first, last, rest...)
}

// Clone returns a copy.
func (s Set) Clone() Set {
	c := make(Set, len(s))
	for key, all := range s {
		c[key] = slices.Clone(all)
	}
	return c
}

// Keys returns the shards in order.
func (s Set) Keys() []string { return slices.SortedFunc(maps.Keys(s), cmp.Compare[string]) }

func lower(a, b change.SequenceNumber) change.SequenceNumber {
	if a.Compare(b) <= 0 {
		return a
	}
	return b
}

func higher(a, b change.SequenceNumber) change.SequenceNumber {
	if a.Compare(b) >= 0 {
		return a
	}
	return b
}
