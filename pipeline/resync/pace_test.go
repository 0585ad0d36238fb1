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
		most := int64(writesFor(usualBound))
		if w.before < most/2 || w.during > most/10+1 || w.during == 0 || w.after < most/2 {
			t.Errorf("written at once: %d before, %d while overloaded, %d after", w.before, w.during, w.after)
		}
	})
}

// TestCopyWritesAsManyItemsAtOnceAsBigtableTakes: half as many again as calls, while the bound grows
// and when it shrinks.
func TestCopyWritesAsManyItemsAtOnceAsBigtableTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bound atomic.Int64
		bound.Store(40)
		p := newWritePace(0, func() int { return int(bound.Load()) })
		go p.Run(t.Context(), func() (int, time.Duration) { return 0, 0 }, nil)
		for _, want := range []int64{40, 800, 2048, 8, 100} {
			bound.Store(want)
			if err := failure.Pause(t.Context(), 10*time.Second); err != nil {
				t.Fatal(err)
			}
			p.mu.Lock()
			got, withheld := p.allowed(), p.withheld
			p.mu.Unlock()
			if got != int(max(want*3/2, leastWrites)) || withheld != mostWrites-got {
				t.Errorf("a bound of %d: %d items may be written at once, %d tokens are withheld", want, got, withheld)
			}
		}
	})
}

// TestCopyYieldsToChangesThatWait: to more of them than a third of what it may write, 64 at least,
// and to any that waits for longer than 300 ms. It goes on with a tenth, eight items at least.
func TestCopyYieldsToChangesThatWait(t *testing.T) {
	for _, c := range []struct {
		bound, changes int
		oldest         time.Duration
		want           int
	}{
		{40, 64, waitedFrom, 60},
		{40, 65, 0, 8},
		{40, 1, waitedFrom + 1, 8},
		{1000, 500, waitedFrom, 1500},
		{1000, 501, 0, 150},
		{2, 0, 0, leastWrites},
		{1 << 20, 0, 0, mostWrites},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newWritePace(0, func() int { return c.bound })
			allowed := func() int {
				p.mu.Lock()
				defer p.mu.Unlock()
				return p.allowed()
			}
			if got, want := allowed(), min(firstWrites, writesFor(c.bound)); got != want || p.withheld != mostWrites-want {
				t.Errorf("%+v: begins with %d items at once, want %d; %d tokens are withheld", c, got, want, p.withheld)
			}
			go p.Run(t.Context(), func() (int, time.Duration) { return c.changes, c.oldest }, nil)
			<-time.After(paceEvery)
			synctest.Wait()
			if got, most := allowed(), writesFor(c.bound); got > firstWrites+most/16 {
				t.Errorf("%+v: %d items at once after one step", c, got)
			}
			<-time.After(10 * time.Second)
			synctest.Wait()
			if got := allowed(); got != c.want {
				t.Errorf("%+v: %d items at once", c, got)
			}
		})
	}
}

// TestCopyThatYieldsFollowsTheBoundAtOnce: an overload makes it yield and the bound shrink. With few
// items at once it grows again as well.
func TestCopyThatYieldsFollowsTheBoundAtOnce(t *testing.T) {
	if got, want := nextAllowed(mostWrites, writesFor(8), true), writesFor(8); got != want {
		t.Errorf("%d items at once at a bound of 8, want %d", got, want)
	}
	if got := nextAllowed(leastWrites, writesFor(8), false); got != leastWrites+1 {
		t.Errorf("%d items at once, after %d and before %d", got, leastWrites, writesFor(8))
	}
}

// TestSlowCopyHasItemsForEachWriteAtOnce: at a rate of one item in a second its pages hold as many as
// may be written at once, and twice as many are in hand.
func TestSlowCopyHasItemsForEachWriteAtOnce(t *testing.T) {
	p := newWritePace(0, func() int { return 1000 })
	p.busy, p.done = 10, 10
	if got, want := p.PageLimit(), firstWrites/unpackedPages; got != want {
		t.Errorf("%d items in a page, want %d", got, want)
	}
	for _, full := range []bool{false, true} {
		if p.Hold(firstWrites + 1); p.Full() != full {
			t.Errorf("%d items in hand: full is %t", p.inHand, !full)
		}
	}
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
