package deadletter

import (
	"bytes"
	"maps"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tailrace-cdc/replicator/change"
)

// TestLogOfALetterHasNoContentOfItsItem: the id leads to the reason, which may quote the item and
// is not logged.
func TestLogOfALetterHasNoContentOfItsItem(t *testing.T) {
	core, lines := observer.New(zapcore.ErrorLevel)
	letter := New("Orders", "bigtable", &change.Change{KeyHash: 0xab, Version: 7, Keys: []byte(`{"pk":{"S":"secret"}}`)},
		"refused", "secret is too long", time.Now())
	zap.New(core).Error("refused", zap.Inline(letter))
	got := lines.All()[0].ContextMap()
	want := map[string]any{
		"letter": letter.ID, "sink": "bigtable", "code": "refused", "key_hash": "00000000000000ab", "version": int64(7),
	}
	if !maps.Equal(got, want) {
		t.Errorf("logged %v of %v, want %v", slices.Sorted(maps.Keys(got)), got, want)
	}
}

// TestSummaryNamesTheItem: every letter that can be read names its item if data is shown, whatever
// refused it. Without data it names none.
func TestSummaryNamesTheItem(t *testing.T) {
	const keys, record = `{"pk":{"N":"1"}}`, `{"eventName":"INSERT","dynamodb":{"Keys":{"pk":{"N":"1"}},` +
		`"NewImage":{"pk":{"N":"1"}},"SequenceNumber":"1","ApproximateCreationDateTime":1}}`
	insert := &change.Change{Op: change.Insert, SequenceNumber: "1", Raw: []byte(record)}
	for want, l := range map[string]*Letter{
		"INSERT": New("T", "bigtable", insert, "c", "why", time.Now()),
		"COPY":   NewOfCopy("T", "bigtable", CopyItem{Copy: "backfill-1", Keys: []byte(keys)}, "c", "why", time.Now()),
		"REMOVE": NewOfEvent("T", "archive", Event{Keys: []byte(keys), Body: []byte(`{}`)}, "c", "why", time.Now()),
	} {
		shown, hidden := l.Summary(true), l.Summary(false)
		if shown.Op != want || hidden.Op != want || string(shown.Keys) != keys || hidden.Keys != nil || hidden.Record != nil {
			t.Errorf("%s: %+v, without data %+v", want, shown, hidden)
		}
	}
}

// FuzzDecode: no message makes the reader of letters panic, and what it takes is written again as
// it is.
func FuzzDecode(f *testing.F) {
	now := time.Unix(1_790_000_000, 0)
	c := &change.Change{Feed: change.Feed{Stream: "arn", Shard: "s"}, SequenceNumber: "1", Version: 7,
		Raw: []byte(`{"eventID":"1"}`)}
	dropped := &Letter{ID: droppedToken + "x", Table: "T", Code: CodeDropped, Raw: []byte("a\nb")}
	for _, l := range []*Letter{
		{ID: "00", Raw: []byte(`{"eventID":"1"}`)}, New("T", "bigtable", c, "too_large", "why", now), dropped,
		NewOfEvent("T", "archive", Event{Seq: "1", Keys: []byte(`{"pk":{"N":"1"}}`), Body: []byte(`{}`)}, "c", "why", now),
		NewOfCopy("T", "bigtable", CopyItem{Copy: "a.b", Keys: []byte(`{"pk":{"N":"1"}}`)}, "c", "why", now),
	} {
		b, err := encode(l)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)-3])
	}
	f.Add([]byte("TRLT\x01\x04null\xff\xff\xff\xff\x0f")) // a record that says that it has 4 GiB
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := decode(b)
		if err != nil {
			return
		}
		_, _ = l.Change()
		again, err := encode(l)
		if err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		same, err := decode(again)
		if err != nil {
			t.Fatalf("%q became %q: %v", b, again, err)
		}
		if third, err := encode(same); err != nil || !bytes.Equal(third, again) {
			t.Errorf("%q became %q, %v", again, third, err)
		}
	})
}
