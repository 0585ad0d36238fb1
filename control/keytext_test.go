package control

import (
	"testing"

	"github.com/tailrace-cdc/replicator/change"
)

// TestKeysAreTypedInOneWay: all commands read NAME=VALUE by the types of the table's key, and JSON,
// plain or typed.
func TestKeysAreTypedInOneWay(t *testing.T) {
	numbered := change.KeySchema{
		Partition: change.KeyAttr{Name: "pk", Type: 'S'}, Sort: &change.KeyAttr{Name: "sk", Type: 'N'},
	}
	text := change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'}}
	const want = `{"pk":{"S":"hats"},"sk":{"N":"1"}}`
	for _, c := range []struct {
		schema change.KeySchema
		words  []string
		want   string // "": refused
	}{
		{numbered, []string{"pk=hats,sk=1"}, want},
		{numbered, []string{"sk=1.0", "pk=hats"}, want},
		{numbered, []string{`{"pk":"hats","sk":1}`}, want},
		{numbered, []string{`{"pk":{"S":"hats"},"sk":{"N":"1"}}`}, want},
		{numbered, []string{"pk=hats"}, ""},
		{numbered, []string{"pk=hats,sk=one"}, ""},
		{numbered, []string{"hats"}, ""},
		{numbered, []string{`{"pk":`}, ""},
		{text, []string{"pk=a,b,c=d=e"}, `{"pk":{"S":"a,b,c=d=e"}}`},
		{text, []string{"pk=1"}, `{"pk":{"S":"1"}}`},
	} {
		got, err := ReadKey(c.words, c.schema)
		if (err != nil) != (c.want == "") || err == nil && string(got) != c.want {
			t.Errorf("%q: %s, %v; want %s", c.words, got, err, c.want)
		}
	}
	for _, typed := range []string{"pk=hats,sk=1", "sk=1,pk=hats", `{"pk":"hats","sk":1}`, want} {
		hashes, err := KeyHashes(typed)
		if err != nil || !hashes[change.HashKey([]byte(want))] {
			t.Errorf("hashes of %s: %v, %v", typed, hashes, err)
		}
	}
}
