package cutover

import (
	"context"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/cutover/certificate"
)

// awaitHeartbeats waits until heartbeats prove, of each table that gets them, that it was read up
// to a time. It does not wait for long: without the proof it is assumed.
func (c *Cutover) awaitHeartbeats(ctx context.Context, through change.Millis) error {
	wait, began := c.pair.HeartbeatWait(), time.Now()
	return c.poll(ctx, func(logs []*control.Log) bool {
		return time.Since(began) >= wait || c.provenByHeartbeats(logs, through)
	})
}

// provenByHeartbeats reports whether heartbeats prove all that they can, for each table that gets them. A
// shard without one yet does not count: the fence ends a life of the owner, and the next life
// proves it again.
func (c *Cutover) provenByHeartbeats(logs []*control.Log, through change.Millis) bool {
	for i, l := range logs {
		if c.pair.Tables[i].Heartbeat.Write && idleness(l, through) == certificate.Assumed {
			return false
		}
	}
	return true
}

// idleness returns the evidence that nothing was written to a table up to a time that its stream
// does not show yet.
func idleness(l *control.Log, through change.Millis) string {
	if p := &l.State.Proof; p.Assumed == 0 && p.Read >= through {
		return certificate.Proven
	}
	return certificate.Assumed
}

// idleSentence describes, for all tables, the evidence that nothing was written.
func idleSentence(logs []*control.Log, through change.Millis) string {
	for _, l := range logs {
		if idleness(l, through) == certificate.Assumed {
			return "That nothing was written meanwhile is assumed: every shard was read past the end of the comparison, and " +
				"nothing but deletions by TTL came."
		}
	}
	return "That nothing was written meanwhile is proven: a heartbeat written after the end of the comparison came out " +
		"of every open shard, and nothing but deletions by TTL before it."
}
