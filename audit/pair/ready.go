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
func (p *Pair) Ready(ctx context.Context) error {
	logs, err := p.Logs(ctx)
	if err != nil {
		return err
	}
	for _, l := range logs { // Rule 13: silence is observed
		if p.storeWasClosed() {
			break
		}
		now := func() time.Time { return p.Now().Time() }
		if _, err := p.life(l.Table).Await(ctx, l, now, p.claimTTL(), p.claimTTL()); err != nil {
			return err
		}
	}
	if err := p.Obstacle(logs); err != nil {
		return control.WhyNotOwned(ctx, p.cfg, err)
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
func (p *Pair) Obstacle(logs []*control.Log) error {
	for _, l := range logs {
		if err := p.obstacle(l.Table, l.State); err != nil {
			return err
		}
	}
	return nil
}

// obstacle returns why no proof can come while a log is like this, whatever time passes; nil where
// one can.
func (p *Pair) obstacle(table string, state *checkpoint.State) error {
	if err := p.CheckOwner(table, state); err != nil {
		return err
	}
	return obstacleOf(table, state)
}

// CheckOwner returns nil while a replicator owns a table, else an error with the reason. It notes
// when the owner was last active, for the next call.
func (p *Pair) CheckOwner(table string, state *checkpoint.State) error {
	return control.CheckOwner(table, state, p.signs(table, state))
}

// Away reports whether no process carries a table, so that another one may be taking over. Of a
// table that is paused none is awaited.
func (p *Pair) Away(table string, state *checkpoint.State) bool {
	return !state.Paused && control.OwnerLife(state, p.signs(table, state)).Away()
}

// signs returns what is known of the owner of a table beside the state of its log.
func (p *Pair) signs(table string, state *checkpoint.State) control.Signs {
	return control.Signs{
		Silent: p.life(table).Silence(state, p.Now().Time()), TTL: p.claimTTL(), Closed: p.storeWasClosed(),
	}
}

// storeWasClosed is Clients.StoreWasClosed.
func (p *Pair) storeWasClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clients.StoreWasClosed()
}

// life returns what was seen of the life of a table's owner.
func (p *Pair) life(table string) *control.SilenceWatch {
	l, _ := p.lives.LoadOrStore(table, &control.SilenceWatch{})
	return l.(*control.SilenceWatch)
}

func (p *Pair) claimTTL() time.Duration { return time.Duration(p.cfg.Protocol.ClaimTTL) }

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
		return failure.With(failure.Unready, "`replicator gaps list`, then `replicator repair --gaps --table "+table+"`",
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
