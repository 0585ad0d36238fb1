package change_test

import (
	"testing"

	"github.com/tailrace-cdc/replicator/change"
)

// TestItemsAreAsLargeAsDynamoDBCountsThem: names and values count, in UTF-8 and in the bytes behind
// base64. Lists and maps take three bytes, and one for each of their elements.
func TestItemsAreAsLargeAsDynamoDBCountsThem(t *testing.T) {
	for item, want := range map[string]int{
		`{"pk":{"S":"hats"}}`:                               2 + 4,
		`{"pk":{"S":"Straße"}}`:                             2 + 7,
		`{"b":{"B":"AAEC"},"c":{"B":"AA=="}}`:               1 + 3 + 1 + 1,
		`{"n":{"N":"1234"}}`:                                1 + 3,
		`{"t":{"BOOL":true},"z":{"NULL":true}}`:             1 + 1 + 1 + 1,
		`{"l":{"L":[{"S":"a"},{"S":"bc"}]}}`:                1 + 3 + 2 + 3,
		`{"m":{"M":{"k":{"S":"v"},"l":{"L":[]}}}}`:          1 + 3 + 2 + 2 + 1 + 3,
		`{"ss":{"SS":["a","bc"]},"bs":{"BS":["AA==", ""]}}`: 2 + 3 + 2 + 1,
	} {
		var d change.Decoder
		image, err := d.Image([]byte(item))
		if err != nil {
			t.Fatalf("%s: %v", item, err)
		}
		if got := image.Size(); got != want {
			t.Errorf("%s has %d bytes, want %d", item, got, want)
		}
	}
}
