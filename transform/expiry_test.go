package transform

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
)

const keeping = `
families: {d: {max_versions: 1}, a: {max_age: 1h}, i: {max_age: 1h, max_versions: 2, combine: intersection}}
rules:
- {name: own, match: {pk: "o#{p}", sk: "{s}"}, row: "o#{p}#{s}", on_ttl_expiry: keep, cells: [{attr: v, to: "d:v"},
  {attr: t, to: "a:t", ts: "{n}"}, {attr: i, to: "i:i", ts: "{n}"}]}
- {name: shared, match: {pk: "s#{p}", sk: "{s}"}, row: "s#{p}", on_ttl_expiry: keep, cells: [{attr: v, to: "d:{s}/v"}]}
`

// TestKeptExpiryOfNothingVisibleIsATombstone: nothing that a reader sees changes, and the guard
// does not stay for ever.
func TestKeptExpiryOfNothingVisibleIsATombstone(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, keeping)
	const hour = 3_600_000
	for name, c := range map[string]struct{ pk, attrs, left string }{
		"a cell":                     {"o#1", `"v":{"S":"x"}`, ""},
		"no cell":                    {"o#1", `"w":{"S":"x"}`, "o#1#s"},
		"a cell that aged":           {"o#1", `"t":{"S":"x"},"n":{"N":"1"}`, "o#1#s"},
		"a cell that ages":           {"o#1", fmt.Sprintf(`"t":{"S":"x"},"n":{"N":"%d"}`, 9*hour+1), ""},
		"one that aged, and one":     {"o#1", `"t":{"S":"x"},"n":{"N":"1"},"v":{"S":"x"}`, ""},
		"old, but among the newest":  {"o#1", `"i":{"S":"x"},"n":{"N":"1"}`, ""},
		"no cell in a row of others": {"s#1", `"w":{"S":"x"}`, "s#1"},
		"a cell in a row of others":  {"s#1", `"v":{"S":"x"}`, ""},
	} {
		key := fmt.Sprintf(`"pk":{"S":%q},"sk":{"S":"s"}`, c.pk)
		item := []byte("{" + key + "," + c.attrs + "}")
		put := &change.Change{Op: change.Insert, Version: 7, Created: hour, Keys: []byte("{" + key + "}"), New: item}
		expire := &change.Change{Op: change.Remove, TTL: true, Version: 9, Created: 10 * hour, Keys: put.Keys, Old: item}
		w := writeOf(t, p, expire)
		var left []string
		for _, r := range w.Rows {
			if !r.Left || r.Exclusive || len(r.Cells)+len(r.Deletes) > 0 {
				t.Errorf("%s: %+v", name, r)
			}
			left = append(left, string(r.Key))
		}
		if diff := cmp.Diff(list(c.left), left); diff != "" || w.Version != 9 {
			t.Errorf("%s, at %d (-want +got):\n%s", name, w.Version, diff)
		}
		united := writeOf(t, p, put, expire)
		if len(united.Rows) != 1 || united.Rows[0].Left != (c.left != "") || united.Version != 7 {
			t.Errorf("%s, united: %+v", name, united)
		}
		if again := writeOf(t, p, put, expire, put); len(again.Rows) != 1 || again.Rows[0].Left {
			t.Errorf("%s, put again: %+v", name, again)
		}
		expire.Old = nil // the stream has no old images
		if w := writeOf(t, p, expire); len(w.Rows) > 0 {
			t.Errorf("%s, without an old image: %+v", name, w)
		}
	}
}

func list(one string) []string {
	if one == "" {
		return nil
	}
	return []string{one}
}
