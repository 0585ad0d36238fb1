package ask

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/order"
	"github.com/tailrace-cdc/replicator/failure"
)

// CheckOwner returns nil while a replicator owns the table, else an error with the reason. silent
// is for how long the owner has stored nothing. It uses the same signs as status: claims, and
// beats, which a living owner stores at least every third of ttl.
func CheckOwner(table string, s *checkpoint.State, silent, ttl time.Duration) error {
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

// Silence returns for how long the owner of a log has stored nothing, at the given time of the
// service.
func Silence(s *checkpoint.State, now time.Time) time.Duration {
	return time.Duration(change.MillisOf(now)-s.Date) * time.Millisecond
}

// owned reports whether a log has an owner that has not released it.
func owned(s *checkpoint.State) bool { return s.Owner != "" && !s.Released }

// Life notes signs of life of the owner of one log. The zero Life has noted none. Its methods may
// be called by several goroutines.
type Life struct {
	mu     sync.Mutex // covers what follows
	looked bool
	epoch  uint64
	date   change.Millis
	rose   time.Time // when a look found one of these two higher than the look before
}

// Silence looks at a log, and returns for how long its owner has stored nothing, at the given time
// of the service.
//
// Rule 13: that the newest entry is old by a clock is no silence where an entry of an owner has
// come since the look before. One wrong time of the service makes each entry look old.
func (l *Life) Silence(s *checkpoint.State, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.looked && (s.Epoch > l.epoch || s.Date > l.date) { // only an owner's entries raise them
		l.rose = time.Now()
	}
	l.looked, l.epoch, l.date = true, s.Epoch, s.Date
	silent := Silence(s, now)
	if !l.rose.IsZero() {
		silent = min(silent, time.Since(l.rose))
	}
	return silent
}

// betweenLooks is the pause before a log is read again.
const betweenLooks = 200 * time.Millisecond

// Await returns for how long the owner of a log has stored nothing. While that is longer than a
// living one takes, it reads the log again, for as long as patience: an owner that lives stores a
// beat at least every third of ttl.
//
// Rule 13: silence is observed. The newest entry is also old where a clock was set, where one
// answer had a wrong time, or the machine was suspended, and just before another replicator takes
// the log over.
func (l *Life) Await(
	ctx context.Context, log *order.Log, now func() time.Time, ttl, patience time.Duration,
) (silent time.Duration, err error) {
	_ = log.Log.RequestBeat() // a hint: the owner beats when its own timer is due
	for began := time.Now(); ; {
		silent := l.Silence(log.State, now())
		if silent <= 3*ttl || !owned(log.State) || time.Since(began) >= patience {
			return silent, nil
		}
		if err := failure.Pause(ctx, betweenLooks); err != nil {
			return 0, err
		}
		if err := log.Refresh(ctx); err != nil {
			return 0, err
		}
	}
}

// Lives reports whether the owner of a log lives: it holds the log, and has not been silent for
// longer than three times ttl. If it seems to be, Lives observes that for one ttl.
func Lives(ctx context.Context, log *order.Log, now func() time.Time, ttl time.Duration) (bool, error) {
	silent, err := new(Life).Await(ctx, log, now, ttl, ttl)
	return err == nil && owned(log.State) && silent <= 3*ttl, err
}
