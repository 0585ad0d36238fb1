package queue

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/queue/conn"
)

// TestLostRequestDoesNotWaitForTheDeadline: a request on a connection that has just broken is never
// answered. It is given up after AckTimeout, however late the caller's deadline is: else a command
// with --timeout would end without an answer by one lost request. A NATS server without JetStream
// stands for one with it, and answers only at the start.
func TestLostRequestDoesNotWaitForTheDeadline(t *testing.T) {
	srv, other := withoutJetStream(t)
	answers := make(chan struct{}, 1)
	answers <- struct{}{}
	_, err := other.Subscribe("$JS.API.>", func(m *nats.Msg) {
		select {
		case <-answers:
			_ = m.Respond([]byte(`{"type":"io.nats.jetstream.api.v1.account_info_response","limits":{"max_streams":-1}}`))
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Flush(); err != nil {
		t.Fatal(err)
	}
	q, err := Open(t.Context(), Options{Pipeline: "shop", URL: srv.ClientURL(), AckTimeout: 100 * time.Millisecond},
		zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	js := q.conn.JS
	for name, ask := range map[string]func() error{
		"log":      func() error { _, err := q.Log(ctx, "Orders"); return err },
		"token":    func() error { _, err := q.KeptToken(ctx, "Orders"); return err },
		"room":     func() error { _, err := q.Needs(ctx, []string{"Orders"}); return err },
		"health":   func() error { return q.Health(ctx) },
		"account":  func() error { _, err := js.AccountInfo(ctx); return err },
		"deleting": func() error { return q.Delete(ctx, Kept{What: "log", Stream: "s"}) },
		"updating": func() error { _, err := js.UpdateStream(ctx, jetstream.StreamConfig{Name: "s"}); return err },
		"consumer": func() error { return js.DeleteConsumer(ctx, "s", "c") },
	} {
		if err := ask(); !conn.Transient(err) || ctx.Err() != nil {
			t.Fatalf("%s: %v; the caller's deadline: %v", name, err, ctx.Err())
		}
	}
}
