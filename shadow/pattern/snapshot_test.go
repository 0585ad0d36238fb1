package pattern

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/change"
)

func decoder() *change.Decoder { return new(change.Decoder) }

// drawSnapshot draws the snapshot of a collector that counted some requests.
func drawSnapshot(t *rapid.T) *Snapshot {
	c := NewCollector()
	for range rapid.IntRange(0, 12).Draw(t, "requests") {
		r := Request{Skipped: rapid.SampledFrom([]Reason{"", "", "", BadJSON, BadKey}).Draw(t, "skipped")}
		for i := range rapid.IntRange(1, 2).Draw(t, "uses") {
			if r.Skipped == "" {
				r.Uses = append(r.Uses, Use{Keys: i + 1, Pattern: Pattern{Kind: Read, Operation: "GetItem",
					Table: rapid.SampledFrom([]string{"A", "B", "C"}).Draw(t, "table"), Filter: rapid.Bool().Draw(t, "filter")}})
			}
		}
		c.Add(r, Answer{Bytes: rapid.Int64Range(0, 1<<40).Draw(t, "bytes"), Failed: rapid.Bool().Draw(t, "failed"),
			Took: time.Duration(rapid.Int64Range(0, 1<<40).Draw(t, "took"))})
	}
	return throughJSON(t, c.Snapshot())
}

// throughJSON writes a snapshot and reads it.
func throughJSON(t tb, s *Snapshot) *Snapshot {
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	out, err := Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func merged(t tb, all ...*Snapshot) *Snapshot {
	out := &Snapshot{}
	for _, s := range all {
		out.Merge(s)
	}
	return throughJSON(t, out)
}

func TestMergeIsAssociativeAndKeepsSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawSnapshot(t), drawSnapshot(t), drawSnapshot(t)
		all := merged(t, a, b, c)
		for _, other := range []*Snapshot{merged(t, a, merged(t, b, c)), merged(t, c, b, a), merged(t, b, a, c)} {
			if diff := cmp.Diff(all, other); diff != "" {
				t.Fatalf("another order of merging gives:\n%s", diff)
			}
		}
		var requests, skipped, uses, values, sum int64
		for _, s := range []*Snapshot{a, b, c} {
			requests += s.Requests
			for _, n := range s.Skipped {
				skipped += n
			}
			for i := range s.Patterns {
				uses += s.Patterns[i].Requests
				values += s.Patterns[i].Bytes.N
				sum += s.Patterns[i].Bytes.Sum
			}
		}
		for i := range all.Patterns {
			n := &all.Patterns[i]
			uses -= n.Requests
			values -= n.Bytes.N
			sum -= n.Bytes.Sum
			for _, count := range n.Bytes.Buckets {
				n.Bytes.N -= count
			}
			if n.Bytes.N != 0 || i > 0 && all.Patterns[i-1].Requests < n.Requests {
				t.Fatalf("%s: %d values are in no bucket, or it is not in its place", n.Pattern.Text(), n.Bytes.N)
			}
		}
		for _, n := range all.Skipped {
			skipped -= n
		}
		if all.Requests != requests || skipped != 0 || uses != 0 || values != 0 || sum != 0 {
			t.Fatalf("sums are lost: %d of %d requests; %d %d %d %d", all.Requests, requests, skipped, uses, values, sum)
		}
	})
}

func TestPatternsBeyondTheLimitAreOther(t *testing.T) {
	c := NewCollector()
	const each = 3
	for range each {
		for i := range maxPatterns + 50 {
			c.Add(Request{Uses: []Use{{Keys: 1, Pattern: Pattern{Kind: Read, Operation: "Query", Table: "A",
				Key: []Key{{Attr: fmt.Sprint("k", i), Op: "="}}}}}}, Answer{})
		}
		for i := range maxTables + 10 {
			scan := Pattern{Kind: Scan, Operation: "Scan", Table: fmt.Sprint("T", i)}
			c.Add(Request{Uses: []Use{{Keys: 1, Pattern: scan}}}, Answer{})
		}
	}
	s := c.Snapshot()
	other := map[string]int64{}
	var all int64
	for i := range s.Patterns {
		all += s.Patterns[i].Requests
		if p := s.Patterns[i].Pattern; p.Kind == Other {
			other[p.Table] = s.Patterns[i].Requests
		}
	}
	if want := (map[string]int64{"A": 50 * each, "": 11 * each}); cmp.Diff(want, other) != "" || all != s.Requests ||
		len(s.Patterns) != maxPatterns+maxTables-1+2 {
		t.Errorf("others %v, %d of %d requests in %d patterns", other, all, s.Requests, len(s.Patterns))
	}
	if s.Patterns[0].Pattern.Text() != "other A" || s.Share(0) != float64(50*each)/float64(s.Requests) {
		t.Errorf("the first is %q with share %v", s.Patterns[0].Pattern.Text(), s.Share(0))
	}
}

func TestQuantilesAreAnEighthTooHighAtMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, math.MaxInt64))
		values := rapid.SliceOfN(value, 1, 50).Draw(t, "values")
		var h Histogram
		for _, v := range values {
			h.Add(v)
			if b := bucketOf(v); highest(b) < v || b > 0 && highest(b-1) >= v {
				t.Fatalf("%d is in bucket %d, which ends at %d", v, b, highest(b))
			}
		}
		for _, q := range []float64{0.5, 0.95, 0.99, 1} {
			got := h.Quantile(q)
			var upTo, below float64
			for _, v := range values {
				if v <= got {
					upTo++
				}
				if v < got-got/8 {
					below++
				}
			}
			if n := float64(len(values)); upTo < q*n || below >= q*n && below > 0 && below == n {
				t.Fatalf("quantile %v of %v is %d", q, values, got)
			}
		}
	})
	var none Histogram
	if none.Quantile(0.5) != 0 {
		t.Error("a quantile of nothing is not 0")
	}
}

func TestNewerSnapshotsAreRefused(t *testing.T) {
	for text, ok := range map[string]bool{`{"format":1}`: true, `{"format":2}`: false, `{}`: false, `[`: false} {
		if _, err := Parse([]byte(text)); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}
