package bigtable

import (
	"context"
	"sync"
	"time"
)

// callLimit bounds the calls in flight to one table. Calls wait in the order in which they came, so
// that no lane starves. Each table has its own limit, so a slow table does not affect others.
type callLimit struct {
	began time.Time

	mu        sync.Mutex // covers what follows
	bound     bound
	inFlight  int       // calls between acquire and release
	waiting   []*waiter // in the order in which they came
	overloads uint64    // calls so far that showed an overload
	calls     uint64    // so far, without those that show nothing about the load
}

// waiter is a call that waits for a slot.
type waiter struct {
	ready chan struct{} // closed under mu when a slot is handed over
}

// newCallLimit makes a limit with a bound between low and high, which is start at first.
func newCallLimit(low, start, high int) *callLimit {
	return &callLimit{bound: newBound(low, start, high)}
}

// Acquire waits for a slot, first come first served. If ctx ends first, it returns the
// cause of ctx.
func (l *callLimit) Acquire(ctx context.Context) error {
	l.mu.Lock()
	if len(l.waiting) == 0 && float64(l.inFlight)+1 <= l.bound.calls {
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
// bound. cpuShort is set while this machine's processors limit the calls.
func (l *callLimit) Release(took time.Duration, signal loadSignal, cpuShort bool) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if signal != loadNeutral {
		l.calls++
	}
	if signal == loadOverload {
		l.overloads++
	}
	l.bound.held = cpuShort
	l.bound.ended(time.Since(l.began), took, signal, l.inFlight)
	l.inFlight--
	l.serve()
	return l.bound.calls
}

// Overloads returns how many calls have shown an overload so far.
func (l *callLimit) Overloads() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.overloads
}

// Load returns what the calls have shown so far.
func (l *callLimit) Load() Load {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Load{
		InFlight: l.inFlight, Waiting: len(l.waiting), Bound: int(l.bound.calls), Most: int(l.bound.high),
		Calls: l.calls, Overloads: l.overloads, Cuts: l.bound.cuts,
	}
}

// serve hands free slots to the first waiters. The mutex is held.
func (l *callLimit) serve() {
	n := 0
	for n < len(l.waiting) && float64(l.inFlight)+1 <= l.bound.calls {
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
