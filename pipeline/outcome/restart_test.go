package outcome

import (
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// TestHaltIsLoggedOncePerReason: a table that is halted for hours is tried again each minute.
func TestHaltIsLoggedOncePerReason(t *testing.T) {
	core, seen := observer.New(zap.InfoLevel)
	var before *checkpoint.Halt
	for i, step := range []struct {
		reason string
		want   int
	}{{"a", 1}, {"a", 1}, {"b", 2}, {"b", 2}, {"a", 3}} {
		h := &checkpoint.Halt{Code: "x", Reason: step.reason, At: 1000}
		LogHalt(zap.New(core), before, h, time.Minute)
		if before = h; seen.Len() != step.want {
			t.Errorf("after step %d: %d lines, want %d", i, seen.Len(), step.want)
		}
	}
	if LogHalt(zap.New(core), nil, before, time.Minute); seen.Len() != 4 {
		t.Error("a table that worked meanwhile is halted without a word")
	}
}
