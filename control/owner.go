package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/protocol"
)

// Signs are what is known of a log's owner beside its state.
type Signs struct {
	Silent time.Duration // for how long the owner has stored nothing
	TTL    time.Duration // of a claim
	Closed bool          // the store of the log was open in no process: Clients.StoreWasClosed
}

// NoOwnerError means that no replicator owns the log of a table, for a reason that the log does not
// show.
type NoOwnerError struct{ Table string }

func (e *NoOwnerError) Error() string {
	return "no replicator owns table " + e.Table + ", and only its owner writes rows"
}

// CheckOwner returns nil while a replicator owns the table, else an error with the reason. It uses
// the same signs as status. A table whose log has a halt has no owner meanwhile: the halt is the
// reason.
func CheckOwner(table string, s *checkpoint.State, signs Signs) error {
	switch OwnerLife(s, signs) {
	case protocol.LifeSeen:
	case protocol.LifeSilent:
		return failure.With(failure.Unready,
			"start `replicator run`; nothing but the owner writes rows",
			fmt.Errorf("no sign of life of the replicator that owns table %s for %s", table,
				signs.Silent.Round(time.Second)))
	default:
		if halt := s.AllHalts()[checkpoint.SinkPipeline]; halt != nil {
			return haltedError(table, halt.Reason)
		}
		return failure.With(failure.Unready,
			"start `replicator run`; if it runs, `replicator status` says why it does not own the table",
			&NoOwnerError{table})
	}
	if s.Paused {
		return failure.With(failure.Unready, "first `replicator resume --table "+table+"`",
			fmt.Errorf("table %s is paused", table))
	}
	return nil
}

// haltedError returns the error of a table that is halted, so that nothing is applied.
func haltedError(table, why string) error {
	return failure.With(failure.Unready,
		"mend the cause; the replicator tries again by itself, and `replicator resume --table "+table+"` has it try at once",
		fmt.Errorf("table %s is halted: %s", table, why))
}

// WhyNotOwned returns an error of CheckOwner. Where the log does not show why the table has no
// owner, it asks the daemon: a table may halt before it opens its log.
func WhyNotOwned(ctx context.Context, cfg *config.Config, err error) error {
	none := (*NoOwnerError)(nil)
	if !errors.As(err, &none) {
		return err
	}
	status := Daemon(ctx, cfg)
	if status == nil {
		return err
	}
	for i := range status.Tables {
		if t := &status.Tables[i]; t.Source == none.Table && t.Halt != "" {
			return haltedError(t.Source, t.Halt)
		}
	}
	return err
}

// OwnerLife returns what is known of the owner of a log. A table that is halted and tried again has
// no owner meanwhile: LifeNone.
func OwnerLife(s *checkpoint.State, signs Signs) protocol.Life {
	owner := protocol.OwnerOf(s)
	owner.Retries, owner.Closed = false, signs.Closed
	return protocol.Alive(owner, signs.Silent, signs.TTL, 0)
}

// OwnerSilence returns for how long the owner of a log has stored nothing, at the given time of the
// service.
func OwnerSilence(s *checkpoint.State, now time.Time) time.Duration {
	return protocol.OwnerOf(s).Silence(change.MillisOf(now))
}

// SilenceWatch is a protocol.OwnerWatch that several goroutines may call.
type SilenceWatch struct {
	mu    sync.Mutex // covers what follows
	watch protocol.OwnerWatch
}

// Silence looks at a log, and returns for how long its owner has stored nothing, at the given time
// of the service.
func (w *SilenceWatch) Silence(s *checkpoint.State, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.watch.Silence(s, change.MillisOf(now), time.Now())
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
func (w *SilenceWatch) Await(
	ctx context.Context, log *Log, now func() time.Time, ttl, patience time.Duration,
) (silent time.Duration, err error) {
	_ = log.Log.RequestBeat() // a hint: the owner beats when its own timer is due
	for began := time.Now(); ; {
		silent := w.Silence(log.State, now())
		if OwnerLife(log.State, Signs{Silent: silent, TTL: ttl}) != protocol.LifeSilent || time.Since(began) >= patience {
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

// OwnerLives reports whether the owner of a log lives: LifeSeen. If it seems to be silent, Lives
// observes that for one ttl.
func OwnerLives(ctx context.Context, log *Log, now func() time.Time, ttl time.Duration) (bool, error) {
	silent, err := new(SilenceWatch).Await(ctx, log, now, ttl, ttl)
	return err == nil && OwnerLife(log.State, Signs{Silent: silent, TTL: ttl}) == protocol.LifeSeen, err
}
