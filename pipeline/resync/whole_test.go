package resync

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify"
)

// TestLeadIsThatOfTheProof: a resync of a whole table takes hours, and a burst of changes may raise
// meanwhile how far versions may be ahead. What it wrote has no guard in the future.
func TestLeadIsThatOfTheProof(t *testing.T) {
	lead := 10 * time.Minute
	w := &Whole{Options: Options{Life: &life.Life{Lead: func() time.Duration { return lead }}}}
	proved := change.Millis(0)
	r := &verify.Resyncer{Settler: verify.Settler{
		Prove: func(_ context.Context, t change.Millis) error { proved = t; return nil }, Lead: w.leadMillis(),
	}}
	w.keepLead(&r.Settler)
	lead = time.Hour
	if err := r.Prove(t.Context(), 7); err != nil {
		t.Fatal(err)
	}
	if proved != 7 || r.Lead != change.Millis(lead.Milliseconds()) {
		t.Errorf("proved %d, the lead is %d", proved, r.Lead)
	}
}

// TestOnlyWhatNoLookCanTellIsLeft: cells whose columns do not show their owner are named and let
// the resync end, those beside a guard that cannot be read keep it open.
func TestOnlyWhatNoLookCanTellIsLeft(t *testing.T) {
	key := change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'}}
	program, problems := transform.Compile(transform.Table{Pipeline: "p", Source: "S", Target: "t", Schema: key,
		View: "NEW_AND_OLD_IMAGES"})
	if program == nil {
		t.Fatal(problems)
	}
	w := &Whole{Program: program, Options: Options{Life: &life.Life{Now: func() change.Millis { return 1 }}}}
	unowned := &verify.Resynced{Unowned: 2, Open: []verify.Open{{Kind: verify.Unowned, Rule: "typed d:{type}"}}}
	if ok, why := complete(unowned); !ok {
		t.Errorf("cells without a known owner keep the resync open: %s", why)
	}
	if left := w.left(unowned); !strings.Contains(left, "2 cells") || !strings.Contains(left, "typed d:{type}") {
		t.Errorf("left: %q", left)
	}
	if note := w.healed(&checkpoint.PendingResync{}, unowned).Sinks[checkpoint.SinkBigtable]; note != w.left(unowned) {
		t.Errorf("the entry says %q", note)
	}
	for name, open := range map[string]*verify.Resynced{
		"sealed":            {Unproven: 1, Counts: verify.Counts{Unproven: 1}},
		"sealed and others": {Unproven: 1, Counts: verify.Counts{Unproven: 1}, Unowned: 3},
		"a busy item":       {Unproven: 1},
		"different":         {Different: 1, Unowned: 1},
	} {
		if ok, _ := complete(open); ok {
			t.Errorf("%s: passes for complete", name)
		}
	}
	if left := w.left(&verify.Resynced{}); left != "" {
		t.Errorf("left of nothing: %q", left)
	}
}

// TestResyncThatWasCutOffShowsNoProgress: the log is drained behind it, and another owner goes on.
func TestResyncThatWasCutOffShowsNoProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		order := &checkpoint.PendingResync{ID: "r", Asked: 1000}
		w := &Whole{Options: Options{Life: &life.Life{
			Now: func() change.Millis { return order.Asked }, Logger: zap.NewNop(),
			Facts: func() *life.Facts { return &life.Facts{Resync: order} },
		}}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		if synctest.Wait(); w.Status() == nil || w.Status().Why == "" {
			t.Fatalf("a resync that waits for its begin shows %+v", w.Status())
		}
		cancel()
		if err := <-ended; err != nil || w.Status() != nil {
			t.Errorf("%v, and it shows %+v", err, w.Status())
		}
	})
}
