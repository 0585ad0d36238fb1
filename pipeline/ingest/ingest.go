package ingest

import (
	"context"

	"github.com/tailrace-cdc/replicator/queue"
)

// Ingest brings the changes of one table into its log for one life. Read, List and Write run side
// by side; when the context of Read ends without an error, a drain begins, and Write returns at its
// end.
type Ingest struct {
	o       *Options
	handoff *handoff
	lister  *lister
	writer  *writer
	prover  *prover
}

// New prepares a life that owns the log through w. pressure is how full the log was at the last
// look.
func New(o Options, w *queue.Writer, pressure queue.Pressure) *Ingest {
	h, v := newHandoff(o.Periods.Mark), newProver(o.Logger)
	l := newLister(&o, w.Log(), h, v)
	return &Ingest{o: &o, handoff: h, lister: l, writer: newWriter(&o, w, l, pressure), prover: v}
}

// Append has the write loop append an entry, and blocks until it is durable; while the log is full
// it sends the request again. Any goroutine but the write loop may call it.
func (in *Ingest) Append(ctx context.Context, body any) error { return in.handoff.request(ctx, body) }

// Read reads every readable shard until ctx ends; nil then.
func (in *Ingest) Read(ctx context.Context) error {
	return readShards(ctx, in.o, in.handoff, in.lister)
}

// List keeps the shard graph in the log up to date until ctx ends; nil then.
func (in *Ingest) List(ctx context.Context) error { return in.lister.run(ctx) }

// Write appends what the others hand over, and beats, marks and trims the log, until a drain has
// begun. Then it drains the sinks and releases the log. It returns whether their newest marks are
// in the log; nil only after a drain.
func (in *Ingest) Write(ctx context.Context, sinks []Sink) (saved bool, err error) {
	in.writer.sinks = sinks
	if err := in.writer.run(ctx); err != nil {
		return false, err
	}
	return in.writer.drain(ctx)
}
