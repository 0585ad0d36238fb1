package source

import (
	"context"
	"math"
	"sync"
	"time"
)

// burst is how much unused budget is kept for later, in seconds.
const burst = 1

// Budget limits the read capacity that all readers of one table consume together. A reader calls
// Take with an estimate before a call and Settle with the units that the call did consume. It is
// safe for concurrent use. A nil Budget has no limit.
//
// A call starts as soon as the balance is not negative, and may overdraw it: calls wait until that
// is paid off. So a page may cost more than a second's budget, and a wrong estimate shifts
// consumption without adding to it. Package rate cannot do this: its limiter refuses more than its
// burst, counts in integers and takes nothing back.
type Budget struct {
	turn chan struct{} // held by the only reader that waits for the balance; the others wait for it in their order

	mu      sync.Mutex
	rate    float64       // units a second
	balance float64       // units; < 0: overdrawn
	used    float64       // units
	allowed float64       // units that the rates so far add up to
	at      time.Time     // of balance and allowed
	changed chan struct{} // closed when the wait of the reader whose turn it is may have become shorter
}

// NewBudget makes a budget of so many read capacity units a second. 0 stops all readers until
// SetRate.
func NewBudget(units float64) *Budget {
	b := &Budget{turn: make(chan struct{}, 1), at: time.Now(), changed: make(chan struct{})}
	b.rate = cleanRate(units)
	return b
}

// cleanRate returns 0 for what is no rate.
func cleanRate(units float64) float64 {
	if math.IsNaN(units) || math.IsInf(units, 0) || units < 0 {
		return 0
	}
	return units
}

// SetRate changes the units a second, also for readers that wait already.
func (b *Budget) SetRate(units float64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance()
	if units = cleanRate(units); units == b.rate {
		return
	}
	b.rate = units
	b.balance = min(b.balance, burst*units)
	b.wake()
}

// wake lets the next reader in turn check the balance again. The caller holds mu.
func (b *Budget) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// Take waits until a call that will consume about so many units may start, and accounts for them.
// Every successful Take must be followed by a Settle, with 0 units when the call failed without a
// reply. The error is the context's cause.
func (b *Budget) Take(ctx context.Context, estimate float64) error {
	if b == nil {
		return context.Cause(ctx)
	}
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		wait, changed := b.tryTake(estimate)
		if wait == 0 {
			return nil
		}
		if err := pauseUnless(ctx, wait, changed); err != nil {
			return err
		}
	}
}

// tryTake accounts for the estimate and returns 0, or returns how long to wait before the next try:
// less if changed is closed, because the rate changed or an estimate was too high.
func (b *Budget) tryTake(estimate float64) (wait time.Duration, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance()
	switch {
	case b.rate == 0:
		return math.MaxInt64, b.changed
	case b.balance >= 0:
		b.balance -= estimate
		return 0, nil
	}
	seconds := min(-b.balance/b.rate, float64(time.Hour/time.Second))
	return time.Duration(math.Ceil(seconds * float64(time.Second))), b.changed
}

// pauseUnless waits for d, or until changed is closed or ctx ends: then it returns the context's
// cause.
func pauseUnless(ctx context.Context, d time.Duration, changed <-chan struct{}) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-changed:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// Settle replaces the estimate of a Take by the units that the call consumed.
func (b *Budget) Settle(estimate, consumed float64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance()
	b.used += consumed
	overdrawn := b.balance < 0
	b.balance = min(b.balance+estimate-consumed, burst*b.rate)
	if overdrawn && estimate > consumed { // the reader whose turn it is waits for the estimate to be paid off
		b.wake()
	}
}

// advance adds what has been earned since the last time. The caller holds mu.
func (b *Budget) advance() {
	now := time.Now()
	earned := b.rate * now.Sub(b.at).Seconds()
	b.at = now
	b.allowed += earned
	b.balance = min(b.balance+earned, burst*b.rate)
}

// BudgetUsage is how much of a budget was used. Two of them show the use in between.
type BudgetUsage struct {
	Rate    float64 // units a second, now
	Used    float64 // units that the calls so far consumed
	Allowed float64 // units that the budget has allowed since it was made
}

// Usage returns the counters.
func (b *Budget) Usage() BudgetUsage {
	if b == nil {
		return BudgetUsage{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance()
	return BudgetUsage{Rate: b.rate, Used: b.used, Allowed: b.allowed}
}

// pageUnits is what a full page of 1 MB costs when it is read with strong consistency: a unit for 4
// KB.
const pageUnits = 256

// PageLimit returns how many items of the given cost a page should ask for, so that one page costs
// no more than a second's budget and consumption stays even. 0: a full page fits.
func (b *Budget) PageLimit(itemUnits float64) int {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rate >= pageUnits || itemUnits <= 0 {
		return 0
	}
	return int(max(1, b.rate/itemUnits))
}
