package apply

import "time"

// ageOf returns how long ago an item was read: the larger of what the wall clock and the monotonic clock say. The
// monotonic clock stands still while the machine is suspended, and the wall clock may be set.
func ageOf(item *ResyncItem, now time.Time) time.Duration {
	return max(now.Sub(item.ReadAt), now.Round(0).Sub(item.ReadAt.Round(0)))
}

// fresh returns ErrStale once the item was read too long ago, or a gap was found that ends after the reading: the
// resync that heals it may have passed the rows already. The sink asks before every attempt.
func (x *resyncing) fresh() error {
	if x.o.Owned != nil {
		if err := x.o.Owned(); err != nil { // it may take a while, so it comes first
			return err
		}
	}
	if x.item.beforeGap() || ageOf(x.item, x.shared.clock()) >= PageAge {
		return ErrStale
	}
	return nil
}
