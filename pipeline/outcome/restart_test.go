package outcome

import (
	"errors"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
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

// TestOutdatedKnowledgeIsNoWarning: a table that is handed over finds the row changed by the owner
// before.
func TestOutdatedKnowledgeIsNoWarning(t *testing.T) {
	for _, c := range []struct {
		err  error
		want zapcore.Level
	}{
		{&StaleError{Err: errors.New("another owner changed the row")}, zap.InfoLevel},
		{queue.ErrOutcomeUnknown, zap.WarnLevel},
	} {
		core, seen := observer.New(zap.InfoLevel)
		LogRestart(zap.New(core), c.err)
		if all := seen.All(); len(all) != 1 || all[0].Level != c.want {
			t.Errorf("%v: %+v", c.err, all)
		}
	}
}
