package dryrun

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/source"
)

// TestPercentileIsAtMostAQuarterTooHigh, and never below the truth.
func TestPercentileIsAtMostAQuarterTooHigh(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Int64Range(0, 500_000), 1, 300).Draw(t, "sizes")
		var s, a, b sizes
		for i, n := range all {
			s.add(n)
			if i%2 == 0 {
				a.add(n)
			} else {
				b.add(n)
			}
		}
		a.merge(&b)
		if a != s {
			t.Fatal("two halves are not the whole")
		}
		slices.Sort(all)
		for _, share := range []float64{0.5, 0.99, 1} {
			rank := int(share*float64(len(all))+0.9999999) - 1
			want, got := all[rank], s.percentile(share)
			if got < want || float64(got) > 1.25*float64(want)+1 {
				t.Fatalf("%v of %d sizes: %d, want %d", share, len(all), got, want)
			}
		}
	})
	if (&sizes{}).percentile(0.5) != 0 {
		t.Error("a percentile of nothing")
	}
}

// TestHeavyKeysAreFoundAmongMany: a key with 5 % of a million writes of as many keys is found, with
// its share.
func TestHeavyKeysAreFoundAmongMany(t *testing.T) {
	var h heavy
	rng := rand.New(rand.NewPCG(1, 2))
	const total, hot = 200_000, 7
	n := 0
	for range total {
		key := rng.Uint64()
		if rng.IntN(20) == 0 {
			key = hot
			n++
		}
		h.add(key, 1)
	}
	got := h.report(total, 100)
	if len(got) != 1 || got[0].Hash != "0000000000000007" || got[0].Writes > int64(n) ||
		got[0].Writes < int64(n)-total/heavyRoom || got[0].Rate != float64(got[0].Writes)/100 {
		t.Errorf("%d writes of the hot key: %+v", n, got)
	}
	if len(h.counts) > heavyRoom {
		t.Errorf("%d counters", len(h.counts))
	}
}

// TestEstimateGrowsWithRowsAndTheirSize.
func TestEstimateGrowsWithRowsAndTheirSize(t *testing.T) {
	of := func(rows float64, bytes int64, stored int64) Estimate {
		x := &table{Table: &Table{Info: source.TableInfo{Bytes: stored}}}
		return estimate([]*table{x}, []TableReport{{
			RowsRate: rows, Rows: int64(rows) * 10, RowBytes: int64(rows) * 10 * bytes, Seconds: 10,
		}}, 100)
	}
	small, busy, large, full := of(1, 100, 0), of(20_000, 100, 0), of(20_000, 10<<10, 0), of(1, 100, 12<<40)
	if small.Nodes != 1 || busy.Nodes != 4 || large.Nodes != 38 || full.Nodes != 3 {
		t.Errorf("nodes: %d %d %d %d", small.Nodes, busy.Nodes, large.Nodes, full.Nodes)
	}
	if d := small.Dollars; d.Nodes != 474.5 || d.Storage != 0 || d.StreamReads < 51 || d.StreamReads > 53 ||
		d.Total != d.Nodes+d.Storage+d.StreamReads+d.Transfer {
		t.Errorf("%+v", d)
	}
	if of(0, 0, 0).Dollars.Transfer != 0 || busy.Dollars.Transfer <= small.Dollars.Transfer {
		t.Error("transfer does not follow the bytes")
	}
}

// TestGraphReadsChildrenAfterTheirParent, whatever the order of the listings.
func TestGraphReadsChildrenAfterTheirParent(t *testing.T) {
	g := &graph{}
	ids := func(all []source.Shard) (out []string) {
		for _, s := range all {
			out = append(out, s.ID)
		}
		slices.Sort(out)
		return out
	}
	l := source.Listing{Shards: []source.Shard{
		{ID: "a", Parent: "trimmed", Closed: true}, {ID: "b", Parent: "a"}, {ID: "c", Parent: "a"},
	}}
	if got := ids(g.begin(l, true)); !slices.Equal(got, []string{"a"}) {
		t.Errorf("first %v", got)
	}
	if got := ids(g.add(append(l.Shards, source.Shard{ID: "d", Parent: "b"}))); got != nil {
		t.Errorf("before the end of a: %v", got)
	}
	if got := ids(g.end("a")); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("after a: %v", got)
	}
	if now, later := g.count(); now != 2 || later != 1 {
		t.Errorf("%d read, %d wait", now, later)
	}
	if got := ids((&graph{}).begin(l, false)); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("from now on %v", got)
	}
}
