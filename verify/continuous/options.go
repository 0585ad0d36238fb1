package continuous

import (
	"cmp"
	"context"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/verify"
)

// Source reads the table: *source.Source.
type Source interface {
	ScanPage(ctx context.Context, r source.ScanRequest) (*source.ItemPage, error)
	// ReadItems reads strongly.
	ReadItems(ctx context.Context, table string, keys [][]byte) (*source.ItemBatch, error)
	// ReadItemsEventually reads with eventual consistency, for half the price.
	ReadItemsEventually(ctx context.Context, table string, keys [][]byte) (*source.ItemBatch, error)
}

// Target is the target table.
type Target interface {
	verify.Target
	// ScanFrom is Scan from a row on, that row included.
	ScanFrom(ctx context.Context, start string, f func(*verify.Row) error) error
}

// Options of a Verifier. Zero values mean the defaults, where one is named.
type Options struct {
	// Tables are all tables of the target; the first one is compared. What the guards of the others
	// own is left out.
	Tables []verify.Table
	Source Source
	Target Target
	Budget *source.Budget // of all reads of the table, those of settling too

	Prove func(ctx context.Context, t change.Millis) error // as verify.Settler.Prove
	Now   func() change.Millis                             // the service's clock
	Lead  func() change.Millis                             // how far above it versions may be by now
	// FirstPause is verify.Settler.FirstPause.
	FirstPause time.Duration

	// Hold returns why nothing may be compared now; "" to go on. It is asked before each page, and
	// after each settling: a verdict that was found meanwhile is dropped.
	Hold func() string

	Segments int           // of a pass over the items; default by the table's size
	Every    time.Duration // at most so often a pass of the same direction begins; default a minute
	Again    time.Duration // after which a known difference is settled again; default 5 minutes

	From *Snapshot // where an earlier Verifier stopped; nil: the first passes begin

	// Collect has the guards of expired items collected, where the mapping keeps such items and a
	// reader finds nothing of them in the row, as (*resync.Items).Resync does. nil: the guards
	// stay.
	Collect func(ctx context.Context, bare []verify.Verdict) error

	// Changed is called when the set of known differences has changed; nil: it is not called.
	Changed func() error
}

func (o Options) withDefaults() Options {
	o.Every = cmp.Or(o.Every, time.Minute)
	o.Again = cmp.Or(o.Again, 5*time.Minute)
	if o.Segments == 0 {
		o.Segments = segmentsOf(o.Tables[0].Bytes)
	}
	if o.Changed == nil {
		o.Changed = func() error { return nil }
	}
	return o
}

// segmentsOf returns how many segments a pass has: a restart begins again with the segment that it
// was in, of 8 MB, which is 20 seconds at 50 units. DynamoDB takes 1,000,000.
func segmentsOf(bytes int64) int { return int(min(max(bytes>>23, 1), 1_000_000)) }
