package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
)

// A burst can run a feed's clock ahead of the time. How far it may is reserved in Bigtable, so that a later
// life knows a floor above every version ever given out (Rule 5). The reservation is raised before half of it
// is used, so Bigtable is asked only in a burst; if it is away, only the feeds that would exceed the lead wait.

// ahead returns how far the page's last version is ahead of its record's creation.
func ahead(p *source.Page) time.Duration {
	n := len(p.Records)
	if n == 0 {
		return 0
	}
	return time.Duration(p.Clock-p.Records[n-1].Created) * time.Millisecond
}

// leadOf never waits: the reading of all shards asks it, also while Bigtable is away.
func (t *table) leadOf() time.Duration { return time.Duration(t.lead.Load()) }

// reserve raises the lead so that it covers need with room to spare. It blocks while Bigtable is away.
func (t *table) reserve(ctx context.Context, need time.Duration) error {
	if err := t.awaitRow(ctx); err != nil {
		return err
	}
	t.rowMu.Lock()
	defer t.rowMu.Unlock()
	if t.row.Lead >= 2*need {
		return nil
	}
	row, err := t.p.sink.Reserve(ctx, t.row, max(4*need, t.p.o.Periods.Lead))
	if errors.Is(err, bigtable.ErrStateChanged) {
		t.stale = true
		return &outcome.StaleError{Err: fmt.Errorf("another owner changed the pipeline's row: %w", err)}
	}
	if err != nil {
		return err
	}
	t.hasRow(row)
	return nil
}
