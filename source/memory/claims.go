package memory

import "time"

// claim is a lease that waits.
type claim struct {
	lease   *Lease
	turn    uint64
	since   time.Time
	atLimit bool // the feed holds too much itself
	granted func()
	index   int
}

// claims is a heap by turn. Behind those that wait for the total come the feeds at their own limit.
type claims []*claim

// first returns the claim that is next, or nil if all are at their own limit.
func (h claims) first() *claim {
	if len(h) == 0 || h[0].atLimit {
		return nil
	}
	return h[0]
}

func (h claims) Len() int { return len(h) }

func (h claims) Less(i, j int) bool {
	if h[i].atLimit != h[j].atLimit {
		return h[j].atLimit
	}
	return h[i].turn < h[j].turn
}

func (h claims) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *claims) Push(x any) {
	c := x.(*claim)
	c.index = len(*h)
	*h = append(*h, c)
}

func (h *claims) Pop() any {
	old := *h
	c := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return c
}
