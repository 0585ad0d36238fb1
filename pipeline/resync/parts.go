package resync

import (
	"cmp"
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// parts tracks how far the parts of a copy have been read and written: segments of a scan, or files of an export.
// Readers take the part that is due first, so the segments of a scan take turns, a page each.
type parts struct {
	mu    sync.Mutex // covers what follows, and the fields of each part and page
	all   []*part
	queue partQueue     // parts that may be read and that no reader has taken
	open  int           // parts that are not done
	added chan struct{} // closed and replaced when the queue gains a part, and when the last part is done
}

// part is one part of a copy.
type part struct {
	number int
	due    time.Time // when it may be read next
	next   string    // position after which the next page is read
	ended  bool      // its last page was read
	taken  bool      // by a reader
	fails  int       // failed reads in a row
	units  float64   // read capacity of its last page
	// itemUnits is the read capacity of an item of that page.
	itemUnits float64
	pages     []*page // in memory, in order
	mark      checkpoint.CopyMark
	moved     bool // the mark has moved since it was stored
	rewind    int  // how often the part was sent back to an earlier position
}

// newParts returns the parts of a copy at their marks.
func newParts(c *checkpoint.CopyState) *parts {
	p := &parts{added: make(chan struct{})}
	for i := range c.Parts {
		x := &part{number: i, mark: c.Marks[i]}
		x.next, x.ended = x.mark.After, x.mark.Done
		p.all = append(p.all, x)
		if !x.mark.Done {
			p.open++
			p.queue = append(p.queue, x)
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

// tryTake takes the part that is due first. If none is due now it returns how long to wait, at most until added is
// closed; negative when all parts are done.
func (p *parts) tryTake(now time.Time) (x *part, wait time.Duration, added <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.open == 0:
		return nil, -1, nil
	case len(p.queue) == 0:
		return nil, time.Hour, p.added
	}
	if wait = p.queue[0].due.Sub(now); wait > 0 {
		return nil, wait, p.added
	}
	x = heap.Pop(&p.queue).(*part)
	x.taken = true
	return x, 0, nil
}

// giveBack lets a part be taken again from a time on, unless its last page is in hand.
func (p *parts) giveBack(x *part, due time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x.taken, x.due = false, due
	p.enqueue(x)
}

// enqueue queues a part that may be read. The caller holds mu.
func (p *parts) enqueue(x *part) {
	if x.taken || x.ended {
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

// add notes a page that was read of a taken part after the position from. It returns false if the part was sent back to
// an earlier position meanwhile: the page is read again then.
func (p *parts) add(x *part, pg *page, rewind int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	x.fails, x.units = 0, pg.units
	if pg.items > 0 {
		x.itemUnits = pg.units / float64(pg.items)
	}
	if x.rewind != rewind {
		return false
	}
	x.pages = append(x.pages, pg)
	x.next, x.ended = pg.after, pg.last
	return true
}

// complete notes that a page's items are durable, and moves the part's mark to the end of the contiguous durable pages.
//
// Rule 1: a mark never passes an item that is neither durable nor a dead letter.
func (p *parts) complete(x *part, pg *page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pg.done = true
	n := 0
	for n < len(x.pages) && x.pages[n].done {
		d := x.pages[n]
		x.mark = checkpoint.CopyMark{
			After: d.after, Items: x.mark.Items + int64(d.items), Bytes: x.mark.Bytes + int64(d.bytes),
			Letters: x.mark.Letters + d.letters.Load(), Done: d.last,
		}
		x.moved = true
		n++
	}
	clear(x.pages[:n])
	x.pages = x.pages[n:]
	if n > 0 && x.mark.Done {
		if p.open--; p.open == 0 {
			p.wake()
		}
	}
}

// readAgain sends a part back to the begin of a page that became too old before it was written. The pages after it are
// read again, too, because the new page may end elsewhere. Writing an item twice does no harm.
func (p *parts) readAgain(x *part, pg *page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range x.pages {
		if other == pg {
			x.pages = x.pages[:i]
			x.next, x.ended = pg.from, false
			x.rewind++
			if !x.queued(p) {
				p.enqueue(x)
			}
			return
		}
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
func (p *parts) position(x *part) (from string, rewind int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return x.next, x.rewind
}

// takeMoved returns the marks of the parts that have moved since the last call.
func (p *parts) takeMoved() map[int]checkpoint.CopyMark {
	p.mu.Lock()
	defer p.mu.Unlock()
	moved := map[int]checkpoint.CopyMark{}
	for _, x := range p.all {
		if x.moved {
			moved[x.number], x.moved = x.mark, false
		}
	}
	return moved
}

// putBack notes that marks could not be stored.
func (p *parts) putBack(marks map[int]checkpoint.CopyMark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range marks {
		p.all[i].moved = true
	}
}

// total returns the sum of the marks.
func (p *parts) total() (sum checkpoint.CopyMark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.all {
		sum.Items += x.mark.Items
		sum.Bytes += x.mark.Bytes
		sum.Letters += x.mark.Letters
	}
	sum.Done = p.open == 0
	return sum
}

// doneCount returns how many parts are done.
func (p *parts) doneCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.all) - p.open
}

// allDone reports whether every part is done.
func (p *parts) allDone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open == 0
}

// partQueue is a heap of parts by due time.
type partQueue []*part

func (q partQueue) Len() int      { return len(q) }
func (q partQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q partQueue) Less(i, j int) bool {
	return cmp.Or(q[i].due.Compare(q[j].due), cmp.Compare(q[i].number, q[j].number)) < 0
}

func (q *partQueue) Push(x any) { *q = append(*q, x.(*part)) }

func (q *partQueue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return x
}
