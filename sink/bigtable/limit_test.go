package bigtable

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestWaitersAreServedInOrder of each kind. Who gives up is passed over.
func TestWaitersAreServedInOrder(t *testing.T) {
	for _, of := range []traffic{ofStream, ofCopy} {
		synctest.Test(t, func(t *testing.T) {
			l := new(gate).newCallLimit(1, 1, 1)
			_ = l.Acquire(t.Context(), of)
			var order []int
			abandoned, cancel := context.WithCancel(t.Context())
			for i := range 6 {
				ctx := t.Context()
				if i == 2 {
					ctx = abandoned
				}
				go func() {
					if l.Acquire(ctx, of) == nil {
						order = append(order, i)
						l.Release(of, 0, loadNeutral, false)
					}
				}()
				synctest.Wait()
			}
			cancel()
			synctest.Wait()
			l.Release(of, 0, loadNeutral, false)
			synctest.Wait()
			if want := []int{0, 1, 3, 4, 5}; !slices.Equal(order, want) {
				t.Fatalf("served %v, want %v", order, want)
			}
			l.unused(t)
		})
	}
}

// unused fails the test if a slot is taken, or somebody waits.
func (l *callLimit) unused(t *testing.T) {
	t.Helper()
	l.gate.mu.Lock()
	defer l.gate.mu.Unlock()
	if l.inFlight != 0 || l.copies != 0 || len(l.waiting[ofStream])+len(l.waiting[ofCopy]) != 0 || l.pressing ||
		l.gate.pressing != 0 || len(l.gate.behind) != 0 {
		t.Errorf("at the end: %d in flight, of copies %d, waiting %d and %d, %d tables press, %d are behind", l.inFlight,
			l.copies, len(l.waiting[ofStream]), len(l.waiting[ofCopy]), l.gate.pressing, len(l.gate.behind))
	}
}

// waitFor lets n calls of a kind wait for slots, and counts those that have got one.
func (l *callLimit) waitFor(t *testing.T, n int, of traffic) (got *atomic.Int64) {
	got = new(atomic.Int64)
	for range n {
		go func() {
			if l.Acquire(t.Context(), of) == nil {
				got.Add(1)
			}
		}()
	}
	synctest.Wait()
	return got
}

// give gives back slots of a kind, and waits until others have them.
func (l *callLimit) give(n int, of traffic) {
	for range n {
		l.Return(of)
	}
	synctest.Wait()
}

// TestChangesGetTheNextFreeSlot although copies came before them. Copies keep a tenth, and get all
// that changes do not need.
func TestChangesGetTheNextFreeSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(gate).newCallLimit(20, 20, 20)
		begun := l.waitFor(t, 20, ofCopy)
		copies := l.waitFor(t, 30, ofCopy)
		changes := l.waitFor(t, 30, ofStream)
		if begun.Load() != 20 || copies.Load() != 0 || changes.Load() != 0 {
			t.Fatalf("%d copies of 20 begin without changes, %d too many, %d changes",
				begun.Load(), copies.Load(), changes.Load())
		}
		l.give(18, ofCopy)
		if copies.Load() != 0 || changes.Load() != 18 {
			t.Errorf("of 18 slots changes got %d, copies %d", changes.Load(), copies.Load())
		}
		l.give(2, ofCopy)
		if copies.Load() != 2 || changes.Load() != 18 {
			t.Errorf("copies got %d of their tenth, which are 2 slots; changes have %d", copies.Load(), changes.Load())
		}
		l.give(12, ofStream)
		if copies.Load() != 2 || changes.Load() != 30 {
			t.Errorf("the last changes got %d of 12 slots", changes.Load()-18)
		}
		l.give(18, ofStream)
		if copies.Load() != 20 {
			t.Errorf("%d copies begin where no change waits, want 20", copies.Load())
		}
		l.give(20, ofCopy)
		l.give(10, ofCopy)
		l.unused(t)
	})
}

// TestCopiesKeepOneOfFewSlots: at the lowest bound a tenth is less than one.
func TestCopiesKeepOneOfFewSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(gate).newCallLimit(lowestBound, lowestBound, lowestBound)
		changes := l.waitFor(t, 2*lowestBound, ofStream)
		copies := l.waitFor(t, 2, ofCopy)
		for _, given := range []struct {
			of              traffic
			changes, copies int64
		}{{ofStream, 0, 1}, {ofStream, 1, 1}, {ofCopy, 1, 2}, {ofStream, 2, 2}} {
			l.give(1, given.of)
			if changes.Load() != lowestBound+given.changes || copies.Load() != given.copies {
				t.Errorf("%d changes and %d copies have begun, want %d and %d", changes.Load(), copies.Load(),
					lowestBound+given.changes, given.copies)
			}
		}
		l.give(1, ofCopy)
		l.give(2*lowestBound-3, ofStream)
		l.unused(t)
	})
}

