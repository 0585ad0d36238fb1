package render

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/queue/deadletter"
)

// TestLetterOfACopyNamesItsItem: the letter of a copy has no record, and names its item all the
// same.
func TestLetterOfACopyNamesItsItem(t *testing.T) {
	of := func(l *deadletter.Letter) string {
		x := Letter{Summary: l.Summary(true), Next: "replicator explain",
			Item: json.RawMessage(`{"pk":{"S":"big"},"n":{"N":"1"}}`)}
		var b strings.Builder
		x.Print(&b, true)
		return b.String()
	}
	copied := deadletter.NewOfCopy("T", "bigtable",
		deadletter.CopyItem{Copy: "backfill-1", Keys: []byte(`{"pk":{"S":"big"}}`), Version: 7},
		"too_large", "too large", time.Now())
	got := of(copied)
	for _, want := range []string{"item that copy backfill-1 read of T, version 7", `key   {"pk":{"S":"big"}}`,
		`item  {"pk":{"S":"big"},"n":{"N":"1"}}`, "next: replicator explain"} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "UNKNOWN") || strings.HasSuffix(got, "\n\n") {
		t.Errorf("%s", got)
	}
	unreadable := &deadletter.Letter{ID: "x", Table: "T", Code: deadletter.CodeUnreadable}
	if got := of(unreadable); strings.Contains(got, "UNKNOWN") || !strings.Contains(got, "the letter names no key") {
		t.Errorf("%s", got)
	}
}
