package pipeline

import (
	"context"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline/ingest"
	sourceheartbeat "github.com/tailrace-cdc/replicator/source/heartbeat"
)

// Heartbeat sets which heartbeats a table gets, and how often each open shard gets one. The zero
// Heartbeat is none.
type Heartbeat struct {
	Keys  sourceheartbeat.Keys
	Every time.Duration
}

// newHeartbeats returns the planner of this life's heartbeats; nil for a table without them.
func (t *table) newHeartbeats() *ingest.HeartbeatPlanner {
	keys, err := t.Heartbeat.Keys.Fit(t.info.Schema.Partition)
	if t.Heartbeat.Keys.None() || t.Heartbeat.Every == 0 || err != nil { // the mapping does not compile then
		return nil
	}
	return ingest.NewHeartbeatPlanner(keys)
}

// writeHeartbeats writes heartbeats until ctx ends; nil then. Only the owner of the log writes
// some.
func (t *table) writeHeartbeats(ctx context.Context, p *ingest.HeartbeatPlanner) error {
	if p == nil {
		return nil
	}
	info := t.info
	return p.Run(ctx, t.Heartbeat.Every, t.log, func(ctx context.Context, key string) error {
		return t.source.WriteHeartbeat(ctx, &info, key)
	})
}
