package ask

import (
	"context"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/order"
	"github.com/tailrace-cdc/replicator/failure"
)

// CheckOwner returns nil while a replicator owns the table at the given time of the service, else an error with the
// reason. It uses the same signs as status: claims, and beats, which a living owner stores at least every third of ttl.
func CheckOwner(table string, s *checkpoint.State, now time.Time, ttl time.Duration) error {
	silent := silence(s, now)
	switch {
	case s.Owner == "" || s.Released:
		return exit.Environment(fmt.Errorf("no replicator owns table %s, and only its owner writes rows", table),
			"start `replicator run`; if it runs, `replicator status` says why it does not own the table")
	case silent > 3*ttl:
		return exit.Environment(fmt.Errorf("no sign of life of the replicator that owns table %s for %s", table,
			silent.Round(time.Second)), "start `replicator run`; nothing but the owner writes rows")
	case s.Paused:
		return exit.Environment(fmt.Errorf("table %s is paused", table), "first `replicator resume --table "+table+"`")
	}
	return nil
}

// silence returns for how long the owner of a log has stored nothing, at the given time of the
// service.
func silence(s *checkpoint.State, now time.Time) time.Duration {
	return time.Duration(change.MillisOf(now)-s.Date) * time.Millisecond
}

// betweenLooks is the time between two looks at a log whose owner seems to be silent.
const betweenLooks = 200 * time.Millisecond

// awaitOwner is CheckOwner that looks at the log again, for as long as patience, while its owner
// only seems to be silent. An owner that lives stores a beat at least every third of ttl.
//
// Rule 13: silence is observed. The newest entry is also old where the clock was set, or the
// machine of both was suspended, and just before another replicator takes the log over.
func awaitOwner(ctx context.Context, l *order.Log, now func() time.Time, ttl, patience time.Duration) error {
	_ = l.Log.RequestBeat() // a hint: the owner beats when its own timer is due
	for began := time.Now(); ; {
		err := CheckOwner(l.Table, l.State, now(), ttl)
		if err == nil || silence(l.State, now()) <= 3*ttl || time.Since(began) >= patience {
			return err
		}
		if err := failure.Pause(ctx, betweenLooks); err != nil {
			return err
		}
		if err := l.Refresh(ctx); err != nil {
			return err
		}
	}
}
