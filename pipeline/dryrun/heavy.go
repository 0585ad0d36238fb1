package dryrun

import (
	"cmp"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
)

// heavy finds the keys that occur most often among any number of keys, in constant memory: a
// counter for each of room keys, and where there is none for a key, all are lowered (Misra and
// Gries). A count is never above the truth, and below it by at most the number of keys divided by
// room.
type heavy struct {
	counts map[uint64]int64
	lost   int64 // by how much all counts were lowered
}

const (
	heavyRoom  = 512
	heavyShown = 5
	heavyShare = 0.01 // of all writes, below which a key is not shown
)

func (h *heavy) add(hash uint64, n int64) {
	if h.counts == nil {
		h.counts = make(map[uint64]int64, heavyRoom)
	}
	if _, known := h.counts[hash]; known || len(h.counts) < heavyRoom {
		h.counts[hash] += n
		return
	}
	least := n
	for _, c := range h.counts {
		least = min(least, c)
	}
	h.lost += least
	for k, c := range h.counts {
		if c == least {
			delete(h.counts, k)
		} else {
			h.counts[k] = c - least
		}
	}
	if n > least {
		h.counts[hash] = n - least
	}
}

// Heavy is a row or a partition key with a large share of a table's writes.
type Heavy struct {
	Hash   string  `json:"hash"` // of the key; the key itself may be personal data
	Writes int64   `json:"writes"`
	Share  float64 `json:"share"`
	Rate   float64 `json:"writes_per_s"`
}

// report returns the keys with the largest shares, of total writes in some seconds.
func (h *heavy) report(total int64, seconds float64) []Heavy {
	all := []Heavy{}
	for hash, n := range h.counts {
		if share := ratio(float64(n), float64(total)); n > 1 && share >= heavyShare {
			all = append(all, Heavy{
				Hash: change.HashText(hash), Writes: n, Share: share, Rate: ratio(float64(n), seconds),
			})
		}
	}
	slices.SortFunc(all, func(a, b Heavy) int {
		return cmp.Or(cmp.Compare(b.Writes, a.Writes), cmp.Compare(a.Hash, b.Hash))
	})
	return all[:min(len(all), heavyShown)]
}
