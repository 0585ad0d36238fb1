package resync

import (
	"context"
	"sync"
)

// bytesInHand bounds the items that were read and wait for the proof, or to be written. One read may exceed it.
const bytesInHand = 8 << 20

// hand counts the bytes of the items in hand, over all resyncs that share it.
type hand struct {
	turn chan struct{} // capacity 1: one reads at a time

	mu    sync.Mutex // covers what follows
	bytes int
	freed chan struct{} // closed and replaced when bytes are given back
}

func newHand() *hand { return &hand{turn: make(chan struct{}, 1), freed: make(chan struct{})} }

// enter waits for its turn to read, and with wait until there is room. It returns false when there is none. Whoever has
// items in hand must not wait for room, because it would be others' room.
func (h *hand) enter(ctx context.Context, wait bool) (bool, error) {
	for {
		select {
		case h.turn <- struct{}{}:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
		h.mu.Lock()
		room, freed := h.bytes < bytesInHand, h.freed
		h.mu.Unlock()
		if room {
			return true, nil
		}
		<-h.turn
		if !wait {
			return false, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// leave ends a turn in which so many bytes were read.
func (h *hand) leave(bytes int) {
	h.mu.Lock()
	h.bytes += bytes
	h.mu.Unlock()
	<-h.turn
}

// drop gives bytes back.
func (h *hand) drop(bytes int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes -= bytes
	close(h.freed)
	h.freed = make(chan struct{})
}
