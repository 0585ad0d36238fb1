package ingest

import (
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/tracing"
	"github.com/tailrace-cdc/replicator/queue/frame"
	"github.com/tailrace-cdc/replicator/source"
)

// reads returns when the pages with records were read, where frames are traced.
func (w *writer) reads(pages []*source.Page) (all []tracing.Read) {
	if w.o.Tracer == nil {
		return nil
	}
	for _, p := range pages {
		if len(p.Records) > 0 {
			all = append(all, tracing.Read{
				Shard: p.Feed.Shard, Asked: p.Asked, Answered: p.Answered, Records: len(p.Records), Bytes: p.Bytes,
			})
		}
	}
	return all
}

// trace makes the trace of the frame that was stored just now, as entry seq. A frame behind which
// the state was stored at once has none: the hash of its entry is not known any more.
func (w *writer) trace(f *frame.Packed, seq uint64, sent time.Time) {
	s := w.log.State()
	if w.o.Tracer == nil || s.Seq != seq {
		return
	}
	stored := &tracing.Frame{
		Table: w.o.Info.Name, At: checkpoint.Mark{Seq: s.Seq, Hash: s.Hash}, Bytes: len(f.Data), Sent: sent,
		Stored: time.Now(),
	}
	for i := range f.Body.Pages {
		stored.Records += f.Body.Pages[i].Records
	}
	for _, r := range w.current.traced {
		if slices.ContainsFunc(f.Body.Pages, func(p checkpoint.PageHead) bool { return p.Feed.Shard == r.Shard }) {
			stored.Reads = append(stored.Reads, r)
		}
	}
	w.o.Tracer.Stored(stored)
}
