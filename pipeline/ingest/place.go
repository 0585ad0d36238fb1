package ingest

import (
	"sync/atomic"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline/limit"
	"github.com/tailrace-cdc/replicator/source"
)

// progress is what the write loop does now.
type progress struct {
	pauses atomic.Bool  // nothing is taken from the readers, because the log is full
	oldest atomic.Int64 // when the oldest page that is being stored was read, in Unix ns; 0: none is
}

// begin notes that pages are being stored, which were read in this order.
func (p *progress) begin(pages []*source.Page) {
	if len(pages) > 0 && !pages[0].Answered.IsZero() { // the page that ends a shard has no answer
		p.oldest.Store(pages[0].Answered.UnixNano())
	}
}

// end notes that they are stored, or wait for room.
func (p *progress) end() { p.oldest.Store(0) }

// Place returns where changes between DynamoDB and the log wait. parked is how many readers of the
// table wait for memory. It is cheap.
func (in *Ingest) Place(now time.Time, parked int) limit.Place {
	w := in.writer
	oldest, queued := w.progress.oldest.Load(), len(in.handoff.arrivals)
	late := oldest > 0 && now.UnixNano()-oldest > int64(limit.Late)
	held := late || queued == cap(in.handoff.arrivals) || parked > 0 && queued > 0
	switch {
	case w.progress.pauses.Load(), held && w.log.Sending():
		return limit.AtLog
	case held:
		return limit.AtProcessor
	case parked > 0:
		return limit.AtMemory
	}
	return limit.Nowhere
}
