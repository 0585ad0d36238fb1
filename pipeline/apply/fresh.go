package apply

import (
	"math"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/protocol"
)

// Fresh reports whether the item may still be written at a time of this process: protocol.Reading.
func (x *ResyncItem) Fresh(now time.Time) bool {
	r := protocol.Reading{Requested: x.Requested, At: protocol.InstantOf(x.ReadAt, x.ReadAt)}
	gaps := change.Millis(math.MinInt64)
	if x.GapsUntil != nil {
		gaps = x.GapsUntil()
	}
	return r.Fresh(protocol.InstantOf(now, x.ReadAt), gaps)
}

// ageOf returns how long ago an item was read.
func ageOf(item *ResyncItem, now time.Time) time.Duration {
	return protocol.InstantOf(now, item.ReadAt).Since(protocol.InstantOf(item.ReadAt, item.ReadAt))
}

// fresh returns ErrStale once the item may not be written any more. The sink calls it before every
// attempt.
func (x *resyncing) fresh() error {
	if x.o.MayWrite != nil {
		if err := x.o.MayWrite(); err != nil { // it may take a while, so it comes first
			return err
		}
	}
	if !x.item.Fresh(x.shared.clock()) {
		return ErrStale
	}
	return nil
}
