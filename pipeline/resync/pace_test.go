package resync

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
)

// TestCopyYieldsToAnOverloadedBigtable: while Bigtable answers that it is overloaded, a tenth of
// the items is written at once, and as many as before when it does not any more.
func TestCopyYieldsToAnOverloadedBigtable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 64, 300)
		x.pageSize = 200
		o := x.options()
		w := &slowWriter{table: x}
		o.Writer = w
		var answers atomic.Uint64
		o.Throttled = func() uint64 {
			if w.begun() > 2*time.Second && w.begun() < 20*time.Second {
				return answers.Add(1)
			}
			return answers.Load()
		}
		if err := New(o, x.state()).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		x.complete()
		if w.before < maxWrites/2 || w.during > minWrites+1 || w.during == 0 || w.after < maxWrites/2 {
			t.Errorf("written at once: %d before, %d while overloaded, %d after", w.before, w.during, w.after)
		}
	})
}

// slowWriter takes 100 ms for an item, and counts how many are written at once.
type slowWriter struct {
	*table
	first                 sync.Once
	at                    atomic.Pointer[time.Time]
	open                  atomic.Int64
	mu                    sync.Mutex
	before, during, after int64
}

// begun returns how long ago the first item was written.
func (w *slowWriter) begun() time.Duration {
	if at := w.at.Load(); at != nil {
		return time.Since(*at)
	}
	return 0
}

func (w *slowWriter) Resync(ctx context.Context, r *apply.ResyncItem) (apply.ResyncOutcome, error) {
	w.first.Do(func() { now := time.Now(); w.at.Store(&now) })
	n := w.open.Add(1)
	defer w.open.Add(-1)
	w.mu.Lock()
	switch since := w.begun(); {
	case since < 2*time.Second:
		w.before = max(w.before, n)
	case since > 4*time.Second && since < 19*time.Second:
		w.during = max(w.during, n)
	case since > 24*time.Second:
		w.after = max(w.after, n)
	}
	w.mu.Unlock()
	if err := failure.Pause(ctx, 100*time.Millisecond); err != nil {
		return apply.ResyncOutcome{}, err
	}
	return w.table.Resync(ctx, r)
}

// TestCopyWritesAsManyRowsAsItMay: items of several rows count as many.
func TestCopyWritesAsManyRowsAsItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 8, 150)
		o := x.options()
		o.WriteRows = 100
		w := &manyRows{table: x}
		o.Writer = w
		if err := New(o, x.state()).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		x.complete()
		const rows = 8 * 150 * 3
		took := w.last.Sub(w.begin)
		if took < rows*9*time.Millisecond || took > rows*13*time.Millisecond {
			t.Errorf("%d rows in %s, limit of 100 rows per second", rows, took)
		}
	})
}

// manyRows writes three rows for an item.
type manyRows struct {
	*table
	begin, last time.Time
}

func (w *manyRows) Resync(ctx context.Context, r *apply.ResyncItem) (apply.ResyncOutcome, error) {
	out, err := w.table.Resync(ctx, r)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last = time.Now(); w.begin.IsZero() {
		w.begin = w.last
	}
	out.Written = 3
	return out, err
}
