package ingest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/source"
)

// exactRow reserves no more than what is asked for, so that the next need exceeds the reservation
// again.
type exactRow struct{ reserved atomic.Int64 }

func (r *exactRow) Agrees() bool            { return true }
func (r *exactRow) Reserved() time.Duration { return time.Duration(r.reserved.Load()) }

func (r *exactRow) Reserve(_ context.Context, need time.Duration) error {
	r.reserved.Store(int64(need))
	return nil
}

func (r *exactRow) Adopt(context.Context, string) error { return nil }

// pageAhead returns a page of shard "s" whose last version is ahead of its read.
func pageAhead(ahead time.Duration) *source.Page {
	const created change.Millis = 1_790_000_000_000
	return &source.Page{Page: change.Page{
		Date: created, Feed: change.Feed{Stream: "arn", Shard: "s"},
		Clock:   change.Version(created) + change.Version(ahead.Milliseconds()),
		Records: []change.Record{{Created: created}},
	}}
}

// TestHeldPagesPassOnlyWithinTheReservation: no page goes into the log while its versions exceed
// what is reserved, also not behind an earlier page of its shard whose smaller need was met (Rule
// 5), and the shard's order is kept.
func TestHeldPagesPassOnlyWithinTheReservation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var g errgroup.Group
	row := &exactRow{}
	row.reserved.Store(int64(time.Minute))
	r := newReservation(&Options{Life: &life.Life{Logger: zaptest.NewLogger(t)}, Row: row}, &g)
	needs := []time.Duration{2 * time.Minute, 3 * time.Minute, 4 * time.Minute, 0}
	for _, need := range needs {
		if !r.hold(ctx, "s", arrival{page: pageAhead(need)}) {
			t.Fatalf("a page %v ahead passed with %v reserved", need, row.Reserved())
		}
	}
	var passed []time.Duration
	for len(passed) < len(needs) {
		for _, a := range r.resume(ctx, <-r.granted) {
			need := aheadOfTime(a.page)
			if need > row.Reserved() {
				t.Errorf("a page %v ahead passed with %v reserved", need, row.Reserved())
			}
			passed = append(passed, need)
		}
	}
	for i, need := range needs {
		if passed[i] != need {
			t.Fatalf("pages passed in the order %v, read in the order %v", passed, needs)
		}
	}
	if r.hold(ctx, "s", arrival{page: pageAhead(time.Minute)}) {
		t.Error("a page within the reservation waits although nothing of its shard does")
	}
	cancel()
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

// slowRow counts how often it is asked to reserve, and answers when it may.
type slowRow struct {
	exactRow
	asked  atomic.Int64
	answer chan struct{}
}

func (r *slowRow) Reserve(ctx context.Context, need time.Duration) error {
	r.asked.Add(1)
	<-r.answer
	return r.exactRow.Reserve(ctx, need)
}

// TestReservationIsRaisedBeforeHalfOfItIsUsed: by one call at a time, and no page waits for it.
func TestReservationIsRaisedBeforeHalfOfItIsUsed(t *testing.T) {
	var g errgroup.Group
	row := &slowRow{answer: make(chan struct{})}
	row.reserved.Store(int64(time.Minute))
	o := &Options{Life: &life.Life{Logger: zaptest.NewLogger(t)}, Row: row, Periods: Periods{Lead: time.Minute}}
	r := newReservation(o, &g)
	for _, ahead := range []time.Duration{30 * time.Second, 31 * time.Second, time.Minute} {
		if r.hold(t.Context(), "s", arrival{page: pageAhead(ahead)}) {
			t.Errorf("a page %v ahead waits with %v reserved", ahead, row.Reserved())
		}
	}
	close(row.answer)
	if err := g.Wait(); err != nil || row.asked.Load() != 1 {
		t.Errorf("asked %d times for more: %v", row.asked.Load(), err)
	}
	if row.Reserved() != 31*time.Second {
		t.Errorf("asked for %v by the first page above the half", row.Reserved())
	}
}
