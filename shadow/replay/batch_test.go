package replay_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/sandbox"
)

// spoil changes the values of a family in a row.
func (w *place) spoil(row, family string) {
	w.t.Helper()
	r, n := w.rows.Rows[row], 0
	for i := range r.Cells {
		if r.Cells[i].Family == family {
			r.Cells[i].Value += "?"
			n++
		}
	}
	if n == 0 {
		w.t.Fatalf("row %s has no cells in %s", row, family)
	}
}

// TestItemsOfABatchByARN: the answer calls tables as the request does. What it leaves to a later
// request is not looked for, and the rest is compared.
func TestItemsOfABatchByARN(t *testing.T) {
	w := newPlace(t, 1, designs[0])
	for _, sk := range []string{"a", "b"} {
		w.put(0, `{"pk":{"S":"p"},"sk":{"S":"`+sk+`"},"y":{"S":"1"}}`)
	}
	w.spoil("A#p#b", "d")
	const arn = "arn:aws:dynamodb:" + sandbox.Region + ":" + sandbox.Account + ":table/table0"
	const keys = `[{"pk":{"S":"p"},"sk":{"S":"a"}},{"pk":{"S":"p"},"sk":{"S":"b"}}]`
	body := fmt.Sprintf(`{"RequestItems":{%q:{"Keys":%s}}}`, arn, keys)
	found, s := w.replay([]request{{"BatchGetItem", body, w.call("BatchGetItem", body)}})
	if r := only(t, s); len(found) != 1 || !strings.Contains(found[0].Key, `"b"`) || r.Replayed != 2 || r.Differed != 1 {
		t.Errorf("%+v: %+v", found, r)
	}
	answer := fmt.Sprintf(`{"Responses":{%[1]q:[{"pk":{"S":"p"},"sk":{"S":"b"},"y":{"S":"1"}}]},`+
		`"UnprocessedKeys":{%[1]q:{"Keys":[{"pk":{"S":"p"},"sk":{"S":"a"}}]}}}`, arn)
	found, s = w.replay([]request{{"BatchGetItem", body, answer}})
	if r := only(t, s); len(found) != 1 || r.Replayed != 1 || r.Skipped["busy"] != 1 || r.Differed != 1 {
		t.Errorf("with a key that is left: %+v: %+v", found, r)
	}
}