// TestCopiesGetATenthBesideChangesThatNeverEnd, and no more, whatever waits.
func TestCopiesGetATenthBesideChangesThatNeverEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(gate).newCallLimit(40, 40, 40)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var done [kinds]atomic.Int64
		var all sync.WaitGroup
		for i := range 200 {
			of := traffic(i % int(kinds))
			all.Go(func() {
				for ctx.Err() == nil && l.Acquire(ctx, of) == nil {
					<-time.After(10 * time.Millisecond)
					l.Release(of, 10*time.Millisecond, loadQuick, false)
					done[of].Add(1)
				}
			})
		}
		all.Wait()
		const most = 40 * 1000
		if changes, copies := done[ofStream].Load(), done[ofCopy].Load(); copies < most*9/100 || copies > most*11/100 ||
			changes < most*88/100 {
			t.Errorf("%d changes and %d copies of at most %d calls", changes, copies, most)
		}
		l.unused(t)
	})
}

// TestCopiesYieldToChangesOfOtherTables: they begin once the last of these has a slot, or gives up.
// A table that Bigtable does not answer holds no other one back.
func TestCopiesYieldToChangesOfOtherTables(t *testing.T) {
	for _, how := range []string{"served", "gives up", "does not answer"} {
		synctest.Test(t, func(t *testing.T) {
			g := new(gate)
			a, b := g.newCallLimit(8, 20, 20), g.newCallLimit(20, 20, 20)
			if how == "does not answer" {
				a.bound.calls = a.bound.low
			}
			a.waitFor(t, int(a.bound.calls), ofStream)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			got := make(chan bool, 1)
			go func() { got <- a.Acquire(ctx, ofStream) == nil }()
			synctest.Wait()
			copies, want := b.waitFor(t, 20, ofCopy), int64(2)
			if how == "does not answer" {
				want = 20
			}
			if copies.Load() != want {
				t.Errorf("%s: %d copies begin while a change of another table waits, want %d", how, copies.Load(), want)
			}
			switch how {
			case "served":
				a.give(1, ofStream)
			case "gives up":
				cancel()
			case "does not answer":
				a.give(1, ofStream)
			}
			if served := <-got; served == (how == "gives up") {
				t.Errorf("%s: the change got a slot: %t", how, served)
			}
			synctest.Wait()
			if copies.Load() != 20 {
				t.Errorf("%s: %d copies of 20 begin", how, copies.Load())
			}
			a.give(a.inFlight, ofStream)
			b.give(20, ofCopy)
			a.unused(t)
			b.unused(t)
		})
	}
}

// TestSlotsAreAllGivenBack by calls of both kinds, of tables whose bounds move, some of which give up.
func TestSlotsAreAllGivenBack(t *testing.T) {
	g := new(gate)
	var limits []*callLimit
	var all sync.WaitGroup
	for seed := range uint64(4) {
		l := g.newCallLimit(2, 4, 64)
		limits = append(limits, l)
		for worker := range uint64(16) {
			all.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, worker))
				for range 300 {
					of := traffic(rnd.IntN(int(kinds)))
					ctx, cancel := context.WithCancel(t.Context())
					if rnd.IntN(4) == 0 {
						go cancel()
					}
					switch err := l.Acquire(ctx, of); {
					case err != nil:
					case rnd.IntN(4) == 0:
						l.Return(of)
					case rnd.IntN(8) == 0:
						l.Release(of, time.Millisecond, loadOverload, false)
					default:
						l.Release(of, time.Millisecond, loadQuick, false)
					}
					cancel()
				}
			})
		}
	}
	all.Wait()
	for _, l := range limits {
		l.unused(t)
	}
}

// TestCallsPassOnTheBound: each tells its table's limit whether the processors are short, which the
// client observes, and tells workers and connections what the bound is.
func TestCallsPassOnTheBound(t *testing.T) {
	c := open(t, "127.0.0.1:1")
	c.cpu.short.Store(true)
	for deadline := time.Now().Add(time.Minute); c.cpu.Short(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody observes the processors")
		}
	}
	c.stopWatch()
	if err := c.watching.Wait(); err != nil {
		t.Fatal(err)
	}
	x := c.table("orders")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, short := range []bool{true, false} {
		c.cpu.short.Store(short)
		if err := x.send(ended, &request{}, 0); err == nil {
			t.Error("a call was made in a context that has ended")
		}
		if x.limit.bound.held != short {
			t.Errorf("processors are short: %t, the bound is held: %t", short, x.limit.bound.held)
		}
	}
	x.limit.bound.calls = 100
	_ = x.send(ended, &request{}, 0)
	if got := c.Bound("orders"); got != 100 || c.conn.size() != 2 {
		t.Errorf("workers follow a bound of %d, and %d connections, want 100 and 2", got, c.conn.size())
	}
}
