package control

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/queue"
)

// TestKilledOwnerIsNotAlive: the owner of a log in queue.dir was killed a moment ago, so its newest beat is young and
// the log is not released. A command that can open the store reports that no replicator carries the table.
func TestKilledOwnerIsNotAlive(t *testing.T) {
	ctx, cfg := t.Context(), config.Default()
	cfg.Pipeline, cfg.Queue.Dir, cfg.Tables = "shop", t.TempDir(), []config.Table{{Source: "Orders"}}
	q, err := queue.Open(ctx, queue.Options{Pipeline: "shop", Dir: cfg.Queue.Dir}, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	l, err := q.CreateLog(ctx, "Orders", "t0ken")
	if err != nil {
		t.Fatal(err)
	}
	w, err := l.Claim(ctx, queue.ClaimOptions{Owner: "a"})
	if err == nil {
		_, err = w.Append(ctx, &checkpoint.Beat{Date: change.MillisOf(time.Now())}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	command := clients.ForCommand(&cfg, func(zapcore.Level) *zap.Logger { return zap.NewNop() })
	defer command.Close()
	st, _, err := NewObserver(&cfg, cfg.Tables, command).Look(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if x := st.Tables[0]; x.Owner != "a" || !x.Has(status.WhyNoOwner) {
		t.Errorf("owner %s: %v", x.Owner, x.Reasons)
	}
	// Commands that ask the owner for something give the same answer, and wait for no silence.
	r := &Requester{Clients: command, Table: "Orders", ClaimTTL: time.Hour}
	if err := r.open(ctx, command.Queue, time.Hour); err == nil || !strings.Contains(err.Error(), "no replicator owns") {
		t.Errorf("a request: %v", err)
	}
}
