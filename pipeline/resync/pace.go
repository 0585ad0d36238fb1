package resync

import (
	"context"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// How many items of a copy are written at once.
const (
	mostWrites  = 3072 // half as many again as the default of bigtable.max_in_flight
	leastWrites = 8
	firstWrites = 128 // until the first adjustment
	usualBound  = 100 // calls in flight, if a copy does not get the bound of Bigtable
)

// writesFor returns how many items may be written at once while Bigtable may have so many calls in
// flight. Half as many again, because some items wait for each other in a lane.
func writesFor(bound int) int { return max(leastWrites, min(bound+bound/2, mostWrites)) }

// When a copy yields to the stream: the changes in the lanes are more than crowdedFrom and more than
// a third of the writes of the copy, or the oldest has waited for longer than waitedFrom.
const (
	paceEvery   = 100 * time.Millisecond
	crowdedFrom = 64
	waitedFrom  = 300 * time.Millisecond
)

// writePace limits how many items one copy writes at once, and how many rows a second. A copy
// yields to the stream: how many of its items are written at once shrinks while changes of the
// stream wait in the lanes or Bigtable is overloaded, and grows again when they do not. It never
// falls below a tenth, so that a copy ends even beside a stream that always has something to write.
// Several goroutines may use it.
type writePace struct {
	most   func() int    // most items written at once, if the stream does not wait
	tokens chan struct{} // holds one token for each item being written, and the withheld ones
	rows   *rate.Limiter // nil: no limit

	mu       sync.Mutex // covers what follows
	withheld int        // tokens that are withheld from items
	want     int        // tokens that should be withheld
	inHand   int        // items that were read and are not written
	items    float64    // written so far
	written  float64    // rows of them

	// The measured rate, for a copy without a limit of rows: done/busy, over about the last
	// secondsMeasured seconds in which any item was being written.
	writing int       // items that are being written
	counted time.Time // when busy was last brought up to date
	busy    float64   // seconds in which any item was being written
	done    float64   // items written in them
}

// A copy reads no more than it can write long before what it has read is too old. Else the pages in
// hand would become too old together, and be read again and again. How fast it can write is its
// limit of rows or, without one, the measured rate.
const (
	secondsInHand       = 30
	secondsOfPage       = 2
	secondsMeasured     = 20
	secondsInHandAtMost = 45 // of the measured rate, which may change; apply.ErrStale comes after 120
)

// perSecond returns how many items can be written in a second, or 0 before a second was measured.
// The caller holds mu.
func (p *writePace) perSecond() float64 {
	if p.rows != nil {
		return float64(p.rows.Limit()) / max(1, p.written/max(p.items, 1))
	}
	p.measure()
	if p.busy < 1 {
		return 0
	}
	return max(p.done, 1) / p.busy
}

// measure counts the time in which items are being written. Waiting for the stream or for pages
// does not count: a copy that reads little would otherwise measure how little it reads. The caller
// holds mu.
func (p *writePace) measure() {
	now := time.Now()
	if p.writing > 0 {
		p.busy += now.Sub(p.counted).Seconds()
	}
	for p.counted = now; p.busy > secondsMeasured; {
		p.busy, p.done = p.busy/2, p.done/2
	}
}

// PageLimit returns how many items one page may hold; 0: any number. At a measured rate, the pages
// being written together have at least as many items as may be written at once. With fewer items
// the rate would fall, and with it the limit.
func (p *writePace) PageLimit() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := int(math.Ceil(p.perSecond() * secondsOfPage))
	if n == 0 || p.rows != nil {
		return n
	}
	return max(n, p.allowed()/unpackedPages, 1)
}

// Full reports whether so many items are in hand that further ones would wait for too long.
func (p *writePace) Full() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.perSecond()
	if p.rows != nil {
		return float64(p.inHand) > n*secondsInHand
	}
	return n > 0 && float64(p.inHand) > max(n*secondsInHandAtMost, 2*float64(p.allowed()))
}

// allowed returns how many items may be written at once. The caller holds mu.
func (p *writePace) allowed() int { return mostWrites - p.want }

// Hold notes that items were read, or, with a negative number, that they are not in hand any more.
func (p *writePace) Hold(items int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inHand += items
}

// newWritePace returns a pace of at most rows per second, 0 for no limit. bound returns how many
// calls Bigtable may have in flight.
func newWritePace(rows float64, bound func() int) *writePace {
	p := &writePace{tokens: make(chan struct{}, mostWrites)}
	if p.most = func() int { return writesFor(bound()) }; bound == nil {
		p.most = func() int { return writesFor(usualBound) }
	}
	p.withhold(mostWrites - min(firstWrites, p.most()))
	if rows > 0 {
		p.rows = rate.NewLimiter(rate.Limit(rows), int(math.Ceil(max(rows/10, 1))))
	}
	return p
}

// Begin waits until one more item may be written.
func (p *writePace) Begin(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case p.tokens <- struct{}{}:
	}
	if p.rows != nil && p.rows.Wait(ctx) != nil { // also when the next row would be later than the deadline of ctx
		p.giveBack()
		<-ctx.Done()
		return context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.measure()
	p.writing++
	return nil
}

// giveBack returns an item's token, or withholds it while too few are withheld. It must do so here:
// a returned token goes to a waiting item at once.
func (p *writePace) giveBack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.withheld < p.want {
		p.withheld++
		return
	}
	<-p.tokens
}

// End notes that an item was written, and to how many rows, or, if not ok, that it was not. An item
// of several rows keeps its token until the limit of rows per second allows them.
func (p *writePace) End(ctx context.Context, rows int, ok bool) {
	defer p.giveBack()
	p.mu.Lock()
	p.measure()
	if p.writing--; ok {
		p.items, p.written, p.done = p.items+1, p.written+float64(rows), p.done+1
	}
	p.mu.Unlock()
	for ; p.rows != nil && rows > 1; rows-- {
		if p.rows.Wait(ctx) != nil {
			return
		}
	}
}

// Run adjusts the number of items that are written at once until ctx ends.
func (p *writePace) Run(ctx context.Context, backlog func() (int, time.Duration), throttled func() uint64) {
	if throttled == nil {
		throttled = func() uint64 { return 0 }
	}
	tick := time.NewTicker(paceEvery)
	defer tick.Stop()
	allowed, before := min(firstWrites, p.most()), throttled()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := throttled()
		changes, oldest := backlog()
		most := p.most()
		crowded := changes > max(crowdedFrom, most/3)
		allowed = nextAllowed(allowed, most, crowded || oldest > waitedFrom || now > before)
		before = now
		p.withhold(mostWrites - allowed)
	}
}

// nextAllowed returns how many items may be written at once from now on: half as many while the
// stream waits or Bigtable is overloaded, else some more.
func nextAllowed(allowed, most int, yield bool) int {
	if yield {
		return min(max(allowed/2, most/10, leastWrites), most)
	}
	return min(allowed+max(most/16, 1), most)
}

// withhold takes that many tokens out of use. Tokens that items hold are withheld when they are
// given back.
func (p *writePace) withhold(want int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.want = want; p.withheld > want; p.withheld-- {
		<-p.tokens
	}
	for p.withheld < want {
		select {
		case p.tokens <- struct{}{}:
			p.withheld++
		default:
			return
		}
	}
}
