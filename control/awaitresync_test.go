package control

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
)

// TestWaitingForAResyncEndsBeforeAnotherGap: while that is open no resync ends. One that the table
// accepts by itself is open for a few looks only.
func TestWaitingForAResyncEndsBeforeAnotherGap(t *testing.T) {
	var open openGaps
	for i := range 5 * gapLooks {
		gaps := 1
		if i%gapLooks == gapLooks-1 {
			gaps = 0
		}
		if err := open.look(gaps, "Orders"); err != nil {
			t.Fatalf("after %d looks: %v", i, err)
		}
	}
	var err error
	for i := 1; err == nil; i++ {
		if err = open.look(1, "Orders"); err != nil && i != gapLooks {
			t.Errorf("%v after %d looks", err, i)
		}
	}
	if class, hint := failure.Of(err); class != failure.Different ||
		!strings.Contains(hint, "`replicator repair --gaps --table Orders`") {
		t.Errorf("class %v, hint %q", class, hint)
	}
}

// TestRefusedItemsEndTheWait: no further comparison ends a resync that is open for nothing but
// items that are refused, so a command does not wait for it for ever. That another resync was open,
// which was replaced, ends nothing.
func TestRefusedItemsEndTheWait(t *testing.T) {
	now := &resync.WholeStatus{ID: "r1", Doing: "open", Refused: 1, Why: "1 item refused"}
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(pipeline.Status{
			Schema: 1, Pipeline: "shop", Tables: []pipeline.TableStatus{{Source: "Orders", Target: "orders", Resync: now}},
		})
	}))
	defer admin.Close()
	cfg := &config.Config{Pipeline: "shop", Tables: []config.Table{{Source: "Orders", Target: "orders"}}}
	cfg.Admin.Listen = strings.TrimPrefix(admin.URL, "http://")
	all := clients.ForCommand(cfg, func(zapcore.Level) *zap.Logger { return zap.NewNop() })
	t.Cleanup(func() { _ = all.Close() })
	var n refusedItems
	look := func() error { return n.look(t.Context(), all, "Orders", "r1") }
	for i := range refusedLooks - 1 {
		if err := look(); err != nil {
			t.Fatalf("look %d: %v", i, err)
		}
	}
	now.Hot = 1 // a newer write may end that
	if err := look(); err != nil {
		t.Fatal(err)
	}
	now.Hot, now.ID = 0, "r0" // before the daemon has read the order
	for range 2 * refusedLooks {
		if err := look(); err != nil {
			t.Fatal(err)
		}
	}
	now.ID = "r1"
	for range refusedLooks - 1 {
		if err := look(); err != nil {
			t.Fatal(err)
		}
	}
	err := look()
	if class, hint := failure.Of(err); class != failure.Different || !strings.Contains(hint, "explain --table Orders") {
		t.Errorf("%s, %q: %v", class, hint, err)
	}
}
