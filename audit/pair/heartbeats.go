package pair

import (
	"context"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
)

// heartbeatsLate is how long heartbeats may take beyond their period: from the write to a beat in
// the log.
const heartbeatsLate = 15 * time.Second

// HeartbeatWait returns how long a heartbeat that is written from now on may take; 0 where no table
// has any.
func (p *Pair) HeartbeatWait() (wait time.Duration) {
	for i := range p.Tables {
		wait = max(wait, p.waitOf(i))
	}
	return wait
}

// waitOf is HeartbeatWait of one table, given by its index.
func (p *Pair) waitOf(table int) time.Duration {
	if h := p.Tables[table].Heartbeat; h.Write {
		return time.Duration(h.Every) + heartbeatsLate
	}
	return 0
}

// Proven reports of each table whether heartbeats prove that Bigtable has every change up to now.
// It waits for them no longer than HeartbeatWait. Where the logs cannot be read meanwhile, nothing
// is proven, and that is no error.
func (p *Pair) Proven(ctx context.Context) ([]bool, error) {
	b := newHeartbeatProof(p.Now()+1000, len(p.Tables), p.waitOf) // Date is cut to seconds
	for began := time.Now(); time.Since(began) < p.HeartbeatWait(); {
		if states := p.lookForHeartbeats(ctx); states != nil && !b.awaited(states) {
			break
		}
		if err := failure.Pause(ctx, control.Period); err != nil {
			return nil, err
		}
	}
	return b.proven, nil
}

// lookForHeartbeats folds the logs, and requests from their owners the progress of heartbeats; nil
// if that fails.
func (p *Pair) lookForHeartbeats(ctx context.Context) (states []*checkpoint.State) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	logs, err := p.running(ctx)
	if err != nil {
		return nil
	}
	for _, l := range logs {
		states = append(states, l.State)
		_ = l.Log.RequestBeat() // if this fails, the next one comes on its timer
	}
	return states
}
