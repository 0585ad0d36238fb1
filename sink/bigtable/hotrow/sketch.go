package hotrow

import "sync/atomic"

// A slot is one word: the window it counts in, a fingerprint of the row it counts, and the count.
// The window is kept modulo 2^20, which is 121 days.
const (
	slotBits        = 12
	countBits       = 20
	fingerprintBits = 24
	windowShift     = countBits + fingerprintBits
	countMask       = 1<<countBits - 1
)

// sketch counts how often rows are written, in constant memory.
//
// Each row has a slot, and each slot counts one row: writes of other rows lower the count, and at
// zero one of them takes the slot over (the majority vote of Boyer and Moore). So a count is never
// above the truth, and below it by at most the other writes of the slot: at 20,000 writes a second
// over 4096 slots that is 49 writes in a window, or 5 a second. A cold row is reported as hot only
// if it shares slot and fingerprint with a hot one: once in 300,000. A row with 110 writes a second
// is detected. Two hot rows in one slot hide each other, but only for a window, because the next
// window assigns the rows to other slots.
//
// Lanes do not block each other here. Counting a write is one compare-and-swap on one of 4096
// words, which is repeated only when two lanes change a slot within nanoseconds. Even lanes that
// all write one hot row rarely collide, because each write to Bigtable takes a millisecond.
type sketch struct {
	slots [1 << slotBits]atomic.Uint64
	top   [2]atomic.Uint64 // of an even and of an odd window: its number, then its highest count
}

// count counts a write of a row and returns its writes in the window; 0 when the row's slot counts
// another row.
func (s *sketch) count(window, hash uint64) uint64 {
	x := scatter(hash, window)
	slot := &s.slots[x>>(64-slotBits)]
	row := window<<windowShift | x<<slotBits>>(64-fingerprintBits)<<countBits
	for {
		old := slot.Load()
		n, next := old&countMask, row|1
		switch {
		case old&^countMask == row:
			next = row | min(n+1, countMask)
		case old>>windowShift == row>>windowShift && n > 0:
			next = old - 1
		}
		if !slot.CompareAndSwap(old, next) {
			continue
		}
		if next&^countMask != row {
			return 0
		}
		n = next & countMask
		raise(&s.top[window%2], window<<countBits|n)
		return n
	}
}

// highest returns the count of the hottest row of a window; 0 when the window is neither the newest
// nor the one before.
func (s *sketch) highest(window uint64) uint64 {
	top := s.top[window%2].Load()
	if top>>countBits != window {
		return 0
	}
	return top & countMask
}

// scatter gives a row another slot and another fingerprint in every window.
func scatter(hash, window uint64) uint64 {
	x := hash ^ window*0x9e3779b97f4a7c15
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// raise stores to in top if it is larger.
func raise(top *atomic.Uint64, to uint64) {
	for old := top.Load(); old < to && !top.CompareAndSwap(old, to); old = top.Load() {
	}
}
