package apply

import (
	"slices"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// A removal and the insert after it may be in different rows: the item has an order all the same, or for a while it is
// in both.
func TestChangesOfAnItemTakeTurnsAcrossRows(t *testing.T) {
	m, problems := transform.ParseMapping("mapping", []byte(`
families: {d: {max_versions: 1}}
rules:
- name: shelf
  match: {pk: "{id}", sk: "Shelf#{s}"}
  row: "{id}#{s}"
  cells: [{attr: v, to: "d:shelf"}]
  on_remove: row
  acknowledged: [cascade]
- name: book
  match: {pk: "{id}", sk: "Book#{n}"}
  row: "{id}#{shelf}"
  cells: [{attr: v, to: "d:book/{n}"}]
`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	key := func(name string) change.KeyAttr { return change.KeyAttr{Name: name, Type: 'S'} }
	sk := key("sk")
	p, problems := transform.Compile(transform.Table{Pipeline: "shop", Source: "Orders", Target: "orders",
		Schema: change.KeySchema{Partition: key("pk"), Sort: &sk}, View: "NEW_AND_OLD_IMAGES", Mapping: m})
	if p == nil {
		t.Fatal(problems)
	}
	const keys = `{"pk":{"S":"p"},"sk":{"S":"Book#1"}}`
	book := func(shelf string) []byte {
		return []byte(`{"pk":{"S":"p"},"sk":{"S":"Book#1"},"shelf":{"S":"` + shelf + `"}}`)
	}
	o := newTurns(p)
	first, _ := o.enqueue(&change.Change{Op: change.Remove, Keys: []byte(keys), KeyHash: 7, Version: 1, Old: book("a")})
	second, _ := o.enqueue(&change.Change{Op: change.Insert, Keys: []byte(keys), KeyHash: 7, Version: 2, New: book("b")})
	other, _ := o.enqueue(&change.Change{Op: change.Insert, Keys: []byte(`{"pk":{"S":"p"},"sk":{"S":"Book#2"}}`),
		KeyHash: 8, Version: 1, New: book("c")})
	if !slices.Contains(second.after, first) || len(other.after) > 0 {
		t.Errorf("the insert waits for %d changes, a change in another row for %d; want 1 and 0", len(second.after),
			len(other.after))
	}
}
