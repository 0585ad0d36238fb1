package cutover

import (
	"context"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/control"
)

// ChangedSince is what decides whether a cutover compares all items.
var ChangedSince = (*Cutover).changedSince

// Raise fences the tables.
var Raise = (*Cutover).raise

// UnfenceRow is the last step of an undo.
var UnfenceRow = unfenceRow

// Logs is a look at the logs while a cutover waits.
func (c *Cutover) Logs(ctx context.Context) ([]*control.Log, error) { return c.logs(ctx) }

// LongestLull is longestLull in seconds.
func LongestLull(changes []int64, from, to int64) (longest time.Duration, since int64) {
	seconds := map[change.Millis]bool{}
	for _, s := range changes {
		seconds[change.Millis(s)] = true
	}
	longest, begin := longestLull(seconds, change.Millis(from*1000), change.Millis(to*1000))
	return longest, int64(begin / 1000)
}
