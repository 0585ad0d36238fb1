package staterow

import (
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// TestRecoveryLeavesOnlyOldLogs: a process that waits beside the owner of the new log still knows
// the row as it was while the recovery went on. It must not delete that log because it cannot read
// it for a moment.
func TestRecoveryLeavesOnlyOldLogs(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	row := &bigtable.State{Life: 2, Recovering: true, OldLog: began}
	state := func(epoch, life uint64) *checkpoint.State {
		s := checkpoint.NewState()
		s.Epoch, s.Life = epoch, life
		return s
	}
	for name, c := range map[string]struct {
		created time.Time
		stored  *checkpoint.State
		old     bool
	}{
		"the one that the row names, unreadable": {began, nil, true},
		"the one that the row names, empty":      {began, state(0, 0), true},
		"of an earlier life":                     {began.Add(-time.Hour), state(3, 1), true},
		"new and empty":                          {began.Add(time.Hour), state(0, 0), false},
		"of the new life":                        {began.Add(time.Hour), state(1, 2), false},
		"another one, unreadable now":            {began.Add(time.Hour), nil, false},
	} {
		if got := IsOldLog(row, c.created, c.stored); got != c.old {
			t.Errorf("%s: left %t, want %t", name, got, c.old)
		}
	}
}
