package request

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/s2"

	"github.com/tailrace-cdc/replicator/queue/conn"
)

var asked = time.Unix(1_790_000_000, 0).UTC()

// Every item is in one chunk, in the order of the command, and every chunk fits into a message.
func TestSplitKeepsAllItems(t *testing.T) {
	var items []Item
	for i := range 5000 {
		key := json.RawMessage(fmt.Sprintf(`{"pk":{"S":"%d"}}`, i))
		items = append(items, Item{Key: key, Rows: [][]byte{make([]byte, i%700)}})
	}
	var got []Item
	ids := map[string]bool{}
	for _, c := range Split(Resync, "me", items, asked) {
		b, err := json.Marshal(c)
		if err != nil || len(b) > MaxChunk+64<<10 || ids[c.ID] || !c.Asked.Equal(asked) {
			t.Fatalf("chunk %s of %d bytes: %v", c.ID, len(b), err)
		}
		ids[c.ID] = true
		got = append(got, c.Items...)
	}
	if !reflect.DeepEqual(items, got) || len(ids) < 5 {
		t.Errorf("%d chunks hold %d items, not the %d in their order", len(ids), len(got), len(items))
	}
}

// Rule 11: a chunk of a newer build is refused; what is none at all is told apart from it.
func TestNewerRequestIsRefused(t *testing.T) {
	b, err := encode(&Chunk{ID: "a", What: Resync})
	if err != nil {
		t.Fatal(err)
	}
	b[len(magic)] = format + 1
	if _, err := decode(b); !errors.As(err, new(*conn.FormatError)) {
		t.Errorf("newer: %v", err)
	}
	b[len(magic)] = 0
	bomb := append([]byte("TRLQ\x01"), s2.Encode(nil, make([]byte, 17<<20))...)
	for what, b := range map[string][]byte{
		"format 0": b, "nothing": nil, "text": []byte("nats pub"), "half": b[:5], "17 MiB of zeros": bomb,
	} {
		if _, err := decode(b); !errors.Is(err, errForeign) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func FuzzChunk(f *testing.F) {
	items := []Item{{Key: json.RawMessage(`{"pk":{"N":"1"}}`), Letters: []string{"x"}}}
	for _, c := range Split(Letters, "me", items, asked) {
		c.Outcome = &Outcome{Done: asked, Hot: 1, Notes: []Note{{Item: 0, Code: "hot", Until: asked}}}
		b, err := encode(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)-3])
	}
	f.Add([]byte("TRLQ\x01\x04\x0cnull"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decode(b)
		if err != nil {
			return
		}
		again, err := encode(c)
		if err != nil {
			return // a key that is no JSON
		}
		if got, err := decode(again); err != nil || !cmp.Equal(c, got, cmp.Comparer(func(a, b json.RawMessage) bool {
			return jsonEqual(a, b)
		})) {
			t.Errorf("%+v became %+v, %v", c, got, err)
		}
	})
}

func jsonEqual(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && cmp.Equal(x, y) || len(a) == 0 && len(b) <= 4
}
