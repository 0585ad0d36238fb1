package bigtable

import (
	"context"
	"sync"
	"time"
)

// callLimit bounds the calls in flight to one table, as TCP's congestion control does (AIMD). The
// bound grows by addition while calls are quick and use half of it or more, and shrinks by
// multiplication when the service is unavailable, overloaded or slow. Calls wait in the order in
// which they came, so that no lane starves. Each table has its own limit, so a slow table does not
// affect others.
type callLimit struct {
	low, high float64

	mu       sync.Mutex
	bound    float64
	inFlight int           // calls between acquire and release
	waiting  []*waiter     // in the order in which they came
	floor    time.Duration // latency of a call without load

	// The bound decreases at most once in a round, which is as many calls as may be in flight:
	// single failures, which every service has, do not show its load. These count the calls of the
	// round.
	seen, failed, slow int

	overloads uint64 // calls since the begin that showed an overload
}

type waiter struct {
	ready chan struct{} // closed under mu when a slot is handed over
}

// loadSignal is what a call that has ended shows about the service's load.
type loadSignal uint8

const (
	loadQuick    loadSignal = iota // answered; its latency counts
	loadOverload                   // unavailable, timed out or throttled
	loadNeutral                    // rejected or canceled: shows nothing
)

const (
	slowFactor = 4                     // a call slower than the floor by this factor …
	slowMargin = 50 * time.Millisecond // … and this time has waited in a queue of the service
	floorDrift = 1.001                 // the floor grows with each call, so that a lasting change becomes normal
)

// newCallLimit makes a Limit with a bound between low and high, which is start at first.
func newCallLimit(low, start, high int) *callLimit {
	return &callLimit{low: float64(low), bound: float64(start), high: float64(high)}
}

// Acquire waits for a slot, first come first served. It returns the context's cause when ctx ends
// before.
func (l *callLimit) Acquire(ctx context.Context) error {
	l.mu.Lock()
	if len(l.waiting) == 0 && float64(l.inFlight) < l.bound {
		l.inFlight++
		l.mu.Unlock()
		return nil
	}
	w := &waiter{ready: make(chan struct{})}
	l.waiting = append(l.waiting, w)
	l.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		return l.abandon(ctx, w)
	}
}

// abandon removes a waiter from the queue. A slot that was handed to it meanwhile goes to the next
// waiter.
func (l *callLimit) abandon(ctx context.Context, w *waiter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.waiting {
		if l.waiting[i] == w {
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			return context.Cause(ctx)
		}
	}
	l.inFlight--
	l.serve()
	return context.Cause(ctx)
}

// Release gives a slot back, adapts the bound to the call's latency and signal, and returns the
// bound.
func (l *callLimit) Release(took time.Duration, signal loadSignal) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.adapt(took, signal)
	l.inFlight--
	l.serve()
	return l.bound
}

// Overloads returns how many calls have shown an overload so far.
func (l *callLimit) Overloads() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.overloads
}

// adapt changes floor and bound by the outcome of one call. The mutex is held.
func (l *callLimit) adapt(took time.Duration, signal loadSignal) {
	l.seen++
	switch signal {
	case loadOverload:
		l.failed++
		l.overloads++
	case loadQuick:
		if l.floor == 0 || took < l.floor {
			l.floor = took
		}
		l.floor = time.Duration(float64(l.floor) * floorDrift)
		if took > slowFactor*l.floor+slowMargin {
			l.slow++
		} else if float64(l.inFlight)*2 >= l.bound {
			l.bound = min(l.high, l.bound+1/l.bound)
		}
	}
	if l.seen < int(l.bound) {
		return
	}
	switch {
	case l.failed*10 >= l.seen:
		l.bound = max(l.low, l.bound*0.7)
	case l.slow*2 >= l.seen:
		l.bound = max(l.low, l.bound*0.9)
	}
	l.seen, l.failed, l.slow = 0, 0, 0
}

// serve hands free slots to the first waiters. The mutex is held.
func (l *callLimit) serve() {
	n := 0
	for n < len(l.waiting) && float64(l.inFlight) < l.bound {
		close(l.waiting[n].ready)
		l.inFlight++
		n++
	}
	if n == len(l.waiting) {
		l.waiting = l.waiting[:0]
		return
	}
	l.waiting = l.waiting[n:]
}
