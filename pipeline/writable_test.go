package pipeline

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
)

// TestNothingIsDeletedUnderAnUnsafeSetting: what writes beside the sink waits for the first look,
// and is refused while the gate is shut, whoever owns the log.
func TestNothingIsDeletedUnderAnUnsafeSetting(t *testing.T) {
	_, leaving := life.WithLeaving(t.Context(), nil)
	x, l, c := &table{}, life.New(leaving, time.Second), &claim{}
	defer l.Close()
	l.Claim = c
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := x.mayDelete(ended, l); !errors.Is(err, context.Canceled) {
		t.Errorf("before the first look: %v", err)
	}
	shut := &outcome.HaltError{Code: outcome.CodePremise}
	x.gate.Set(shut)
	if err := x.mayDelete(t.Context(), l); !errors.Is(err, shut) || c.asked > 0 {
		t.Errorf("shut: %v", err)
	}
	x.gate.Begin() // of the next life, whose look is not answered
	x.gate.Looked()
	if err := x.mayDelete(t.Context(), l); !errors.Is(err, shut) {
		t.Errorf("shut before: %v", err)
	}
	x.gate.Set(nil)
	if err := x.mayDelete(t.Context(), l); err != nil || c.asked != 1 {
		t.Errorf("open: %v, asked %d times", err, c.asked)
	}
}

// claim is one that holds.
type claim struct{ asked int }

func (c *claim) ClaimValid() bool {
	c.asked++
	return true
}
