package ask

import (
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
)

// CheckOwner returns nil while a replicator owns the table at the given time of the service, else an error with the
// reason. It uses the same signs as status: claims, and beats, which a living owner stores at least every third of ttl.
func CheckOwner(table string, s *checkpoint.State, now time.Time, ttl time.Duration) error {
	silent := time.Duration(change.MillisOf(now)-s.Date) * time.Millisecond
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
