package life

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sandbox"
)

// Rule 12: no beat of an owner succeeds for most of the time that a claim lives. From then on
// nothing is let through to Bigtable, until the next one succeeds: another process may own the log,
// and that shows whether it does.
func TestSilentOwnerIsHeldUntilABeatSucceeds(t *testing.T) {
	world := sandbox.NewWorld(t, sandbox.WorldOptions{})
	q, err := queue.Open(t.Context(), queue.Options{Pipeline: "shop", URL: world.NATS.URL(), MaxBytes: 64 << 20},
		zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	log, err := q.CreateLog(t.Context(), "Orders", "t0ken")
	if err != nil {
		t.Fatal(err)
	}
	w, err := log.Claim(t.Context(), queue.ClaimOptions{Owner: "a", TTL: 400 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	world.Until("its claim may have ended", func() bool { return !w.ClaimValid() })
	_, leaving := WithLeaving(t.Context(), nil)
	closed := New(leaving, time.Second)
	closed.Claim = w
	closed.Close() // so that what would wait returns why
	if err := closed.MayWrite(); err == nil {
		t.Error("a silent owner is let through")
	}
	if _, err := w.Append(t.Context(), &checkpoint.Beat{Date: 1_790_000_000_000}, nil); err != nil {
		t.Fatal(err)
	}
	l := New(leaving, time.Second)
	defer l.Close()
	l.Claim = w
	if err := l.MayWrite(); err != nil {
		t.Errorf("behind a beat that succeeded: %v", err)
	}
}
