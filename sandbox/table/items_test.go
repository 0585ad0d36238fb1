package table_test

import (
	"fmt"
	"sort"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/sandbox/table"
)

var schema = table.Schema{
	Hash: []table.KeyAttr{{Name: "p", Kind: attr.S}}, Range: []table.KeyAttr{{Name: "c", Kind: attr.N}},
}

// TestItemsFollowAModel puts and deletes at random and compares with a map: what is
// there, how much, in which order within a partition, in one segment each, and what
// has expired.
func TestItemsFollowAModel(t *testing.T) {
	type id struct {
		p string
		c int
	}
	rapid.Check(t, func(t *rapid.T) {
		items := table.NewItems()
		model := map[id]int{} // time of expiry
		on := rapid.Bool().Draw(t, "ttl from the start")
		if on {
			items.SetTTL("ttl")
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			k := id{rapid.StringMatching(`[a-d]{0,2}x`).Draw(t, "p"), rapid.IntRange(-20, 20).Draw(t, "c")}
			at := rapid.IntRange(0, 100).Draw(t, "expiry")
			var m attr.Map
			m.Set("p", attr.Value{Kind: attr.S, Str: k.p})
			m.Set("c", attr.Number(fmt.Sprint(k.c)))
			m.Set("ttl", attr.Number(fmt.Sprint(at)))
			key := schema.KeyOf(m)
			old := items.Get(key)
			if _, there := model[k]; there != (old != nil) {
				t.Fatalf("%v: there is %v", k, there)
			}
			if rapid.Bool().Draw(t, "put") {
				items.Put(old, table.NewRecord(key, m), m)
				model[k] = at
			} else if old != nil {
				items.Delete(old)
				delete(model, k)
			}
		}
		if !on {
			items.SetTTL("ttl")
		}
		checkModel(t, items, len(model), func() (want []string, due int) {
			var ids []id
			for k, at := range model {
				ids = append(ids, k)
				if at <= 50 {
					due++
				}
			}
			sort.Slice(ids, func(i, j int) bool { return ids[i].p < ids[j].p || ids[i].p == ids[j].p && ids[i].c < ids[j].c })
			for _, k := range ids {
				want = append(want, fmt.Sprint(k.p, k.c))
			}
			return want, due
		})
	})
}

func checkModel(t *rapid.T, items *table.Items, n int, model func() ([]string, int)) {
	want, due := model()
	if items.Len() != n {
		t.Fatalf("%d items, want %d", items.Len(), n)
	}
	if got := len(items.Expired(time.Unix(50, 0))); got != due {
		t.Fatalf("%d items expired, want %d", got, due)
	}
	total := rapid.Int64Range(1, 9).Draw(t, "segments")
	parts := map[string][]string{}
	var bytes int64
	for segment := range total {
		first, end := table.Segment(segment, total)
		items.Ascend(first, func(r *table.Record) bool {
			if end != "" && r.Key >= end {
				return false
			}
			m := r.Item()
			p := m.Get("p").Str
			parts[p] = append(parts[p], fmt.Sprint(p, m.Get("c").Str))
			bytes += int64(r.Size)
			return true
		})
	}
	var got []string
	names := make([]string, 0, len(parts))
	for p := range parts {
		names = append(names, p)
	}
	sort.Strings(names)
	for _, p := range names {
		got = append(got, parts[p]...)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("(-want +got)\n%s", d)
	}
	if items.Bytes() != bytes {
		t.Fatalf("%d bytes, want %d", items.Bytes(), bytes)
	}
}
