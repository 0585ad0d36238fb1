package source

import (
	"slices"
	"sync"
	"time"
)

// Rule 9: back-pressure is bounded in bytes, per feed and in total. What a read may bring is taken out of the
// budget before the read, and comes back when the consumer releases the page.

// reservation is what one GetRecords may bring: 1 MB by the service's count, in a pooled buffer, and the index
// of a thousand records. Other servers send more: then the budget is overdrawn by the difference, once a feed.
const reservation = 3 << 19

// budget shares bytes among feeds: first come, first served, but a feed at its own limit makes nobody wait.
type budget struct {
	total, perFeed int64

	mu    sync.Mutex
	used  int64
	queue []*claim
}

// share is what one feed has of the budget. The budget's mutex covers it.
type share struct {
	used     int64 // reserved included
	reserved int64 // for the read to come
	claim    *claim
}

type claim struct {
	feed    *share
	n       int64
	since   time.Time
	granted func()
}

func newBudget(total, perFeed int64) *budget { return &budget{total: total, perFeed: perFeed} }

func (b *budget) inUse() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// parked returns how many feeds wait, and since when the first does.
func (b *budget) parked() (n int, since time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.queue {
		if n == 0 || c.since.Before(since) {
			since = c.since
		}
		n++
	}
	return n, since
}

// reserve makes sure that the feed has n bytes reserved and returns true; or it returns false and calls
// granted, from any goroutine and with no lock held, once they are. drop takes either back.
func (b *budget) reserve(feed *share, n int64, granted func()) bool {
	b.mu.Lock()
	if feed.reserved > 0 {
		b.mu.Unlock()
		return true
	}
	c := &claim{feed: feed, n: n, since: time.Now(), granted: granted}
	feed.claim = c
	b.queue = append(b.queue, c)
	ready := b.grant()
	now := feed.reserved > 0
	b.mu.Unlock()
	for _, other := range ready {
		if other != c {
			other.granted()
		}
	}
	return now
}

// drop gives the feed's reservation back, or withdraws its claim.
func (b *budget) drop(feed *share) {
	b.mu.Lock()
	b.queue = slices.DeleteFunc(b.queue, func(c *claim) bool { return c == feed.claim })
	feed.claim = nil
	b.mu.Unlock()
	b.settle(feed, 0)
}

// settle turns the feed's reservation into the n bytes that the read brought, without waiting even if they
// are more: what is in memory is in memory.
func (b *budget) settle(feed *share, n int64) {
	b.mu.Lock()
	less := feed.reserved - n
	feed.reserved = 0
	b.mu.Unlock()
	b.release(feed, less)
}

// release gives n bytes of the feed back.
func (b *budget) release(feed *share, n int64) {
	b.mu.Lock()
	b.used -= n
	feed.used -= n
	ready := b.grant()
	b.mu.Unlock()
	for _, c := range ready {
		c.granted()
	}
}

// grant serves the queue from its front until the total is used up. A feed that has nothing may always have
// one page when nothing else is in use, so that a small budget is slow and not stuck.
func (b *budget) grant() (ready []*claim) {
	for i := 0; i < len(b.queue); {
		c := b.queue[i]
		if b.used+c.n > b.total && b.used > 0 {
			break
		}
		if c.feed.used+c.n > b.perFeed && c.feed.used > 0 {
			i++
			continue
		}
		b.used += c.n
		c.feed.used += c.n
		c.feed.reserved, c.feed.claim = c.n, nil
		b.queue = slices.Delete(b.queue, i, i+1)
		ready = append(ready, c)
	}
	return ready
}
