package resync

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/export"
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
	Table  Table
	Reader Reader
	Writer Writer
	Budget *source.Budget // of the table's reads; shared by its readers
	Memory *Memory        // of all tables
	// Prove blocks until Bigtable has every change that was created up to a time of the service.
	Prove func(ctx context.Context, through change.Millis) error
	// Unproven returns what Prove waits for; "" for nothing. Nil: it is not known.
	Unproven func() string
	// Append stores an entry in the log. It blocks until the entry is durable.
	Append func(ctx context.Context, body any) error
	Now    func() change.Millis // the service's clock
	// Behind returns how old the newest change is that Bigtable may lack, as far as is known.
	Behind func() time.Duration
	// GapsUntil returns the end of the latest gap that was found; 0 without one.
	GapsUntil func() change.Millis
	// Lead returns how far versions may be ahead of the service's clock. Nil: guards in the future
	// are not looked for.
	Lead func() time.Duration
	// Throttled returns how often Bigtable has answered that it is overloaded. Nil: it is not
	// counted.
	Throttled func() uint64
	// Exporter requests exports and OpenExport opens them. ExportURL names an export that exists
	// already; empty if one is requested. The stream is read from Cover on: changes between an
	// older export and Cover would be missing.
	Exporter   Exporter
	OpenExport func(ctx context.Context, url string) (*export.Export, error)
	ExportURL  string
	Cover      change.Millis
	Floor      change.Version // of the life: every version of the stream is above it; 0 in a target that held nothing
	WriteRows  float64        // rows per second; 0: no limit of its own
	// WipesRows is set when removals of the mapping delete whole rows, including cells of other
	// items.
	WipesRows bool
	Periods   Periods
	Stats     *Stats
	Logger    *zap.Logger
}

// Table is the table that is copied or resynced.
type Table struct {
	Name     string
	ID       string // as DynamoDB names it
	ARN      string
	Schema   change.KeySchema
	Items    int64 // as the service estimates
	Bytes    int64
	Pipeline string
	Life     uint64
	// Bucket and Prefix are where DynamoDB writes an export that the copy requests.
	Bucket, Prefix string
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
	return p
}

// Margins between clocks.
const (
	answerMargin = protocol.AnswerMargin
	// maxBehind is how far Bigtable may be behind while the table is read. Pages read later would
	// only wait longer.
	maxBehind = time.Minute
)

func (o *Options) lead() time.Duration {
	if o.Lead == nil {
		return 0
	}
	return o.Lead()
}

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
