package resync

import (
	"cmp"
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
)

// parts shares protocol.Parts among the goroutines of a copy. Readers take the part that is due
// first, so the segments of a scan take turns, a page each.
type parts struct {
	mu     sync.Mutex // covers what follows, and the fields of each part and page
	copied *protocol.Parts
	queue  partQueue     // parts that may be read and that no reader has taken
	added  chan struct{} // closed and replaced when the queue gains a part, and when the last part is done
}

// part is one part of a copy.
type part struct {
	*protocol.Part
	due   time.Time // when it may be read next
	fails int       // failed reads in a row
	units float64   // read capacity of its last page
	// itemUnits is the read capacity of an item of that page.
	itemUnits float64
}

// newParts returns the parts of a copy at their marks.
func newParts(c *checkpoint.CopyState) *parts {
	p := &parts{copied: protocol.NewParts(c), added: make(chan struct{})}
	for _, x := range p.copied.All {
		if x.Readable() {
			p.queue = append(p.queue, &part{Part: x})
		}
	}
	heap.Init(&p.queue)
	return p
}

// take waits for the part that is due first, and takes it. It returns nil when all parts are done.
func (p *parts) take(ctx context.Context) (*part, error) {
	for {
		x, wait, added := p.tryTake(time.Now())
		if x != nil || wait < 0 {
			return x, nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		case <-added:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// tryTake takes the part that is due first. If none is due now it returns how long to wait, at most
// until added is closed; negative when all parts are done.
func (p *parts) tryTake(now time.Time) (x *part, wait time.Duration, added <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.copied.AllDone():
		return nil, -1, nil
	case len(p.queue) == 0:
		return nil, time.Hour, p.added
	}
	if wait = p.queue[0].due.Sub(now); wait > 0 {
		return nil, wait, p.added
	}
	x = heap.Pop(&p.queue).(*part)
	x.Take()
	return x, 0, nil
}

// giveBack lets a part be taken again from a time on, unless its last page is in hand.
func (p *parts) giveBack(x *part, due time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x.GiveBack()
	x.due = due
	p.enqueue(x)
}

// enqueue queues a part that may be read. The caller holds mu.
func (p *parts) enqueue(x *part) {
	if !x.Readable() {
		return
	}
	heap.Push(&p.queue, x)
	p.wake()
}

// wake lets the waiting readers look again. The caller holds mu.
func (p *parts) wake() {
	close(p.added)
	p.added = make(chan struct{})
}

// add notes a page that was read of a taken part after the position from. It returns false if the
// part was sent back to an earlier position meanwhile: the page is read again then.
func (p *parts) add(x *part, pg *page, rewinds int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	x.fails, x.units = 0, pg.units
	if pg.Items > 0 {
		x.itemUnits = pg.units / float64(pg.Items)
	}
	return x.Add(&pg.CopyPage, rewinds)
}

// complete notes that a page's items are durable, or dead letters.
func (p *parts) complete(x *part, pg *page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pg.Letters = pg.letters.Load()
	was := p.copied.AllDone()
	if p.copied.Complete(x.Part, &pg.CopyPage); p.copied.AllDone() && !was {
		p.wake()
	}
}

// finish notes that workers have made a whole part durable.
func (p *parts) finish(number int, whole checkpoint.CopyMark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.copied.Finish(p.copied.All[number], whole)
}

// done reports whether a part is done.
func (p *parts) done(number int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.copied.All[number].Done()
}

// marks returns the marks of all parts.
func (p *parts) marks() map[int]checkpoint.CopyMark {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.copied.Marks()
}

// readAgain sends a part back to the begin of a page that became too old before it was written.
func (p *parts) readAgain(x *part, pg *page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x.ReadAgain(&pg.CopyPage) && !x.queued(p) {
		p.enqueue(x)
	}
}

// queued reports whether a part waits for a reader. The caller holds mu.
func (x *part) queued(p *parts) bool {
	for _, y := range p.queue {
		if x == y {
			return true
		}
	}
	return false
}

// failed notes a failed read of a taken part, and returns how many there were in a row.
func (p *parts) failed(x *part) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	x.fails = min(x.fails+1, 1000)
	return x.fails
}

// position returns where a taken part is read next, and how often it was sent back before.
func (p *parts) position(x *part) (from string, rewinds int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return x.Position()
}

// takeMoved returns the marks of the parts that have moved since the last call.
func (p *parts) takeMoved() map[int]checkpoint.CopyMark {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.copied.TakeMoved()
}

// putBack notes that marks could not be stored.
func (p *parts) putBack(marks map[int]checkpoint.CopyMark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.copied.PutBack(marks)
}

// total returns the sum of the marks.
func (p *parts) total() checkpoint.CopyMark {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.copied.Total()
}

// ended returns how many parts with items are done, and how many parts may have items.
func (p *parts) ended() (ended, of int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	empty := p.copied.EmptyCount()
	return p.copied.DoneCount() - empty, len(p.copied.All) - empty
}

// allDone reports whether every part is done.
func (p *parts) allDone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.copied.AllDone()
}

// partQueue is a heap of parts by due time.
type partQueue []*part

func (q partQueue) Len() int      { return len(q) }
func (q partQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q partQueue) Less(i, j int) bool {
	return cmp.Or(q[i].due.Compare(q[j].due), cmp.Compare(q[i].Number, q[j].Number)) < 0
}

func (q *partQueue) Push(x any) { *q = append(*q, x.(*part)) }

func (q *partQueue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return x
}
