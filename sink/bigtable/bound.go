package bigtable

import (
	"math"
	"time"
)

// bound finds how many calls to a table may be in flight, as TCP finds its window. It doubles with
// each round until one is crowded, slow or refused. From then on it stays near the bound of that
// round, its ceiling, for some seconds, and then looks for a higher one (the curve is that of CUBIC,
// RFC 9438). A round is as many calls as may be in flight, and at least leastRound. It is judged as
// a whole: single slow or refused calls, which every service has, do not show its load.
type bound struct {
	low, high float64

	calls    float64       // the bound: how many calls may be in flight
	starting bool          // the bound doubles with each round
	held     bool          // this machine's processors limit the calls: the bound does not grow
	shrunk   bool          // after the last round: calls of this one are older, and show nothing new
	ceiling  float64       // the bound near which it stays, see grow
	grown    time.Duration // for how long the bound was used in full since the ceiling was set
	best     time.Duration // mean latency of the best round
	slow     time.Duration // mean latency of the last slow round; 0 after a round that was not slow
	unmoved  int           // consecutive slow rounds that were no faster although the bound shrank
	usual    float64       // share of calls that fail for another reason than load
	cuts     uint64        // rounds so far after which the bound shrank because calls were refused

	// The round: when it began, its calls, how many of them showed an overload and how many were
	// answered, how long the answered ones took together, and whether the bound was ever reached.
	began                   time.Duration
	seen, refused, answered int
	took                    time.Duration
	reached                 bool
}

// loadSignal is what a call that has ended shows about the service's load.
type loadSignal uint8

const (
	loadQuick    loadSignal = iota // answered; its latency counts
	loadOverload                   // unavailable, timed out or throttled
	loadNeutral                    // rejected or canceled: shows nothing
)

// What the mean latency of a round means, compared with that of the best round: up to crowded the
// bound may grow, above slow it shrinks. The margins keep a service that answers within a
// millisecond from counting as slow when this machine is busy.
const (
	crowdedFactor, crowdedMargin = 2, 2 * time.Millisecond
	slowFactor, slowMargin       = 3, 10 * time.Millisecond
)

// What the share of refused calls in a round means, beyond twice the usual share and its scatter:
// from refusedSome the bound shrinks a little, from refusedMany a lot. One refused call of a round
// is less than refusedSome. The usual share is learned up to usualAtMost.
const (
	refusedSome, refusedMany = 0.01, 0.1
	usualAtMost              = 0.05
	shrinkSome, shrinkMany   = 0.95, 0.75
)

const (
	leastRound = 128 // calls: fewer show too little
	// unmovedRounds is after how many slow rounds that are no faster the search begins again.
	unmovedRounds = 3
	// curve is the time from the ceiling to twice the ceiling.
	curve = 2500 * time.Millisecond
)

// newBound returns a bound between low and high, which is start at first.
func newBound(low, start, high int) bound {
	return bound{low: float64(low), calls: float64(start), high: float64(high), starting: true}
}

// ended counts a call that has ended. inFlight is how many calls were in flight, this one included.
func (b *bound) ended(at, took time.Duration, signal loadSignal, inFlight int) {
	b.seen++
	switch signal {
	case loadOverload:
		b.refused++
	case loadQuick:
		b.answered++
		b.took += took
	}
	b.reached = b.reached || float64(inFlight) >= math.Floor(b.calls)
	if b.seen >= max(int(b.calls), leastRound) {
		b.endRound(at)
	}
}

// endRound adapts the bound to what a round has shown.
func (b *bound) endRound(at time.Duration) {
	failing := float64(b.refused) / float64(b.seen)
	excess := failing - 2*b.usual - 2*math.Sqrt(b.usual/float64(b.seen))
	switch learned := min(failing, usualAtMost) - b.usual; {
	case b.calls <= b.low: // the lowest bound is no load: failures have another reason
		b.usual += learned / 2
	case learned < 0:
		b.usual += learned / 64
	}
	defer func() { b.began, b.seen, b.refused, b.answered, b.took, b.reached = at, 0, 0, 0, 0, false }()
	mean := time.Duration(0)
	if b.answered > 0 {
		mean = b.took / time.Duration(b.answered)
		if b.best == 0 || mean < b.best || b.calls <= b.low {
			b.best = mean
		}
	}
	shrunk := b.shrunk
	b.shrunk = false
	switch {
	case shrunk:
	case excess >= refusedMany:
		b.cuts++
		b.shrink(shrinkMany)
	case excess >= refusedSome:
		b.cuts++
		b.shrink(shrinkSome)
	case mean > slowFactor*b.best+slowMargin:
		b.slowRound(mean)
		return
	case mean > crowdedFactor*b.best+crowdedMargin:
		b.endStart(b.calls)
	case b.held:
		b.endStart(b.calls)
	case b.reached:
		b.grow(min(at-b.began, time.Second))
	}
	if !shrunk {
		b.slow, b.unmoved = 0, 0
	}
}

// slowRound shrinks the bound after a slow round. If that makes the next rounds no faster, the load
// is not why the service is slow, for example after a fail-over to a cluster far away. Then the
// search begins again, with the new latency as the best.
func (b *bound) slowRound(mean time.Duration) {
	if mean > b.slow*9/10 && b.slow > 0 {
		b.unmoved++
	} else {
		b.unmoved = 0
	}
	b.slow = mean
	if b.unmoved < unmovedRounds {
		b.shrink(shrinkMany)
		return
	}
	b.best, b.slow, b.unmoved, b.starting = mean, 0, 0, true
}

// shrink multiplies the bound by a factor. At the lowest bound the search begins again.
func (b *bound) shrink(by float64) {
	b.shrunk = true
	if b.starting {
		b.endStart(b.calls / 2) // the bound of the round before, which was not slow
		b.calls = b.ceiling
	} else {
		b.ceiling, b.grown = b.calls, 0
		b.calls *= by
	}
	if b.calls <= b.low {
		b.calls, b.starting = b.low, true
	}
}

// endStart ends the doubling of the bound at a ceiling.
func (b *bound) endStart(ceiling float64) {
	if b.starting {
		b.starting, b.ceiling, b.grown = false, ceiling, 0
	}
}

// grow raises the bound after a round in which it was used in full.
func (b *bound) grow(lasted time.Duration) {
	if b.starting {
		b.calls = min(b.high, 2*b.calls)
		return
	}
	// The curve reaches the ceiling after flat seconds, is level there, and then rises ever faster.
	b.grown += lasted
	flat := math.Cbrt(max(0, 1-shrinkSome)) * curve.Seconds()
	x := (b.grown.Seconds() - flat) / curve.Seconds()
	b.calls = min(b.high, max(b.calls, min(b.ceiling*(1+x*x*x), 1.5*b.calls)))
}
