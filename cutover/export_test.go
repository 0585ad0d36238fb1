package cutover

import (
	"context"

	"github.com/tailrace-cdc/replicator/control"
)

// ChangedSince is what decides whether a cutover compares all items.
var ChangedSince = (*Cutover).changedSince

// Raise fences the tables.
var Raise = (*Cutover).raise

// UnfenceRow is the last step of an undo.
var UnfenceRow = unfenceRow

// Logs is a look at the logs while a cutover waits.
func (c *Cutover) Logs(ctx context.Context) ([]*control.Log, error) { return c.logs(ctx) }
