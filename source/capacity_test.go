package source

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// consume runs readers of pages until ctx ends. A page costs what cost returns, and its estimate is
// wrong by the factor.
func consume(ctx context.Context, b *Budget, readers int, factor float64, cost func() float64) {
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			for {
				actual := cost()
				if b.Take(ctx, actual*factor) != nil {
					return
				}
				time.Sleep(30 * time.Millisecond) // the call
				b.Settle(actual*factor, actual)
			}
		})
	}
	all.Wait()
}

// TestMinuteOfConsumptionMeetsTheBudget: within ± 10 %, whatever the number of readers, the size of
// a page against the budget, and the error of the estimates.
func TestMinuteOfConsumptionMeetsTheBudget(t *testing.T) {
	for name, c := range map[string]struct {
		rate, page, factor float64
		readers            int
	}{
		"one reader":           {rate: 500, page: 256, factor: 1, readers: 1},
		"64 readers":           {rate: 2000, page: 256, factor: 1, readers: 64},
		"estimates too low":    {rate: 2000, page: 200, factor: 0.1, readers: 16},
		"estimates too high":   {rate: 2000, page: 200, factor: 5, readers: 16},
		"no estimates":         {rate: 1000, page: 256, factor: 0, readers: 8},
		"a second's page":      {rate: 25, page: 25, factor: 1, readers: 4},
		"fractions":            {rate: 30, page: 0.5, factor: 1, readers: 16},
		"page of many seconds": {rate: 50, page: 256, factor: 1, readers: 3},
	} {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				rnd := rand.New(rand.NewPCG(seed, 3))
				b := NewBudget(c.rate)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					consume(ctx, b, c.readers, c.factor, func() float64 {
						mu.Lock()
						defer mu.Unlock()
						return c.page * (0.5 + rnd.Float64())
					})
				}()
				time.Sleep(time.Minute)
				before := b.Usage()
				for minute := range 5 {
					time.Sleep(time.Minute)
					now := b.Usage()
					used, allowed := now.Used-before.Used, now.Allowed-before.Allowed
					if slack := max(0.1*allowed, 1.5*c.page); used < allowed-slack || used > allowed+slack || allowed < 59*c.rate {
						t.Errorf("seed %d, minute %d: %.1f units of %.1f", seed, minute, used, allowed)
					}
					before = now
				}
				cancel()
				<-done
			})
		})
	}
}

// TestIdleBudgetDoesNotBurst: after an hour without readers, no more than two seconds' budget and a
// page are consumed in the first second.
func TestIdleBudgetDoesNotBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(1000)
		time.Sleep(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		consume(ctx, b, 20, 1, func() float64 { return 100 })
		if u := b.Usage(); u.Used > 2100 || u.Used < 1900 {
			t.Errorf("%+v", u)
		}
	})
}

// TestSlowedBudgetHoldsWaitingReaders: SetRate acts on a reader that waits already, 0 stops it, and
// a later rate lets it go on.
func TestSlowedBudgetHoldsWaitingReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(100)
		start := time.Now()
		if err := b.Take(t.Context(), 1000); err != nil {
			t.Fatal(err)
		}
		b.Settle(1000, 1000)
		var took time.Duration
		go func() {
			if err := b.Take(t.Context(), 1); err != nil {
				t.Error(err)
			}
			took = time.Since(start)
		}()
		time.Sleep(5 * time.Second) // 500 units are paid off
		b.SetRate(0)
		time.Sleep(time.Hour)
		if b.Usage().Allowed != 500 || took != 0 {
			t.Errorf("%+v, a reader went on after %v", b.Usage(), took)
		}
		b.SetRate(1000)
		time.Sleep(time.Second)
		synctest.Wait()
		if want := time.Hour + 5*time.Second + 500*time.Millisecond; took != want {
			t.Errorf("the reader waited %v, want %v", took, want)
		}
	})
}

// TestReadersTakeTheirTurn: one reader of large pages does not starve those of small ones, and a
// reader that gives up lets the next one go.
func TestReadersTakeTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(100)
		pages := map[float64]int{}
		var mu sync.Mutex
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var all sync.WaitGroup
		for _, size := range []float64{1, 250, 1, 1} {
			all.Go(func() {
				for b.Take(ctx, size) == nil {
					mu.Lock()
					pages[size]++
					mu.Unlock()
					b.Settle(size, size)
				}
			})
		}
		impatient, stop := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		all.Go(func() {
			for b.Take(impatient, 1) == nil {
				b.Settle(1, 1)
			}
			if err := b.Take(impatient, 1); !errors.Is(err, why) {
				t.Error(err)
			}
		})
		time.Sleep(time.Minute)
		stop(why)
		all.Wait()
		if pages[1] < 2*pages[250] || pages[250] < 100 {
			t.Errorf("%v", pages)
		}
	})
}

func TestPagesOfASmallBudget(t *testing.T) {
	for rate, want := range map[float64]int{25: 50, 0.1: 1, 256: 0, 5000: 0} {
		if got := NewBudget(rate).PageLimit(0.5); got != want {
			t.Errorf("%v RCU/s: pages of %d items, want %d", rate, got, want)
		}
	}
	var none *Budget
	none.SetRate(1)
	none.Settle(1, 2)
	if err := none.Take(t.Context(), 1e9); err != nil || none.PageLimit(1) != 0 || none.Usage() != (BudgetUsage{}) {
		t.Error(err)
	}
}

// TestTooHighAnEstimateHoldsNobodyUp: the next call waits for what the one before it did consume,
// also where that leaves the budget overdrawn. Else a table with a small budget is read a page for
// each estimate of a full page.
func TestTooHighAnEstimateHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(1)
		began := time.Now()
		var calls sync.WaitGroup
		for range 10 {
			if err := b.Take(t.Context(), 64); err != nil {
				t.Fatal(err)
			}
			calls.Go(func() {
				time.Sleep(10 * time.Millisecond) // the call, in virtual time
				b.Settle(64, 2)
			})
		}
		// Ten calls of two units each, at one a second.
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("ten calls took %s", took)
		}
		calls.Wait()
	})
}
