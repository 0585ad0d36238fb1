package cutover

import (
	"context"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue"
)

// awaitQuiet waits until no shard of any table yields a change for Quiet. Deletions by TTL and
// heartbeats do not count, because they cannot be stopped.
func (c *Cutover) awaitQuiet(ctx context.Context) error {
	c.Say("Stop the writers now. The fence comes when nothing was written for %s; press ^C to stop before it.", c.Quiet)
	c.Say("The point of no return is the first write of the application to Bigtable behind the fence: the replicator " +
		"carries nothing back to DynamoDB.")
	return c.awaitQuietFrom(ctx, c.pair.Now())
}

// awaitQuietFrom is awaitQuiet for a quiet time that begins at a time of the service, at the
// earliest.
func (c *Cutover) awaitQuietFrom(ctx context.Context, now change.Millis) error {
	c.quiet, c.marks = now, map[string]checkpoint.Mark{}
	var walkErr error
	err := c.poll(ctx, func(logs []*control.Log) bool {
		for _, l := range logs {
			var moved bool
			if moved, walkErr = c.lastChange(ctx, l); walkErr != nil {
				return true
			}
			if moved {
				c.Say("%s is still written to: a change of %s. The quiet time begins anew.", l.Table, c.lastSecond())
			}
		}
		return readThrough(logs, c.quiet+change.Millis(c.Quiet.Milliseconds()))
	})
	if err == nil {
		err = walkErr
	}
	if err == nil {
		c.Say("Nothing was written for %s, since %s.", c.Quiet, c.quiet.Time().UTC().Format(time.RFC3339))
	}
	return err
}

// readThrough reports whether the logs hold everything that was written up to a time.
//
// Rule 10: that no change came proves nothing; every shard must have been read past the time.
func readThrough(logs []*control.Log, through change.Millis) bool {
	return !slices.ContainsFunc(logs, func(l *control.Log) bool {
		p := protocol.Proof{Through: through}
		p.Look(l.State, l.State.AppliedMark())
		return !p.Read()
	})
}

// lookBeforeFence moves the begin of the quiet time past what came between the last look and the
// fence. It is compared as everything before the fence, but the certificate must not say that
// nothing was written.
func (c *Cutover) lookBeforeFence(ctx context.Context) error {
	if c.quiet == 0 { // it was another process that waited
		return nil
	}
	logs, err := c.logs(ctx)
	if err != nil {
		return err
	}
	for _, l := range logs {
		moved, err := c.lastChange(ctx, l)
		if err != nil {
			return err
		}
		if moved {
			c.Say("%s was written to just before the fence: a change of %s. Are the writers stopped?", l.Table, c.lastSecond())
		}
	}
	return nil
}

// lastSecond returns the second of the change at which the quiet time begins.
func (c *Cutover) lastSecond() string { return (c.quiet - 1000).Time().UTC().Format(time.TimeOnly) }

// lastChange moves the begin of the quiet time past the changes that a log has got since the last
// look, and reports whether there were any.
func (c *Cutover) lastChange(ctx context.Context, l *control.Log) (moved bool, err error) {
	after, known := c.marks[l.Table]
	if !known { // what the log has by now is as old as its newest entry, at most
		c.quiet = max(c.quiet, l.State.Date+1000)
		c.marks[l.Table] = checkpoint.Mark{Seq: l.State.Seq, Hash: l.State.Hash}
		return false, nil
	}
	before := c.quiet
	c.marks[l.Table], err = queue.Walk{Log: l.Log, After: after}.Changes(ctx, func(x *queue.WalkedChange) error {
		if !x.TTL {
			c.quiet = max(c.quiet, x.Created+1000) // records have whole seconds
		}
		return nil
	})
	return err == nil && c.quiet > before, err
}
