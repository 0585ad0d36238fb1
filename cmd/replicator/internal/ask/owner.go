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
	case !owned(s):
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

// owned reports whether a log has an owner that has not released it.
func owned(s *checkpoint.State) bool { return s.Owner != "" && !s.Released }

// lives reports whether the owner of a log has stored something lately, at the given time of the service.
func lives(s *checkpoint.State, now time.Time, ttl time.Duration) bool {
	return owned(s) && silence(s, now) <= 3*ttl
}

// betweenLooks is the pause before a log is read again.
const betweenLooks = 200 * time.Millisecond

// AwaitLife reports whether the owner of a log lives. While the newest entry is old, it reads the log
// again, for as long as patience: an owner that lives stores a beat at least every third of ttl.
//
// Rule 13: silence is observed. The newest entry is also old where a clock was set, where one answer
// had a wrong time, or the machine was suspended, and just before another replicator takes the log over.
func AwaitLife(ctx context.Context, l *order.Log, now func() time.Time, ttl, patience time.Duration) (bool, error) {
	_ = l.Log.RequestBeat() // a hint: the owner beats when its own timer is due
	for began := time.Now(); ; {
		if alive := lives(l.State, now(), ttl); alive || !owned(l.State) || time.Since(began) >= patience {
			return alive, nil
		}
		if err := failure.Pause(ctx, betweenLooks); err != nil {
			return false, err
		}
		if err := l.Refresh(ctx); err != nil {
			return false, err
		}
	}
}
