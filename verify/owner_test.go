package verify

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// owned writes a row as its only item does, with a guard that names any item of any table and
// pipeline.
func (e *engine) owned(row, pipeline, table, key, x string) {
	e.t.Helper()
	e.version++
	e.write(&transform.Write{Item: transform.Item{Guard: guardQualifier(pipeline, table, key), Table: table,
		Pipeline: pipeline, Key: []byte(key)}, Version: change.Version(e.version), Rows: []transform.Row{{Key: []byte(row),
		Class: transform.ClassR, Cells: []transform.Cell{{Family: "d", Qualifier: []byte("x"), Value: []byte(x)}}}}})
}

// TestRowWithTheRightContentOfAnotherItem: rows hold no keys in their cells, so two items may look
// alike. Under an earlier mapping, or from another pipeline, another item had the row; the write of
// the item that should be in it now was lost. A removal of the other one would empty the row, so it
// is not equal, whatever a reader sees.
func TestRowWithTheRightContentOfAnotherItem(t *testing.T) {
	for name, c := range map[string]struct {
		pipeline, table, key string
		want                 map[string][]Kind
	}{
		"of its own": {"p", "S", keyOf("p", "a"), map[string][]Kind{}},
		"of its table": {"p", "S", keyOf("old", "b"),
			map[string][]Kind{keyOf("p", "a"): {NoGuard}, keyOf("old", "b"): {Stale}}},
		"of another table":    {"p", "T", keyOf("p", "a"), map[string][]Kind{keyOf("p", "a"): {NoGuard}}},
		"of another pipeline": {"q", "S", keyOf("p", "a"), map[string][]Kind{keyOf("p", "a"): {NoGuard}}},
	} {
		e := newEngine(t, "")
		e.lose("p", "a", `"x":{"S":"1"}`)
		e.owned("p#a", c.pipeline, c.table, c.key, "1")
		f := e.full(e.options())
		sorted := cmpopts.SortSlices(func(a, b Kind) bool { return a < b })
		if diff := cmp.Diff(c.want, candidates(t, f), sorted); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for key, v := range e.verdicts(f) {
			if v.Status != Different {
				t.Errorf("%s: %s is %+v", name, key, v)
			}
		}
	}
}
