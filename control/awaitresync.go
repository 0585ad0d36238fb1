package control

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
	"github.com/tailrace-cdc/replicator/queue"
)

// resyncPeriod is how often a waiting command looks whether a resync has ended.
const resyncPeriod = time.Second

// gapLooks is at how many looks in a row a gap must be open until waiting for a resync is given up.
// A table that heals its gaps by itself accepts one sooner, with another order.
const gapLooks = 10

// refusedLooks is at how many looks in a row a resync must be open for refused items alone.
const refusedLooks = 3

// Resync orders a resync of the whole table. gaps are the ids of the gaps that it heals; empty: all
// accepted ones. A pending resync begins again, and heals the gaps of both orders.
func (l *Log) Resync(ctx context.Context, what string, gaps []string) (id string, err error) {
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails
	id = hex.EncodeToString(random[:])
	_, err = l.Append(ctx, what, checkpoint.Control{Resync: &checkpoint.ResyncOrder{ID: id, Gaps: gaps}})
	return id, err
}

// AwaitResync returns the result of a resync of a whole table when it has ended. The daemon may end
// and start meanwhile; an error means that ctx has ended, or that waiting longer cannot help. ok is
// false if a later order took the place of this one.
func AwaitResync(
	ctx context.Context, clients *clients.Clients, table, id string,
) (result checkpoint.ResyncResult, ok bool, err error) {
	var open openGaps
	var refused refusedItems
	for {
		state, err := look(ctx, clients, table)
		if err != nil && queue.Classify(err) != failure.Transient {
			return result, false, err
		}
		if err != nil {
			_ = clients.CloseQueue() // the daemon went away: the next look waits for it
		} else if pending := state.Resync; pending == nil || pending.ID != id {
			if last := state.LastResync; last != nil && last.ID == id {
				return last.Result, true, nil
			}
			return result, false, nil
		} else if err := open.look(state.OpenGaps(), table); err != nil {
			return result, false, err
		} else if err := refused.look(ctx, clients, table, id); err != nil {
			return result, false, err
		}
		if err := failure.Pause(ctx, resyncPeriod); err != nil {
			return result, false, fmt.Errorf("wait for the repair of %s: %w", table, err)
		}
	}
}

// openGaps is at how many looks in a row a gap was open.
type openGaps int

// look returns an error once a gap is open for long: behind it nothing proves that Bigtable has
// what is compared, so the resync cannot end.
func (n *openGaps) look(open int, table string) error {
	if open == 0 {
		*n = 0
		return nil
	}
	if *n++; *n < gapLooks {
		return nil
	}
	return failure.With(failure.Different, "`replicator repair --gaps --table "+table+"` heals it, too",
		fmt.Errorf("another gap of %s was found meanwhile: nothing is read behind it, so the comparison waits", table))
}

// refusedItems is at how many looks in a row a resync was open because items are refused.
type refusedItems int

// look returns an error once only an operator can end the resync: every other difference is
// repaired, and the mapping or Bigtable refuses some items again and again. For a moment the daemon
// may show the resync that was replaced by this one.
func (n *refusedItems) look(ctx context.Context, clients *clients.Clients, table, id string) error {
	r := resyncOf(Daemon(ctx, clients.Config()), table)
	if r == nil || r.ID != id || !r.OnlyRefused() {
		*n = 0
		return nil
	}
	if *n++; *n < refusedLooks {
		return nil
	}
	return failure.With(failure.Different, "`replicator explain --table "+table+" --key NAME=…` says why one is refused; "+
		"change the items or the mapping: the comparison ends by itself then",
		fmt.Errorf("%s is equal to Bigtable, but for %s that the mapping or Bigtable refuses (%s)", table,
			english.Plural(int(r.Refused), "item", ""), r.Why))
}

// resyncOf returns the progress of the resync of a table, as the daemon shows it; nil without one.
func resyncOf(s *pipeline.Status, table string) *resync.WholeStatus {
	if s == nil {
		return nil
	}
	for i := range s.Tables {
		if s.Tables[i].Source == table {
			return s.Tables[i].Resync
		}
	}
	return nil
}

// look returns the state of a table's log once a daemon runs.
func look(ctx context.Context, clients *clients.Clients, table string) (*checkpoint.State, error) {
	q, err := clients.RunningQueue(ctx)
	if err != nil {
		return nil, err
	}
	l, err := Open(ctx, q, table)
	if err != nil {
		return nil, err
	}
	return l.State, nil
}
