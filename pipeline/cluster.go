package pipeline

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// clusterLook is the time between two looks at the cluster that the app profile routes the writes
// to.
const clusterLook = time.Minute

// followCluster notes the cluster that takes the writes in the table's row. Replication between
// clusters lags: after a fail-over the other cluster may lack the last changes and their guards,
// although they are applied according to the log. So the whole table is resynced before the row
// names the new cluster. It returns when ctx ends, and at a server that has no clusters.
//
// Rule 13: that the profile may not be read, or routes to several clusters, can change.
func (t *table) followCluster(ctx context.Context, l *life.Life) error {
	ended := t.row.Await(ctx) != nil
	every := min(clusterLook, t.o.Periods.Retry)
	for ; !ended; ended = failure.Pause(ctx, every) != nil {
		p, err := t.bigtable.Profile(ctx)
		switch {
		case errors.Is(err, bigtable.ErrNoProfiles):
			return nil
		case err == nil && p.Cluster != "":
			err = t.noteCluster(ctx, p.Cluster, l)
			if err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
	return nil
}

// clusterStep is what the next step is after a look at the cluster.
type clusterStep int

const (
	clusterAgrees clusterStep = iota
	clusterToNote             // in the row
	clusterToOrder
	clusterToAwait
)

// clusterOrder begins the ids of the resyncs that a change to a cluster orders.
func clusterOrder(cluster string) string { return status.ClusterPrefix + cluster + "-" }

// nextClusterStep decides by the cluster that takes the writes, the one that the row names ("" for
// none yet), and the resyncs of the table: the one that is pending and the last complete one, or
// nil. A resync of which it is not known that it began after the change does not count.
func nextClusterStep(now, row string, pending *checkpoint.PendingResync, last *checkpoint.Healed) clusterStep {
	switch order := clusterOrder(now); {
	case pending != nil && strings.HasPrefix(pending.ID, order):
		return clusterToAwait
	case pending != nil && strings.HasPrefix(pending.ID, status.ClusterPrefix):
		return clusterToOrder // the writes went to a third cluster meanwhile, or to another one and back
	case now == row:
		return clusterAgrees
	case row == "", pending == nil && last != nil && strings.HasPrefix(last.ID, order):
		return clusterToNote
	}
	return clusterToOrder
}

// noteCluster makes the table agree with the cluster that takes the writes. It blocks while a
// resync is needed for that.
func (t *table) noteCluster(ctx context.Context, cluster string, l *life.Life) error {
	for {
		switch f := l.Facts(); nextClusterStep(cluster, t.row.Cluster(), f.Resync, f.Resynced) {
		case clusterAgrees:
			return nil
		case clusterToNote:
			return t.row.Edit(ctx, func(s *bigtable.State) { s.Cluster = cluster })
		case clusterToOrder:
			now := l.Now()
			t.log.Error("the writes go to another cluster of Bigtable, and the whole table is resynced because of that",
				zap.String("cluster", cluster), zap.String("before", t.row.Cluster()))
			order := &checkpoint.ResyncOrder{ID: clusterOrder(cluster) + orderTime(now)}
			if err := l.Append(ctx, &checkpoint.Control{Resync: order, By: "owner", At: now}); err != nil {
				return err
			}
			if err := awaitOrder(ctx, l, now); err != nil {
				return err
			}
		case clusterToAwait:
			if now, err := t.bigtable.Profile(ctx); err == nil && now.Cluster != cluster {
				return nil // the next look decides anew
			}
			if err := failure.Pause(ctx, t.o.Periods.Retry); err != nil {
				return err
			}
		}
	}
}

// awaitOrder waits until the owner has seen an order in the log that was made at a time.
func awaitOrder(ctx context.Context, l *life.Life, at change.Millis) error {
	for {
		f := l.Facts()
		if f.Resync != nil && f.Resync.Asked >= at || f.Resynced != nil && f.Resynced.Date >= at {
			return nil
		}
		if err := failure.Pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}
