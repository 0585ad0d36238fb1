package pair

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/protocol"
)

// ErrUnproven means that nothing proves any more that Bigtable has all changes. What was compared
// so far is unproven.
var ErrUnproven = errors.New("it cannot be proved that Bigtable has every change")

const (
	patience     = 10 * time.Minute // how long nothing may move
	lookTimeout  = 30 * time.Second // for one look at all logs
	requestEvery = 4                // looks between two requests for a beat and a listing: a second
)

// Prove blocks until Bigtable has every change of all tables that was created up to a time of the
// service. While the owner of a log is away, it waits for another one. It returns an error of the
// environment that wraps ErrUnproven when waiting longer cannot help: the owner stays away, a table
// is paused, halted or stands before a gap, or nothing has moved for ten minutes.
func (p *Pair) Prove(ctx context.Context, through change.Millis) error {
	w := proving{pair: p, proof: newProof(through, len(p.Tables), time.Now()), seen: time.Now()}
	for {
		met, err := w.look(ctx)
		if met || err != nil {
			return err
		}
		if err := failure.Pause(ctx, control.Period); err != nil {
			return err
		}
	}
}

// proving is one call of Prove.
type proving struct {
	pair  *Pair
	proof *proof
	looks int
	seen  time.Time // when the owners of all tables were last seen
}

// look looks at the logs once. It returns no error that another look may not.
func (w *proving) look(ctx context.Context) (met bool, err error) {
	once, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	logs, err := w.pair.running(once)
	if err != nil {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		return false, w.awayFor(err)
	}
	var states []*checkpoint.State
	for _, l := range logs {
		states = append(states, l.State)
	}
	if w.proof.met(states, time.Now()) {
		return true, nil
	}
	for _, l := range logs {
		err := w.pair.obstacle(l.Table, l.State)
		if err != nil && w.pair.Away(l.Table, l.State) {
			return false, w.awayFor(err)
		}
		if err != nil {
			return false, unproven(err)
		}
	}
	w.seen = time.Now()
	if w.looks++; w.looks%requestEvery == 1 {
		for _, l := range logs {
			_ = l.Log.RequestBeat() // if this fails, the next listing comes on its timer
		}
	}
	return false, w.stuck(logs)
}

// awayFor returns the error of an owner, or a queue, that has been away for too long.
func (w *proving) awayFor(err error) error {
	if time.Since(w.seen) > protocol.TakeoverPatience(w.pair.claimTTL()) {
		return unproven(err)
	}
	return nil
}

// stuck returns an error when nothing has moved for a long time.
func (w *proving) stuck(logs []*control.Log) error {
	if time.Since(w.proof.moved) < patience {
		return nil
	}
	for i, l := range logs {
		if why := w.proof.why(i, l.State); why != "" {
			return unproven(failure.With(failure.Unready, "`replicator status` says what fails",
				fmt.Errorf("table %s has not moved for %s: %s", l.Table, patience, why)))
		}
	}
	return nil
}

// unproven adds ErrUnproven to an error and keeps its exit code and hint.
func unproven(err error) error {
	_, hint := failure.Of(err)
	return failure.With(failure.Unready, cmp.Or(hint, "`replicator status` says what fails"),
		fmt.Errorf("%w: %w", ErrUnproven, err))
}
