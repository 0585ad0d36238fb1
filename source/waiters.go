package source

import "time"

// waiter is a lease that waits for a page.
type waiter struct {
	lease   *PageLease
	ticket  uint64 // in the order of the requests
	since   time.Time
	atLimit bool // the feed is at its own limit
	granted func()
	index   int
}

// waiters is a heap by ticket; waiters with a feed at its own limit come last.
type waiters []*waiter

// first returns the next waiter, or nil if the feeds of all are at their own limit.
func (h waiters) first() *waiter {
	if len(h) == 0 || h[0].atLimit {
		return nil
	}
	return h[0]
}

func (h waiters) Len() int { return len(h) }

func (h waiters) Less(i, j int) bool {
	if h[i].atLimit != h[j].atLimit {
		return h[j].atLimit
	}
	return h[i].ticket < h[j].ticket
}

func (h waiters) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *waiters) Push(x any) {
	w := x.(*waiter)
	w.index = len(*h)
	*h = append(*h, w)
}

func (h *waiters) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
