package ingest

import (
	"context"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/pipeline/tracing"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/source"
)

// Options are what reading and writing need to know about a table for one life.
type Options struct {
	*life.Life
	Source     *source.Source
	MaxPayload int // bytes of a message of the log
	Periods    Periods
	Row        Row
	// Heartbeats is notified where heartbeats come out; nil for a table without heartbeats. Each
	// open shard gets one every HeartbeatEvery.
	Heartbeats     *HeartbeatPlanner
	HeartbeatEvery time.Duration
	// Observe is called with what the log holds and how full it is, whenever one of them has
	// changed.
	Observe func(*checkpoint.State, queue.Pressure)
	// ArchiveHead returns what the log is to know of the archive, with End 0 nothing; nil: the
	// table has no archive.
	ArchiveHead func() checkpoint.ArchiveHead
	// Beating is called when the life has stored a beat. What halted the table before is over,
	// unless it followed from the row in Bigtable and rowKnown is false.
	Beating func(rowKnown bool)
	// TableGone is called with how often in a row DynamoDB has answered that it has no such table; with
	// 0 when it describes the table again.
	TableGone func(times int)
	Tracer    *tracing.Tracer // of frames; nil: they are not traced
}

// Periods are the times of the write loop and the lister.
type Periods struct {
	Beat, Mark, Trim  time.Duration // between entries of the kind, and between two trims
	Listing, Describe time.Duration // between complete listings of the stream, between looks at the table
	Proof             time.Duration // between two listings for proofs
	Shutdown          time.Duration // to drain
	Lead              time.Duration // versions that are reserved beyond what is needed
	Patience          time.Duration // with answers that only the same answer confirms; 0: protocol.Patience
}

// Row is the pipeline's row of the table in Bigtable, as far as reading depends on it. Its methods
// may be called by any goroutine.
type Row interface {
	// Reserved returns how far versions may run ahead of the time of their changes. It never
	// blocks.
	Reserved() time.Duration
	// Reserve raises that to cover need with room to spare. It blocks while Bigtable does not
	// answer.
	Reserve(ctx context.Context, need time.Duration) error
	// Agrees reports whether the row was read in this life, and agrees with the log. It never
	// blocks.
	Agrees() bool
	// Adopt names the table's new stream in the row. It blocks while Bigtable does not answer.
	Adopt(ctx context.Context, arn string) error
}

// Sink is what the write loop needs to know about a sink.
type Sink interface {
	// Name is the sink's name in marks.
	Name() string
	// Acked returns the sink's mark, and the newest entry with changes that this process moved it
	// past; 0 for none.
	Acked() (mark checkpoint.Mark, lastChanges uint64)
	// Drain makes the sink end once everything up to seq is durable; Drained reports whether it has
	// nothing more to do.
	Drain(seq uint64)
	Drained() bool
}

// now returns the service's clock; this machine's clock until the first answer of the service.
func (o *Options) now() change.Millis {
	if ms, ok := o.Source.Now(); ok {
		return ms
	}
	return change.MillisOf(time.Now())
}
