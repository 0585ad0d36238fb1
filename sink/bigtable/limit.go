package bigtable

import (
	"context"
	"sync"
	"time"
)

// limit bounds the calls in flight to one table: additive increase while calls are quick and the bound is
// what holds them, multiplicative decrease when the service is away, overloaded or slow. Waiters are served
// in the order they came, so that no lane starves. Each table has its own, so a slow table leaves others alone.
type limit struct {
	low, high float64

	mu       sync.Mutex
	bound    float64
	inFlight int           // calls between acquire and release
	waiting  []*waiter     // first come first
	floor    time.Duration // what a call costs when nothing is in the way

	// The bound falls at most once in a round, which is as many calls as may be in flight: single failures,
	// which every service has, say nothing about its load.
	seen, failed, slow int
}

type waiter struct {
	ready chan struct{} // closed under mu when the slot was handed over
}

// loadSignal is what a finished call says about the service's load.
type loadSignal uint8

const (
	quick    loadSignal = iota // answered; its latency counts
	overload                   // unavailable, timed out or throttled
	neutral                    // refused, cancelled: says nothing
)

const (
	slowFactor = 4                     // a call this much slower than the floor …
	slowMargin = 50 * time.Millisecond // … and this much over it means queueing at the service
	floorDrift = 1.001                 // the floor forgets: per call, so that a lasting change becomes the norm
)

func newLimit(low, start, high int) *limit {
	return &limit{low: float64(low), bound: float64(start), high: float64(high)}
}

// acquire waits for a slot, first come first served, or until ctx ends.
func (l *limit) acquire(ctx context.Context) error {
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

// abandon takes a waiter out of the line; a slot that was handed over meanwhile goes to the next.
func (l *limit) abandon(ctx context.Context, w *waiter) error {
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

// release gives the slot back, learns from the call and reports the bound.
func (l *limit) release(took time.Duration, o loadSignal) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.learn(took, o)
	l.inFlight--
	l.serve()
	return l.bound
}

func (l *limit) learn(took time.Duration, o loadSignal) {
	l.seen++
	switch o {
	case overload:
		l.failed++
	case quick:
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

// serve hands free slots to the longest waiting.
func (l *limit) serve() {
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
