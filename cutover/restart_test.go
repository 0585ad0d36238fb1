package cutover_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/cutover"
	"github.com/tailrace-cdc/replicator/daemon/daemontest"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// TestCutoverFindsTheDaemonThatWasStartedAgain: an embedded queue has another address and token
// then. A cutover that waits for its owner behind a fence must not end.
func TestCutoverFindsTheDaemonThatWasStartedAgain(t *testing.T) {
	t.Parallel()
	w := daemontest.New(t, 719)
	w.Configure("{source: Orders, target: orders, backfill: none}")
	w.Prepare("Orders")
	w.Config.Queue.URL, w.Config.Queue.Dir = "", t.TempDir()
	start := func() *queue.Queue {
		q, err := queue.Open(t.Context(), clients.QueueOptions(w.Config), zap.NewNop(), prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = q.Close() })
		return q
	}
	first := start()
	log, err := first.CreateLog(t.Context(), "Orders", "t0ken")
	if err == nil {
		_, err = log.Claim(t.Context(), queue.ClaimOptions{Owner: "a"})
	}
	if err != nil {
		t.Fatal(err)
	}
	sink := w.Sink(w.Clients())
	id := w.Catalog(w.Clients()).Table("Orders").Identity(w.Config.Pipeline, sink)
	if err := sink.CreateState(t.Context(), &bigtable.State{Identity: id, Issued: true}); err != nil {
		t.Fatal(err)
	}
	clients, s := w.Pair("Orders")
	c := cutover.New(w.Config, clients, s, cutover.Options{})
	if logs, err := c.Logs(t.Context()); err != nil || logs[0].State.Owner != "a" {
		t.Fatalf("before: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	start()
	if logs, err := c.Logs(t.Context()); err != nil || logs[0].State.Owner != "a" {
		t.Errorf("after another start: %v", err)
	}
}
