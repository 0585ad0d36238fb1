package pipeline

import (
	"context"
	"errors"
	"testing"

	"github.com/tailrace-cdc/replicator/pipeline/outcome"
)

// TestNothingIsDeletedUnderAnUnsafeSetting: what writes beside the sink waits for the first look,
// and is refused while the gate is shut, whoever owns the log.
func TestNothingIsDeletedUnderAnUnsafeSetting(t *testing.T) {
	x, asked := &table{}, 0
	owned := func() error { asked++; return nil }
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := x.writable(ended, owned)(); !errors.Is(err, context.Canceled) {
		t.Errorf("before the first look: %v", err)
	}
	shut := &outcome.HaltError{Code: outcome.CodePremise}
	x.gate.Set(shut)
	if err := x.writable(t.Context(), owned)(); !errors.Is(err, shut) || asked > 0 {
		t.Errorf("shut: %v", err)
	}
	x.gate.Begin() // of the next life, whose look is not answered
	x.gate.Looked()
	if err := x.writable(t.Context(), owned)(); !errors.Is(err, shut) {
		t.Errorf("shut before: %v", err)
	}
	x.gate.Set(nil)
	if err := x.writable(t.Context(), owned)(); err != nil || asked != 1 {
		t.Errorf("open: %v, asked %d times", err, asked)
	}
}
