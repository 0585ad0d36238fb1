package control

import (
	"testing"

	"github.com/tailrace-cdc/replicator/change"
)

// TestKeyHasTheHashesOfBothOrders: the log does not say which attribute is the partition key.
func TestKeyHasTheHashesOfBothOrders(t *testing.T) {
	schema := change.KeySchema{
		Partition: change.KeyAttr{Name: "pk", Type: 'S'}, Sort: &change.KeyAttr{Name: "a", Type: 'N'},
	}
	var d change.Decoder
	const key = `{"a":{"N":"1"},"pk":{"S":"hats"}}`
	img, err := d.Image([]byte(key))
	if err != nil {
		t.Fatal(err)
	}
	canonical, err := schema.Canonical(nil, img)
	if err != nil {
		t.Fatal(err)
	}
	hashes, err := KeyHashes(key)
	if err != nil || len(hashes) != 2 || !hashes[change.HashKey(canonical)] {
		t.Errorf("%v %v", hashes, err)
	}
	if one, err := KeyHashes(`{"pk":{"S":"hats"}}`); err != nil || len(one) != 1 {
		t.Errorf("%v %v", one, err)
	}
	if none, err := KeyHashes(""); err != nil || none != nil {
		t.Errorf("%v %v", none, err)
	}
	for _, bad := range []string{"hats", "{}", `{"a":{"S":"1"},"b":{"S":"1"},"c":{"S":"1"}}`, `{"pk":{"BOOL":true}}`} {
		if _, err := KeyHashes(bad); err == nil {
			t.Errorf("%s is a key", bad)
		}
	}
}
