package pair

import (
	"context"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/protocol"
)

// Ready returns an error of the environment with a hint unless both sides can be compared now: an
// owner of each table lives and applies changes, nothing is lost, and no copy or resync is still
// bringing what the rows lack.
func (s *Pair) Ready(ctx context.Context) error {
	logs, err := s.Logs(ctx)
	if err != nil {
		return err
	}
	for _, l := range logs { // Rule 13: silence is observed
		now := func() time.Time { return s.Now().Time() }
		if _, err := s.life(l.Table).Await(ctx, l, now, s.claimTTL(), s.claimTTL()); err != nil {
			return err
		}
	}
	if err := s.Obstacle(logs); err != nil {
		return err
	}
	for _, l := range logs {
		if err := unfinished(l.Table, l.State); err != nil {
			return err
		}
	}
	return nil
}

// Obstacle returns why no proof can come while the logs are like this, whatever time passes; nil
// where one can.
func (s *Pair) Obstacle(logs []*control.Log) error {
	for _, l := range logs {
		if err := s.obstacle(l.Table, l.State); err != nil {
			return err
		}
	}
	return nil
}

// obstacle returns why no proof can come while a log is like this, whatever time passes; nil where
// one can.
func (s *Pair) obstacle(table string, state *checkpoint.State) error {
	if err := s.CheckOwner(table, state); err != nil {
		return err
	}
	return obstacleOf(table, state)
}

// CheckOwner returns nil while a replicator owns a table, else an error with the reason. It notes
// what it sees of the owner's life.
func (s *Pair) CheckOwner(table string, state *checkpoint.State) error {
	return control.CheckOwner(table, state, s.life(table).Silence(state, s.Now().Time()), s.claimTTL())
}

// Away reports whether no process carries a table, so that another one may be taking over. Of a table
// that is paused none is awaited.
func (s *Pair) Away(table string, state *checkpoint.State) bool {
	silent := s.life(table).Silence(state, s.Now().Time())
	return !state.Paused && control.OwnerLife(state, silent, s.claimTTL()).Away()
}

// life returns what was seen of the life of a table's owner.
func (s *Pair) life(table string) *control.SilenceWatch {
	l, _ := s.lives.LoadOrStore(table, &control.SilenceWatch{})
	return l.(*control.SilenceWatch)
}

func (s *Pair) claimTTL() time.Duration { return time.Duration(s.cfg.Testing.ClaimTTL) }

// obstacleOf is obstacle of a log that has an owner.
func obstacleOf(table string, state *checkpoint.State) error {
	why := protocol.NoProof(state)
	if len(why) == 0 {
		return nil
	}
	switch why[0] {
	case protocol.MissingSink:
		return failure.With(failure.Unready,
			"`replicator status` says what to do; then `replicator resume --table "+table+"`",
			fmt.Errorf("table %s is halted: %s", table, state.AllHalts()[checkpoint.SinkBigtable].Reason))
	case protocol.MissingAccept:
		return failure.With(failure.Unready, "`replicator gaps list`, then `replicator gaps heal --table "+table+"`",
			fmt.Errorf("table %s stands before a gap: what comes after it is not read", table))
	case protocol.MissingStream:
		return failure.With(failure.Unready, "`replicator status` says why",
			fmt.Errorf("the stream of table %s is not started yet", table))
	case protocol.MissingEnabled:
		return failure.With(failure.Unready, "enable the stream; `replicator status` says what follows",
			fmt.Errorf("the stream of table %s is disabled: what is written now is in no stream", table))
	}
	return failure.With(failure.Unready, "`replicator status` says why",
		fmt.Errorf("nothing proves what table %s has: %s", table, why[0]))
}

// unfinished returns an error while rows are still missing for a reason that is known.
func unfinished(table string, s *checkpoint.State) error {
	wait := "wait until `replicator status` shows that it is complete"
	switch work := s.Unfinished(); {
	case work.Copy == checkpoint.CopySwitch:
		return failure.With(failure.Unready, wait, fmt.Errorf("the mapping of table %s is being switched", table))
	case work.Copy != checkpoint.CopyNone:
		return failure.With(failure.Unready, wait, fmt.Errorf("table %s is being copied", table))
	case work.Resync != checkpoint.ResyncNone:
		return failure.With(failure.Unready, wait,
			fmt.Errorf("table %s is being resynced, which compares and repairs all of it", table))
	}
	return nil
}
