// Package hotrow watches the rows that a table writes: how often, and how much the shared ones grow.
package hotrow

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// A row is served by one node, however many there are. Google advises against rows that are written again and
// again; where that begins is not said. Here a row is hot that is written more than a hundred times a second, on
// average over a window.
//
// Source: https://cloud.google.com/bigtable/docs/schema-design, row keys to avoid: frequently updated identifiers
const (
	heatWindow = 10 * time.Second
	hotRate    = 100 // writes a second
	hotWrites  = hotRate * uint64(heatWindow/time.Second)
	namedRows  = 8 // hot rows of a window that are logged; a table with more has one trouble, not many
)

// A slot is one word: the window it counts in, a fingerprint of the row it counts, the count. The window is kept
// modulo 2^20, that is 121 days.
const (
	slotBits        = 12
	countBits       = 20
	fingerprintBits = 24
	windowShift     = countBits + fingerprintBits
	countMask       = 1<<countBits - 1
)

// Tracker watches the rows that a table's lanes write: how often each of them is written, and how much those that
// several items share have grown (bulk). It knows what this process wrote, of this source table.
//
// Each row has a slot, and each slot a row that it counts: the others that come by lower the count, and at zero
// one of them takes the slot over (the majority vote of Boyer and Moore). So a count is never above the truth,
// and below it by at most what else fell into the slot: at 20,000 writes a second over 4096 slots that is 49
// writes in a window, or 5 a second. No cold row is called hot (but for one of the same fingerprint in the slot of
// a hot one: once in 300,000), and one of 110 writes a second is found. Two hot rows in one slot hide each other,
// but only for a window: the next one deals the rows out anew.
//
// Lanes do not wait for each other here. A write is one compare-and-swap on one of 4096 words, which is tried
// again only when two lanes meet in a slot within nanoseconds; and where they do, because all of them write one
// hot row, that row takes them a millisecond each.
type Tracker struct {
	log   *zap.Logger // with table and target
	seed  maphash.Seed
	began time.Time
	slots [1 << slotBits]atomic.Uint64
	top   [2]atomic.Uint64 // of an even and of an odd window: its number, then its highest count
	bulk  bulk

	mu      sync.Mutex // covers what follows
	named   []uint64   // rows of the window that were logged
	namedIn uint64
}

// New returns an empty Tracker that logs rows to log.
func New(log *zap.Logger, now time.Time) *Tracker {
	return &Tracker{log: log, seed: maphash.MakeSeed(), began: now}
}

// Wrote notes a write that has become durable, made of these changes of one item.
func (h *Tracker) Wrote(now time.Time, w *transform.Write, first, last *change.Change) {
	window := h.window(now)
	var s sizes
	for i := range w.Rows {
		row := &w.Rows[i]
		hash := h.hash(row.Key)
		if h.count(window, hash) == hotWrites {
			h.hot(now, window, hash, row.Key)
		}
		if row.Class == transform.ClassR {
			continue // one item, at most 400 KB
		}
		if s == (sizes{}) {
			s = sizesOf(w, first, last)
		}
		if grown, name := h.bulk.wrote(window, hash, row, s); name {
			h.large(grown, row.Key)
		}
	}
}

func (h *Tracker) hash(key []byte) uint64 { return maphash.Bytes(h.seed, key) }

// window numbers the windows, from 1 on.
func (h *Tracker) window(now time.Time) uint64 {
	return 1 + uint64(max(0, now.Sub(h.began))/heatWindow)
}

// count counts a write of the row in its slot, and returns how many there were of it; 0 when the slot counts
// another row.
func (h *Tracker) count(window, hash uint64) uint64 {
	x := scatter(hash, window)
	slot := &h.slots[x>>(64-slotBits)]
	who := window<<windowShift | x<<slotBits>>(64-fingerprintBits)<<countBits
	for {
		old := slot.Load()
		n, next := old&countMask, who|1
		switch {
		case old&^countMask == who:
			next = who | min(n+1, countMask)
		case old>>windowShift == who>>windowShift && n > 0:
			next = old - 1
		}
		if !slot.CompareAndSwap(old, next) {
			continue
		}
		if next&^countMask != who {
			return 0
		}
		n = next & countMask
		raise(&h.top[window%2], window<<countBits|n)
		return n
	}
}

// scatter gives a row another slot and another fingerprint in every window.
func scatter(hash, window uint64) uint64 {
	x := hash ^ window*0x9e3779b97f4a7c15
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

func raise(top *atomic.Uint64, to uint64) {
	for old := top.Load(); old < to && !top.CompareAndSwap(old, to); old = top.Load() {
	}
}

// Hottest is how often a second the hottest row of the last full window was written.
func (h *Tracker) Hottest(now time.Time) float64 {
	last := h.window(now) - 1
	top := h.top[last%2].Load()
	if top>>countBits != last {
		return 0
	}
	return float64(top&countMask) / heatWindow.Seconds()
}

// hot names a row that has just become hot, once per window.
func (h *Tracker) hot(now time.Time, window, hash uint64, key []byte) {
	h.mu.Lock()
	if h.namedIn < window {
		h.named, h.namedIn = h.named[:0], window
	}
	known := h.namedIn > window || len(h.named) == namedRows || slices.Contains(h.named, hash)
	if !known {
		h.named = append(h.named, hash)
	}
	h.mu.Unlock()
	if known {
		return
	}
	// The window is not over: the rate is that of its part so far.
	part := now.Sub(h.began) - time.Duration(window-1)*heatWindow
	rate := float64(hotWrites) / max(1, part.Seconds())
	h.name("hot row: more than 100 writes a second go to one row", key, zap.Float64("writes_per_second", math.Round(rate)))
}

func (h *Tracker) large(grown int64, key []byte) {
	h.name("large row: above 256 MB it cannot be read", key, zap.Int64("grown_bytes", grown))
}

// name logs what is the matter with a row. The key tells who the items are about, so that only Debug may show it:
// above, the row is known by the first 16 digits of the key's SHA-256.
func (h *Tracker) name(what string, key []byte, figure zap.Field) {
	sum := sha256.Sum256(key)
	row := zap.String("row", hex.EncodeToString(sum[:8]))
	h.log.Warn(what, row, figure)
	h.log.Debug("key of the row", row, zap.String("key", transform.Readable(key)))
}

// LargestGrowth is how much the shared row has grown that grew most.
func (h *Tracker) LargestGrowth() int64 { return h.bulk.largest() }

// Forget drops what the process knew: somebody else writes the rows from now on.
func (h *Tracker) Forget() { h.bulk.forget() }
