package pipeline

import (
	"context"
	"time"

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

// leadOf returns what is reserved. It never waits: a reservation may be under way for as long as Bigtable is
// away, and feeds that need none go on meanwhile.
func (t *table) leadOf() time.Duration { return time.Duration(t.lead.Load()) }

// reserve raises the lead so that it covers need with room to spare.
func (t *table) reserve(ctx context.Context, need time.Duration) error {
	t.rowMu.Lock()
	defer t.rowMu.Unlock()
	if t.row.Lead >= 2*need {
		return nil
	}
	row, err := t.p.sink.Reserve(ctx, t.row, max(4*need, t.p.o.Periods.Lead))
	if err != nil {
		return err
	}
	t.row = row
	t.lead.Store(int64(row.Lead))
	return nil
}
