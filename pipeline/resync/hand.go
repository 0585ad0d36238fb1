package resync

import (
	"context"
	"sync"
	"time"
)

const (
	// bytesInHand bounds the items that were read and wait for the proof, or to be written. One
	// read may exceed it.
	bytesInHand = 8 << 20
	// So many items may be in hand: as many as can be written before they are too old, or they
	// would be read again and again. That number cannot be computed, so the bound grows by one for
	// each item that is written, and shrinks by two for each that was too old.
	firstItems = 4096
	mostItems  = 1 << 16
	leastItems = 100
	// readTime is how long a caller goes on reading while the first of its items grow older: see
	// secondsInHandAtMost.
	readTime = 20 * time.Second
)

// itemHand counts the items in hand, over all resyncs that share it.
type itemHand struct {
	turn chan struct{} // capacity 1: one reads at a time

	mu           sync.Mutex // covers what follows
	items, bytes int
	most         int           // items
	freed        chan struct{} // closed and replaced when items are given back
}

// newItemHand returns a Hand with nothing in it.
func newItemHand() *itemHand {
	return &itemHand{turn: make(chan struct{}, 1), freed: make(chan struct{}), most: firstItems}
}

// Enter waits for its turn to read. since is when the caller began to read the items that it has in
// hand. If since is zero, the caller has none, and Enter also waits until there is room. Enter
// returns false when there is no room, or when since was too long ago. A caller with items in hand
// must not wait for room, because it holds the room that others wait for.
func (h *itemHand) Enter(ctx context.Context, since time.Time) (bool, error) {
	var late <-chan time.Time
	if !since.IsZero() {
		late = time.After(time.Until(since.Add(readTime)))
	}
	for {
		select {
		case h.turn <- struct{}{}:
		case <-late:
			return false, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
		h.mu.Lock()
		room, freed := h.bytes < bytesInHand && h.items < h.most, h.freed
		h.mu.Unlock()
		if room && (since.IsZero() || time.Since(since) < readTime) {
			return true, nil
		}
		<-h.turn
		if !since.IsZero() {
			return false, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// Leave ends a turn in which so many items were read.
func (h *itemHand) Leave(items, bytes int) {
	h.mu.Lock()
	h.items, h.bytes = h.items+items, h.bytes+bytes
	h.mu.Unlock()
	<-h.turn
}

// Written gives back the room of an item that was written, or was too old for that.
func (h *itemHand) Written(bytes int, stale bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if stale {
		h.most = max(h.most-2, leastItems)
	} else {
		h.most = min(h.most+1, mostItems)
	}
	h.drop(bytes)
}

// Drop gives back the room of an item that was not written.
func (h *itemHand) Drop(bytes int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(bytes)
}

// drop gives back the room of an item. The caller holds mu.
func (h *itemHand) drop(bytes int) {
	h.items, h.bytes = h.items-1, h.bytes-bytes
	close(h.freed)
	h.freed = make(chan struct{})
}

// InHand returns what is in hand.
func (h *itemHand) InHand() (items, bytes int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.items, h.bytes
}
