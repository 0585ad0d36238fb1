package source

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

// Event is a page of a reader, or the error that ended it: one of Page and Err is set. After an
// error, and after a page that is Done, the pool has removed and closed the reader; after ReadOn it
// may be added again.
type Event struct {
	Reader *Reader
	Page   *Page
	Err    error
}

// Pool reads any number of shards with few goroutines: it keeps its readers in a heap ordered by
// due time, and runs a goroutine for a reader only during one call. A shard is not read again
// before its last page has been received, so the pages of a shard come in order. Other shards go on
// meanwhile.
type Pool struct {
	src *Source

	mu      sync.Mutex
	due     readerHeap
	members map[*Reader]struct{}
	parked  map[*Reader]time.Time
	soon    time.Time // readers whose last read began earlier are due as soon as their rates allow
	ended   bool

	wake chan struct{}
}

// NewPool makes an empty pool.
func (s *Source) NewPool() *Pool {
	return &Pool{src: s, members: map[*Reader]struct{}{}, parked: map[*Reader]time.Time{}, wake: make(chan struct{}, 1)}
}

// Add hands a reader over to the pool, before or during Run. After Run has returned it only closes
// the reader.
func (p *Pool) Add(r *Reader) {
	p.mu.Lock()
	ended := p.ended
	if !ended {
		p.members[r] = struct{}{}
	}
	p.mu.Unlock()
	if ended {
		r.Close()
		return
	}
	p.push(r)
}

// ReadAll makes every reader due at once, as far as its rate and its retries allow. A reader in the
// middle of a read that began before makes another one.
func (p *Pool) ReadAll() {
	now := time.Now()
	p.mu.Lock()
	p.soon = now
	for _, r := range p.due {
		r.pace.ReadSoon(now)
	}
	heap.Init(&p.due)
	p.mu.Unlock()
	p.wakeUp()
}

// Len returns the number of readers in the pool.
func (p *Pool) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.members)
}

// Run reads until the context ends, and sends every page and every reader's end to out. It returns
// the context's cause, after all reads have ended and all readers are closed. Pages that were read
// but not received are released: their records count as not read.
func (p *Pool) Run(ctx context.Context, out chan<- Event) error {
	var g errgroup.Group
	p.schedule(ctx, &g, out)
	_ = g.Wait() // reads return no errors: they send them to out
	p.mu.Lock()
	members := p.members
	p.ended, p.members, p.due, p.parked = true, nil, nil, map[*Reader]time.Time{}
	p.mu.Unlock()
	// Without the lock: memory that one reader gives back may be granted to another, and that calls
	// push.
	for r := range members {
		r.Close()
	}
	return context.Cause(ctx)
}

// schedule starts a goroutine of g for every reader that is due and has memory and a slot, until
// ctx ends.
func (p *Pool) schedule(ctx context.Context, g *errgroup.Group, out chan<- Event) {
	timer := time.NewTimer(longPark)
	defer timer.Stop()
	for ctx.Err() == nil {
		select { // the slot comes first, so that a reader that waits for a slot holds no memory
		case p.src.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		r, wait := p.pop(time.Now())
		if r == nil {
			<-p.src.slots
			timer.Reset(min(wait, longPark))
			select {
			case <-ctx.Done():
			case <-p.wake:
			case <-timer.C:
				p.warnParked(time.Now())
			}
			continue
		}
		if !p.reserve(r) {
			<-p.src.slots
			continue
		}
		g.Go(func() error { p.read(ctx, r, out); return nil })
	}
}

// reserve takes memory for one read and returns true, or parks the reader until memory is free,
// when it is pushed again.
func (p *Pool) reserve(r *Reader) bool {
	p.mu.Lock()
	p.parked[r] = time.Now()
	p.mu.Unlock()
	ok := r.reserve(func() { p.push(r) })
	if ok {
		p.mu.Lock()
		delete(p.parked, r)
		p.mu.Unlock()
	}
	return ok
}

// read makes one read of a reader that has memory and a slot, and sends the result to out. It
// blocks until the result is received or ctx ends, and makes the reader due again.
func (p *Pool) read(ctx context.Context, r *Reader, out chan<- Event) {
	page, err := r.readOnce(ctx)
	<-p.src.slots
	if page == nil && err == nil {
		p.push(r)
		return
	}
	last := err != nil || page.Done
	if last {
		p.remove(r)
	}
	select {
	case out <- Event{Reader: r, Page: page, Err: err}:
	case <-ctx.Done():
		if page != nil {
			page.Release()
		}
		return
	}
	if !last {
		p.push(r)
	}
}

// remove closes a reader and takes it out of the pool.
func (p *Pool) remove(r *Reader) {
	p.mu.Lock()
	delete(p.members, r)
	p.mu.Unlock()
	r.Close()
}

// push puts a reader into the heap of due readers, unless it has left the pool, and wakes the
// scheduler.
func (p *Pool) push(r *Reader) {
	p.mu.Lock()
	if _, member := p.members[r]; member {
		delete(p.parked, r)
		if r.pace.began.Before(p.soon) {
			r.pace.ReadSoon(time.Now())
		}
		heap.Push(&p.due, r)
	}
	p.mu.Unlock()
	p.wakeUp()
}

// wakeUp lets the scheduler look at the heap again.
func (p *Pool) wakeUp() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// pop takes a reader that is due out of the heap, or returns nil and the time until the next one is
// due.
func (p *Pool) pop(now time.Time) (*Reader, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.due) == 0 {
		return nil, longPark
	}
	if wait := p.due[0].pace.Due.Sub(now); wait > 0 {
		return nil, wait
	}
	return heap.Pop(&p.due).(*Reader), 0
}

// warnParked logs how many readers have waited longer than longPark for memory, and which of them
// has waited longest.
func (p *Pool) warnParked(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var longest *Reader
	n := 0
	for r, since := range p.parked {
		if now.Sub(since) < longPark {
			continue
		}
		if n++; longest == nil || since.Before(p.parked[longest]) {
			longest = r
		}
	}
	if longest != nil {
		p.src.log.Warn("shards wait for memory", zap.String("table", longest.start.Table), zap.Int("shards", n),
			zap.String("shard", longest.start.Feed.Shard), zap.Duration("parked", now.Sub(p.parked[longest])),
			zap.Int64("feed_limit", p.src.opt.MemoryPerFeed), zap.Int64("total_limit", p.src.opt.MemoryTotal))
	}
}

// readerHeap is a heap of readers by due time.
type readerHeap []*Reader

func (h readerHeap) Len() int           { return len(h) }
func (h readerHeap) Less(i, j int) bool { return h[i].pace.Due.Before(h[j].pace.Due) }
func (h readerHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

func (h *readerHeap) Push(x any) { *h = append(*h, x.(*Reader)) }

func (h *readerHeap) Pop() any {
	old := *h
	r := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return r
}
