// Package hotrow watches the rows that a table writes to Bigtable: which of them are written too
// often (a hot-row sketch), and how much those that several items share grow (a row-growth
// tracker). The sink never reads rows, so both are estimates from the writes of this process.
package hotrow

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"math"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// A row is served by one node, however many nodes there are. Google advises against rows that are
// written again and again, without a number. Here a row is hot when it is written more than a
// hundred times a second, averaged over a window.
//
// Source: https://cloud.google.com/bigtable/docs/schema-design, row keys to avoid: frequently
// updated identifiers
const (
	windowLength = 10 * time.Second
	hotRate      = 100 // writes a second
	hotWrites    = hotRate * uint64(windowLength/time.Second)
	maxLogged    = 8 // hot rows that are logged in a window; more of them have the same cause
)

// Tracker watches the rows of one source table. Any goroutine may call its methods.
type Tracker struct {
	log    *zap.Logger // with table and target
	seed   maphash.Seed
	began  time.Time
	sketch sketch
	growth growthTracker

	mu       sync.Mutex // covers what follows
	logged   []uint64   // hot rows of loggedIn that were logged, by hash
	loggedIn uint64     // a window
}

// New returns an empty Tracker that logs hot and large rows.
func New(log *zap.Logger, now time.Time) *Tracker {
	return &Tracker{log: log, seed: maphash.MakeSeed(), began: now}
}

// Wrote notes a durable write that was made from the changes of one item, of which the first and
// the last are given.
func (t *Tracker) Wrote(now time.Time, w *transform.Write, first, last *change.Change) {
	window := t.window(now)
	var sizes itemSizes
	for i := range w.Rows {
		row := &w.Rows[i]
		hash := t.hash(row.Key)
		if t.sketch.count(window, hash) == hotWrites {
			t.logHot(now, window, hash, row.Key)
		}
		if row.Class == transform.ClassR {
			continue // the row of one item: at most 400 KB
		}
		if sizes == (itemSizes{}) {
			sizes = sizesOf(w, first, last)
		}
		if grown, large := t.growth.add(window, hash, row, sizes); large {
			t.logRow("large row: above 256 MB it cannot be read", row.Key, zap.Int64("grown_bytes", grown))
		}
	}
}

// Hottest returns the writes a second of the hottest row in the last full window.
func (t *Tracker) Hottest(now time.Time) float64 {
	return float64(t.sketch.highest(t.window(now)-1)) / windowLength.Seconds()
}

// LargestGrowth returns the growth in bytes of the shared row that grew most; a lower estimate.
func (t *Tracker) LargestGrowth() int64 { return t.growth.largest() }

// Forget drops what is known about growth: another process writes the rows from now on, and may
// delete them.
func (t *Tracker) Forget() { t.growth.forget() }

func (t *Tracker) hash(key []byte) uint64 { return maphash.Bytes(t.seed, key) }

// window numbers the windows, from 1 on.
func (t *Tracker) window(now time.Time) uint64 {
	return 1 + uint64(max(0, now.Sub(t.began))/windowLength)
}

// logHot logs a row that has just become hot, once per window.
func (t *Tracker) logHot(now time.Time, window, hash uint64, key []byte) {
	t.mu.Lock()
	if t.loggedIn < window {
		t.logged, t.loggedIn = t.logged[:0], window
	}
	skip := t.loggedIn > window || len(t.logged) == maxLogged || slices.Contains(t.logged, hash)
	if !skip {
		t.logged = append(t.logged, hash)
	}
	t.mu.Unlock()
	if skip {
		return
	}
	// The window is not over: the rate is computed over its part so far.
	part := now.Sub(t.began) - time.Duration(window-1)*windowLength
	rate := math.Round(float64(hotWrites) / max(1, part.Seconds()))
	t.logRow("hot row: more than 100 writes a second go to one row", key, zap.Float64("writes_per_second", rate))
}

// logRow logs what is wrong with a row. The row's key may contain personal data, so it is logged at
// Debug only. The warning identifies the row by the first 16 digits of the key's SHA-256.
func (t *Tracker) logRow(what string, key []byte, figure zap.Field) {
	sum := sha256.Sum256(key)
	row := zap.String("row", hex.EncodeToString(sum[:8]))
	t.log.Warn(what, row, figure)
	t.log.Debug("key of the row", row, zap.String("key", transform.Readable(key)))
}
