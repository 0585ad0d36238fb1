package bigtable

import (
	"context"
	"slices"
	"sync"
	"time"
)

// traffic is what a call is for. Calls of the stream come first: the lag of every reader depends on
// them.
type traffic uint8

const (
	ofStream traffic = iota // changes of the stream, and the pipeline's own rows
	ofCopy                  // copies, resyncs and comparisons
	kinds
)

// gate decides which waiting call begins when a slot is free, over all tables of a client: they
// share its connections, and Bigtable.
//
// A call of the stream gets the next free slot of its table. Calls of copies take what is left.
// They begin only while no call of the stream waits, in any table. Of each table a tenth of the
// slots is for them at any time, so that a copy ends even beside a stream that always has something
// to write. Calls of one kind and table begin in the order in which they came, so that no lane
// starves.
//
// One mutex covers the limits of all tables: else a copy could miss that the last call of the
// stream has begun in another table.
type gate struct {
	mu       sync.Mutex
	pressing int          // tables in which calls of the stream wait
	behind   []*callLimit // tables in which calls of copies wait
}

// callLimit bounds the calls in flight to one table. Each table has its own limit, so a slow table
// does not affect the streams of others.
type callLimit struct {
	gate  *gate
	began time.Time

	// The gate's mutex covers what follows.
	bound     bound
	inFlight  int              // calls between acquire and release
	copies    int              // of these, calls of copies
	waiting   [kinds][]*waiter // in the order in which they came
	pressing  bool             // counted in gate.pressing
	overloads uint64           // calls so far that showed an overload
	calls     uint64           // so far, without those that show nothing about the load
	took      time.Duration    // all calls together
	// streamCalls are the calls of changes of the stream.
	streamCalls uint64
}

// waiter is a call that waits for a slot.
type waiter struct {
	ready chan struct{} // closed under the mutex when a slot is handed over
}

// newCallLimit makes a limit with a bound between low and high, which is start at first.
func (g *gate) newCallLimit(low, start, high int) *callLimit {
	return &callLimit{gate: g, bound: newBound(low, start, high)}
}

// Acquire waits for a slot. If ctx ends first, it returns the cause of ctx.
func (l *callLimit) Acquire(ctx context.Context, of traffic) error {
	l.gate.mu.Lock()
	if len(l.waiting[of]) == 0 && l.mayBegin(of) {
		l.begin(of)
		l.gate.mu.Unlock()
		return nil
	}
	w := &waiter{ready: make(chan struct{})}
	if of == ofCopy && len(l.waiting[of]) == 0 {
		l.gate.behind = append(l.gate.behind, l)
	}
	l.waiting[of] = append(l.waiting[of], w)
	l.press()
	l.gate.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		return l.abandon(ctx, of, w)
	}
}

// abandon removes a waiter from its queue. A slot that was handed to it meanwhile goes to the next
// waiter.
func (l *callLimit) abandon(ctx context.Context, of traffic, w *waiter) error {
	l.gate.mu.Lock()
	defer l.gate.mu.Unlock()
	if i := slices.Index(l.waiting[of], w); i >= 0 {
		l.waiting[of] = slices.Delete(l.waiting[of], i, i+1)
	} else {
		l.end(of)
	}
	l.serve()
	return context.Cause(ctx)
}

// Release gives a call's slot back, adapts the bound to the call's latency and signal, and returns
// the bound. cpuShort is set while this machine's processors limit the calls.
func (l *callLimit) Release(of traffic, took time.Duration, signal loadSignal, cpuShort bool) float64 {
	l.gate.mu.Lock()
	defer l.gate.mu.Unlock()
	if signal != loadNeutral {
		l.calls++
		l.took += took
		if of == ofStream {
			l.streamCalls++
		}
	}
	if signal == loadOverload {
		l.overloads++
	}
	l.bound.held = cpuShort
	l.bound.ended(time.Since(l.began), took, signal, l.inFlight)
	l.end(of)
	l.serve()
	return l.bound.calls
}

// Return gives back the slot of a call that shows nothing about the load of writes.
func (l *callLimit) Return(of traffic) {
	l.gate.mu.Lock()
	defer l.gate.mu.Unlock()
	l.end(of)
	l.serve()
}

// Overloads returns how many calls have shown an overload so far.
func (l *callLimit) Overloads() uint64 {
	l.gate.mu.Lock()
	defer l.gate.mu.Unlock()
	return l.overloads
}

// Load returns what the calls have shown so far.
func (l *callLimit) Load() Load {
	l.gate.mu.Lock()
	defer l.gate.mu.Unlock()
	return Load{
		InFlight: l.inFlight, Waiting: len(l.waiting[ofStream]), Copying: len(l.waiting[ofCopy]),
		Bound: int(l.bound.calls), Most: int(l.bound.high), Calls: l.calls, Overloads: l.overloads, Cuts: l.bound.cuts,
		Stream: l.streamCalls, Took: l.took,
	}
}

// The mutex of the gate is held in all functions below.

func (l *callLimit) begin(of traffic) {
	l.inFlight++
	if of == ofCopy {
		l.copies++
	}
}

func (l *callLimit) end(of traffic) {
	l.inFlight--
	if of == ofCopy {
		l.copies--
	}
}

// mayBegin reports whether the next call of a kind may begin.
func (l *callLimit) mayBegin(of traffic) bool {
	switch {
	case float64(l.inFlight)+1 > l.bound.calls:
		return false
	case of == ofStream:
		return true
	}
	return l.copies < l.share() || len(l.waiting[ofStream]) == 0 && l.gate.pressing == 0
}

// share returns how many slots calls of copies get at any time.
func (l *callLimit) share() int { return max(int(l.bound.calls/10), 1) }

// serve hands free slots to the calls that wait, and to copies of other tables where the last call of
// the stream has got one.
func (l *callLimit) serve() {
	l.serveOwn()
	if l.press(); l.gate.pressing > 0 {
		return
	}
	for i := len(l.gate.behind) - 1; i >= 0; i-- { // from the end, because those without waiters leave
		l.gate.behind[i].serveOwn()
	}
}

// serveOwn hands the table's free slots to its waiters.
func (l *callLimit) serveOwn() {
	for {
		of := ofStream
		if len(l.waiting[ofStream]) == 0 || len(l.waiting[ofCopy]) > 0 && l.copies < l.share() {
			of = ofCopy
		}
		if len(l.waiting[of]) == 0 || !l.mayBegin(of) {
			break
		}
		close(l.waiting[of][0].ready)
		l.waiting[of] = l.waiting[of][1:]
		l.begin(of)
	}
	if len(l.waiting[ofCopy]) == 0 {
		l.gate.behind = slices.DeleteFunc(l.gate.behind, func(x *callLimit) bool { return x == l })
	}
}

// press counts the table among those in which calls of the stream wait. A table at its lowest bound
// does not count: Bigtable does not answer there, and copies of other tables would not help it by
// waiting.
func (l *callLimit) press() {
	pressing := len(l.waiting[ofStream]) > 0 && l.bound.calls > l.bound.low
	if pressing == l.pressing {
		return
	}
	l.pressing = pressing
	if pressing {
		l.gate.pressing++
	} else {
		l.gate.pressing--
	}
}
