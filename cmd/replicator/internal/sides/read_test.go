package sides

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/catalog"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/logged"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/wire"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/source"
)

// TestAskedTimeIsThatOfTheReply: DynamoDB's clock went on while ours stood still, as it does on a machine that is
// suspended.
func TestAskedTimeIsThatOfTheReply(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	w := sandbox.NewWorld(t, sandbox.WorldOptions{})
	w.CreateTable("Orders")
	src, err := source.Open(t.Context(), source.Options{
		Region: "us-east-1", Endpoint: w.Endpoint(), DateTrust: -1,
	}, zap.NewNop(),
		prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	orders := &catalog.Table{Table: config.Table{Source: "Orders"}}
	cfg := config.Default()
	s := &Sides{cfg: &cfg, source: src, Tables: []*catalog.Table{orders}, budgets: []*source.Budget{nil}}
	before, err := s.Ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(time.Hour)
	now, err := s.Ask(t.Context())
	if err != nil || now.Time().Sub(before.Time()) < 59*time.Minute { // a Date has whole seconds
		t.Errorf("an hour later it is %s, after %s: %v", now.Time(), before.Time(), err)
	}
	// Rule 13: if that time is wrong, the owner's beats are an hour old, and that they come shows that it lives.
	state := &checkpoint.State{Owner: "a", Date: before}
	if err := s.CheckOwner("Orders", state); err == nil {
		t.Error("a log whose newest entry is an hour old has an owner that lives")
	}
	state.Date += 5000
	if err := s.CheckOwner("Orders", state); err != nil {
		t.Errorf("a beat came: %v", err)
	}
	if err := s.CheckOwner("Others", state); err == nil {
		t.Error("the beat of one table is taken for another's")
	}
}

// TestDaemonThatStaysAwayIsNotAwaitedForEver: what is read from its logs ends with an error that says what to start.
func TestDaemonThatStaysAwayIsNotAwaitedForEver(t *testing.T) {
	cfg := config.Default()
	cfg.Queue.Dir = t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		clients := wire.ForCommand(&cfg, func(zapcore.Level) *zap.Logger { return zap.NewNop() })
		s := &Sides{cfg: &cfg, clients: clients, Tables: []*catalog.Table{{Table: config.Table{Source: "Orders"}}}}
		began := time.Now()
		_, err := s.Entries(t.Context(), "Orders", logged.Walk{}, func(*logged.Entry) error { return nil })
		known := (*exit.Error)(nil)
		if !errors.As(err, &known) || !strings.Contains(known.Hint, "replicator run") {
			t.Errorf("%v", err)
		}
		if waited := time.Since(began); waited < protocol.Restart || waited > 2*protocol.Restart {
			t.Errorf("it waited for %s", waited)
		}
	})
}
