package coverage

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/change"
)

func seq(n int) change.SequenceNumber { return change.SequenceNumber(strconv.Itoa(n)) }

// TestSetAgreesWithAListOfNumbers compares each operation with the same one on a set of single
// numbers.
func TestSetAgreesWithAListOfNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) (Set, map[int]bool) {
			s, model := Set{}, map[int]bool{}
			for range rapid.IntRange(0, 12).Draw(t, name) {
				from := rapid.IntRange(1, 120).Draw(t, "from")
				to := from + rapid.IntRange(1, 15).Draw(t, "size")
				s.Add("k", Interval{From: seq(from), To: seq(to)})
				for n := from + 1; n <= to; n++ {
					model[n] = true
				}
			}
			return s, model
		}
		a, inA := draw("a")
		b, inB := draw("b")
		both, all := a.Overlap(b), a.Clone()
		all.Union(b)
		holes, left := a.Holes(), a.Clone()
		left.Subtract(b)
		low, high := 0, 0
		for n := range inA {
			if low == 0 || n < low {
				low = n
			}
			high = max(high, n)
		}
		for n := 1; n < 140; n++ {
			for _, c := range []struct {
				what      string
				got, want bool
			}{
				{"contains", a.Contains("k", seq(n)), inA[n]},
				{"overlap", both.Contains("k", seq(n)), inA[n] && inB[n]},
				{"subtract", left.Contains("k", seq(n)), inA[n] && !inB[n]},
				{"union", all.Contains("k", seq(n)), inA[n] || inB[n]},
				{"holes", holes.Contains("k", seq(n)), low < n && n < high && !inA[n]},
			} {
				if c.got != c.want {
					t.Fatalf("%s: %d is %v, want %v\na %v\nb %v", c.what, n, c.got, c.want, a, b)
				}
			}
		}
		for n := 1; n < len(a["k"]); n++ {
			if a["k"][n-1].To.Compare(a["k"][n].From) >= 0 {
				t.Fatalf("intervals that touch are not one: %v", a)
			}
		}
	})
}

func TestIntervalsAreJSONAndEmptyOnesAreRefused(t *testing.T) {
	s := Set{Key("2026-01-01T00:00:00.000", "shardId-1"): {
		{From: "9", To: "10"}, {From: "12", To: "4000000000000000000000000000000000000001", First: true},
	}}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back Set
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, back); diff != "" {
		t.Error(diff)
	}
	if n := len(s.Holes()); n > 0 {
		t.Errorf("%d holes before the first record that is known of a shard", n)
	}
	if err := json.Unmarshal([]byte(`{"k":[["10","9"]]}`), &back); err == nil {
		t.Error("an interval that ends before it begins was read")
	}
}

func TestBeforeIsOneLess(t *testing.T) {
	for n, want := range map[change.SequenceNumber]change.SequenceNumber{
		"1": "0", "1000": "999", "x": "",
		"4000000000000000000000000000000000000000": "3999999999999999999999999999999999999999",
	} {
		if got := Before(n); got != want {
			t.Errorf("before %s is %q, want %q", n, got, want)
		}
	}
}
