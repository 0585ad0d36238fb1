package cutover_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/cutover"
	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/queue"
)

// TestTableThatWorkersCopyIsRetiredBehindThem: their order is closed, and nothing is taken away
// before they are outwaited. A retirement that was interrupted meanwhile waits again.
func TestTableThatWorkersCopyIsRetiredBehindThem(t *testing.T) {
	w := newSharedWorld(t, 947)
	w.replicate()
	w.Configure(other)
	clients := w.Clients()
	q, err := clients.Queue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sink := w.Sink(clients)
	order := &delegation.Order{
		ID: "backfill-1.7", Life: 1, Pipeline: w.Config.Pipeline, Table: "Orders", Target: "shared",
		Export: delegation.Export{Files: 1}, Revision: 1,
	}
	if done, err := sink.SwapOrder(t.Context(), w.Config.Pipeline, "Orders", nil, order); !done || err != nil {
		t.Fatal(done, err)
	}
	if err := sink.StoreFileMark(t.Context(), order, 0, delegation.FileMark{Items: 1}, nil); err != nil {
		t.Fatal(err)
	}
	log, err := q.Log(t.Context(), "Orders")
	if err != nil {
		t.Fatal(err)
	}
	note := func(body func(*checkpoint.State) any) {
		t.Helper()
		owner, err := log.Claim(t.Context(), queue.ClaimOptions{Owner: "a"})
		if err == nil {
			_, err = owner.Append(t.Context(), body(owner.State()), nil)
		}
		if err == nil {
			err = owner.Release(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	note(func(s *checkpoint.State) any {
		return &checkpoint.Copy{
			ID: "backfill-1", Why: checkpoint.CopyBackfill, From: checkpoint.FromExport, By: checkpoint.ByWorkers, Export: "e",
			Parts: 1, Began: s.Date + 1,
		}
	})
	retire := func(after time.Duration) (waited bool, err error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := cutover.RetireOptions{Table: "Orders", DropLetters: true, DropGuards: true}
		o.Now = func() time.Time { return w.Clock.Now().Add(after) }
		o.Say = func(format string, _ ...any) {
			if strings.Contains(format, "outwaited") {
				waited = true
				cancel()
			}
		}
		r, err := cutover.PlanRetirement(ctx, w.Config, q, sink, sink, o)
		if err != nil {
			return false, err
		}
		err = r.Run(ctx)
		return waited, err
	}
	for _, when := range []time.Duration{0, time.Minute, time.Hour} {
		if waited, err := retire(when); !waited || !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: waited %t, %v", when, waited, err)
		}
		seen, err := sink.LoadOrder(t.Context(), w.Config.Pipeline, "Orders")
		if err != nil || seen.Order == nil || seen.Order.Open() || !seen.Held {
			t.Fatalf("%s: while it waits the row has %+v, %v", when, seen, err)
		}
		if _, err := q.Log(t.Context(), "Orders"); err != nil {
			t.Errorf("%s: while it waits the log is gone: %v", when, err)
		}
	}
	note(func(*checkpoint.State) any { return &checkpoint.CopyMarks{ID: "backfill-1", Closed: true} })
	waited, err := retire(time.Hour)
	if waited || err != nil {
		t.Errorf("closed in the log, an hour later: waited %t, %v", waited, err)
	}
	if m, err := sink.FileMark(t.Context(), order, 0); m != nil || err != nil {
		t.Errorf("a mark is left: %+v, %v", m, err)
	}
}
