package deadletter

import (
	"maps"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tailrace-cdc/replicator/change"
)

// TestLogOfALetterHasNoContentOfItsItem: the id leads to the reason, which may quote the item and is not logged.
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

func FuzzDecode(f *testing.F) {
	b, err := encode(&Letter{ID: "00", Raw: []byte(`{"eventID":"1"}`)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)-3])
	f.Fuzz(func(t *testing.T, b []byte) {
		if l, err := decode(b); err == nil {
			_, _ = l.Change()
		}
	})
}
