package control

import (
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/sandbox"
)

// TestGoalOfNowWaitsForACertainTime, Rule 13: the first Date is 100 s behind. What was written in
// these would not be waited for, and the wait would end with success.
func TestGoalOfNowWaitsForACertainTime(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	w := sandbox.NewWorld(t, sandbox.WorldOptions{})
	w.CreateTable("Orders")
	cfg := config.Default()
	cfg.Source.Region, cfg.Source.Endpoint = "us-east-1", w.Endpoint()
	cfg.Protocol.DateTrust = config.Duration(time.Second)
	clients := clients.ForCommand(&cfg, func(zapcore.Level) *zap.Logger { return zap.NewNop() })
	t.Cleanup(func() { _ = clients.Close() })
	w.Faults.Skew(-100 * time.Second)
	if err := clients.ReadClock(t.Context(), "Orders"); err != nil {
		t.Fatal(err)
	}
	w.Faults.Skew(0)
	called := w.Clock.Now()
	o := NewObserver(&cfg, []config.Table{{Source: "Orders"}}, clients)
	goal, err := o.goal(t.Context(), time.Time{})
	if err != nil || goal.Before(called) {
		t.Errorf("called at %s, and the goal is %s: %v", called, goal, err)
	}
	written := called.Add(-time.Hour)
	if goal, err := o.goal(t.Context(), written); err != nil || !goal.Equal(written) {
		t.Errorf("the goal is %s, want %s: %v", goal, written, err)
	}
}
