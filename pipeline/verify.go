package pipeline

import (
	"context"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify"
	engine "github.com/tailrace-cdc/replicator/verify/continuous"
)

// verifyBeside compares the table with its target beside the stream until ctx ends.
func (t *table) verifyBeside(ctx context.Context, l *life.Life, o resync.Options) error {
	for ctx.Err() == nil {
		r, err := t.newVerifier(ctx, l, o)
		if err == nil {
			t.view.publish(func(s *snapshot) { s.parts.verifier = r })
			return r.Run(ctx)
		}
		t.log.Warn("the table cannot be compared yet", zap.Error(err))
		_ = failure.Pause(ctx, t.o.Periods.Retry) // fails when ctx ends, which ends the loop
	}
	return nil
}

// newVerifier returns the continuous comparison of this life, which goes on where the last life's
// comparison stopped.
func (t *table) newVerifier(ctx context.Context, l *life.Life, o resync.Options) (*engine.Runner, error) {
	sharing, err := t.sharing()
	if err != nil {
		return nil, err
	}
	units, err := t.info.ReadUnitsFor(t.Verify.ReadUnits, t.Verify.Percent)
	if err != nil {
		return nil, err
	}
	tables := []verify.Table{{
		Program: t.row.Program, Parts: 1, Outlives: t.row.Program.Outlives, Items: t.info.Items, Bytes: t.info.Bytes,
	}}
	programs := []*transform.Program{t.row.Program}
	for _, p := range sharing {
		tables, programs = append(tables, verify.Table{Program: p, Outlives: p.Outlives}), append(programs, p)
	}
	return engine.NewRunner(ctx, engine.RunnerOptions{
		Verifier: engine.Options{
			Tables: tables, Source: t.source, Target: verify.NewTarget(t.bigtable, t.Target, programs...),
			Budget: source.NewBudget(units), Prove: l.Prove, Now: l.Now,
			Lead: func() change.Millis { return change.Millis(l.Lead().Milliseconds()) },
			Hold: func() string { return t.holdsVerifier(l) },
			Collect: func(ctx context.Context, bare []verify.Verdict) error {
				wanted := make([]resync.Wanted, len(bare))
				for i := range bare {
					wanted[i] = resync.Wanted{Key: []byte(bare[i].Key), Rows: bare[i].Bare}
				}
				_, err := resync.NewItems(o).Resync(ctx, wanted)
				return err
			},
			FirstPause: t.o.Periods.Settle, Every: t.o.Periods.Verify, Again: t.o.Periods.Verified,
		},
		Dir:   filepath.Join(t.o.Scratch, "verify", t.o.Name, t.Source),
		Store: positions{t.env},
		Table: t.info.ID, Retry: t.o.Periods.Retry, Logger: t.log,
	}, t.view.latest().parts.verifier)
}

// positions keeps the position of the comparison in the state table, beside the row of the table.
type positions struct{ *env }

// Load implements continuous.Store.
func (p positions) Load(ctx context.Context) ([]byte, error) {
	return p.bigtable.LoadPosition(ctx, p.o.Name, p.Source)
}

// Save implements continuous.Store.
func (p positions) Save(ctx context.Context, position []byte) error {
	return p.bigtable.StorePosition(ctx, p.o.Name, p.Source, position)
}

// holdsVerifier returns why rows may differ for a reason that is known, or no proof can come; ""
// where neither is so.
func (t *table) holdsVerifier(l *life.Life) string {
	now := t.view.latest()
	if now.seen == nil {
		return "the log is not known yet"
	}
	known := status.Now{Halt: now.halt}
	if state := now.seen.With(known).At(t.now().Time(), time.Now()).State; state != "running" {
		return "the table is " + state
	}
	if l.Behind() > time.Minute {
		return "Bigtable is more than a minute behind the stream"
	}
	return ""
}
