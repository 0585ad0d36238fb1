package source

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/source/raw"
)

func keys(texts ...string) (all [][]byte) {
	for _, text := range texts {
		all = append(all, []byte(text))
	}
	return all
}

// TestRepeatedItemIsTakenOnce: some servers answer an item twice. The same bytes are the same
// reading; other bytes are two readings, and nobody knows which is the newer one.
func TestRepeatedItemIsTakenOnce(t *testing.T) {
	for second, ok := range map[string]bool{
		`{"id":{"N":"1"},"v":{"N":"1"}}`: true, `{"id":{"N":"1"},"v":{"N":"2"}}`: false,
	} {
		b, err := newBatch(keys(`{"id":{"N":"1.0"}}`))
		if err != nil {
			t.Fatal(err)
		}
		body := fmt.Sprintf(`{"Responses":{"T":[{"id":{"N":"1"},"v":{"N":"1"}},%s]},"UnprocessedKeys":{}}`, second)
		left, err := b.Take(b.Next(), []byte(body))
		var bad *raw.MalformedError
		if ok != (err == nil) || !ok && !errors.As(err, &bad) || left != 0 || ok && b.Items[0] == nil {
			t.Errorf("%s: %v", second, err)
		}
	}
}

// TestCallsHaveAtMostHundredKeys: and what is left unprocessed is asked for after the keys that
// were never asked for.
func TestCallsHaveAtMostHundredKeys(t *testing.T) {
	var all [][]byte
	for i := range 150 {
		all = append(all, fmt.Appendf(nil, `{"id":{"N":"%d"}}`, i))
	}
	b, err := newBatch(all)
	if err != nil {
		t.Fatal(err)
	}
	first := b.Next()
	left := strings.Join(first[:30], ",")
	n, err := b.Take(first, []byte(`{"Responses":{},"UnprocessedKeys":{"T":{"Keys":[`+left+`]}}}`))
	if err != nil || n != 30 || len(first) != 100 || b.Open() != 80 {
		t.Errorf("%d left of %d, %d open, %v", n, len(first), b.Open(), err)
	}
	second := b.Next()
	if len(second) != 80 || second[0] != string(all[100]) || second[79] != string(all[29]) || b.Open() != 0 {
		t.Errorf("%d keys, from %s", len(second), second[0])
	}
}

func TestKeysHaveOneOrTwoScalars(t *testing.T) {
	for text, ok := range map[string]bool{
		`{"a":{"S":"x"},"b":{"B":"AQ=="}}`: true, `{}`: false, `{"a":{"BOOL":true}}`: false, `{"a":{"B":"?"}}`: false,
		`{"a":{"SS":["x"]}}`: false, `null`: false, `{"a":{"N":"1"}`: false,
	} {
		if _, err := itemKey([]byte(text)); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// FuzzReplies: no reply makes the scanners panic, and what they accept is consistent.
func FuzzReplies(f *testing.F) {
	f.Add([]byte(`{"Items":[{"id":{"N":"1"}}],"Count":1,"LastEvaluatedKey":{"id":{"N":"1"}},` +
		`"ConsumedCapacity":{"CapacityUnits":1}}`))
	f.Add([]byte(`{"Responses":{"T":[{"id":{"N":"1"}}]},"UnprocessedKeys":{"T":{"Keys":[{"id":{"N":"2"}}]}}}`))
	f.Add([]byte(`{"Responses":{},"UnprocessedKeys":{},"ConsumedCapacity":[{"CapacityUnits":0.5}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if page, err := scanReply(body); err == nil && page.After != "" {
			if _, err := itemKey([]byte(page.After)); err != nil {
				t.Errorf("%q continues at %q: %v", body, page.After, err)
			}
		}
		b, err := newBatch(keys(`{"id":{"N":"1"}}`, `{"id":{"N":"2.0"}}`, `{"id":{"N":"2"}}`))
		if err != nil {
			t.Fatal(err)
		}
		left, err := b.Take(b.Next(), body)
		if err == nil && (left != b.Open() || left > 2) {
			t.Errorf("%q leaves %d keys, %d are open", body, left, b.Open())
		}
	})
}
