package resync

import (
	"context"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/export"
	"github.com/tailrace-cdc/replicator/transform"
)

// Reader reads the table itself: *source.Source.
type Reader interface {
	ScanPage(ctx context.Context, r source.ScanRequest) (*source.ItemPage, error)
	ReadItems(ctx context.Context, table string, keys [][]byte) (*source.ItemBatch, error)
}

// Writer makes the rows of an item true: *apply.Sink.
type Writer interface {
	Resync(ctx context.Context, item *apply.ResyncItem) (apply.ResyncOutcome, error)
	// Backlog returns how many changes of the stream wait in the lanes, and how long the oldest has
	// waited.
	Backlog() (changes int, oldest time.Duration)
}

// Options are what copies and resyncs of a table need for one life.
type Options struct {
	*life.Life
	Reader  Reader
	Writer  Writer
	Budget  *source.Budget // of the table's reads; shared by its readers
	Memory  *Memory        // of all tables
	Exports Exports
	Workers Workers
	// Throttled returns how often Bigtable has answered that it is overloaded. Nil: it is not
	// counted.
	Throttled func() uint64
	// Bound returns how many calls Bigtable may have in flight. Nil: a hundred.
	Bound     func() int
	WriteRows float64 // rows per second; 0: no limit of its own
	// WipesRows is set when removals of the mapping delete whole rows, including cells of other
	// items.
	WipesRows bool
	Periods   Periods
	Stats     *Stats
}

// Workers are what a copy that is delegated to workers needs.
type Workers struct {
	Store OrderStore
	// Plan returns the order of the table, without what its copy and its export add.
	Plan func() (*delegation.Order, error)
	// Note stores beside the table's row that the log holds an entry, so that a log which has lost
	// it is refused as an older copy. It returns nil once that is stored.
	Note func(ctx context.Context, seq uint64) error
	// Unfit is why workers cannot copy with the table's mapping; "" where they can.
	Unfit transform.Unfit
}

// Exports are how copies get at exports of the table.
type Exports struct {
	Exporter
	Open           func(ctx context.Context, url string) (*export.Export, error)
	URL            string        // of an export that exists already; empty if one is requested
	Bucket, Prefix string        // where DynamoDB writes an export that is requested
	Cover          change.Millis // the stream is read from here on: changes since an older export would be missing
}

// Periods are the times of copies and resyncs. Those that are zero get the defaults.
type Periods struct {
	Mark   time.Duration // between marks
	Report time.Duration // between log lines; before an export that cannot be read is replaced, doubles
	Poll   time.Duration // between looks at an export that is being made
	Retry  time.Duration // of a reading that an operator must make possible; at most lastRetry
	// Recheck is the pause before what a resync of the whole table found not equal is looked at
	// again; it doubles up to lastRecheck. Settle is the pause before an item is compared again
	// that changed meanwhile; it doubles.
	Recheck, Settle time.Duration
	// Order is the pause between looks at the order of workers and their marks. Closing is how long
	// after an order is closed its workers may still write: only tests whose workers end sooner
	// set it.
	Order, Closing time.Duration
}

func (p Periods) withDefaults() Periods {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&p.Mark, 5*time.Second)
	def(&p.Report, time.Minute)
	def(&p.Poll, 15*time.Second)
	def(&p.Retry, lastRetry)
	p.Retry = min(p.Retry, lastRetry)
	def(&p.Recheck, 15*time.Second)
	def(&p.Order, 15*time.Second)
	def(&p.Closing, delegation.CloseWait)
	return p
}

// Margins between clocks.
const (
	answerMargin = protocol.AnswerMargin
	// maxBehind is how far Bigtable may be behind while the table is read. Pages read later would
	// only wait longer.
	maxBehind = time.Minute
)

// versionOf returns the version of the write of an item that was read at a time.
func (o *Options) versionOf(requested change.Millis) change.Version {
	return protocol.Version(requested, o.Floor)
}

// write writes an item that was read, while what was read is fresh. That is also asked before each
// attempt.
func (o *Options) write(ctx context.Context, item *apply.ResyncItem) (apply.ResyncOutcome, error) {
	if item.GapsUntil = o.GapsUntil; !item.Fresh(time.Now()) {
		return apply.ResyncOutcome{}, apply.ErrStale
	}
	return o.Writer.Resync(ctx, item)
}

const (
	lastRetry      = failure.LongestBackoff
	throttledRetry = 2 * time.Second // at most, after throttled reads
)

// OrderStore stores the order of a copy by workers and has their marks: *bigtable.Client.
type OrderStore interface {
	LoadOrder(ctx context.Context, pipeline, table string) (*delegation.Seen, error)
	SwapOrder(ctx context.Context, pipeline, table string, old, next *delegation.Order) (bool, error)
	StoreBeat(
		ctx context.Context, pipeline, table string, b delegation.Beat, fresh func() error,
	) (there bool, err error)
	LoadFileMarks(
		ctx context.Context, o *delegation.Order, row int, wanted func(int) bool, f func(int, *delegation.FileMark) error,
	) error
	RemoveFileMarks(ctx context.Context, o *delegation.Order) error
}
