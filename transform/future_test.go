package transform

import (
	"fmt"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
)

// TestGuardInTheFutureIsReplacedWhereTheRowIsRight: the guard is what must be replaced, so the row
// is written although a reader sees the item as it is, or sees nothing of it.
func TestGuardInTheFutureIsReplacedWhereTheRowIsRight(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, `
families: {d: {max_versions: 1}, h: {max_versions: 3}}
rules:
- {name: own, match: {pk: "o#{p}", sk: "{s}"}, row: "o#{p}#{s}", cells: [{attr: v, to: "h:v"}]}
- {name: shared, match: {pk: "s#{p}", sk: "{s}"}, row: "s#{p}",
  cells: [{attrs: all, except: [pk, sk], to: "d:{s}/{attr}"}]}
- {name: kept, match: {pk: "k#{p}", sk: "{s}"}, row: "k#{p}", on_ttl_expiry: keep, cells: [{attr: v, to: "d:{s}/v"}]}
`)
	for _, pk := range []string{"o#1", "s#1", "k#1"} {
		for _, here := range []bool{true, false} {
			keys := fmt.Sprintf(`{"pk":{"S":%q},"sk":{"S":"a"}}`, pk)
			item := fmt.Sprintf(`{"pk":{"S":%q},"sk":{"S":"a"},"v":{"S":"x"}}`, pk)
			m := newModel()
			put := &change.Change{Op: change.Insert, Version: 900, Keys: []byte(keys), New: []byte(item)}
			m.apply(t, writeOf(t, p, put))
			r := &Resync{Keys: []byte(keys), Item: []byte(item), Version: 50, Future: 900, Rows: rowsOf(t, p, item)}
			if !here {
				r.Item = nil
				if pk != "k#1" { // else it has expired, and is kept
					m.apply(t, writeOf(t, p, &change.Change{Op: change.Remove, Version: 950, Keys: put.Keys, Old: put.New}))
					r.Future = 950
				}
			}
			w := m.resync(t, p, r)
			if len(w.Rows) != 1 || w.Version != 50 || w.Rows[0].Left != (!here && pk != "k#1") {
				t.Errorf("%s, here %v: %+v", pk, here, w.Rows)
			}
			if r.Future = 0; len(m.resync(t, p, r).Rows) > 0 && here && pk != "k#1" {
				t.Errorf("%s: written without such a guard", pk)
			}
		}
	}
}
