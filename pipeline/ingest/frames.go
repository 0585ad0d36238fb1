package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue/frame"
	"github.com/tailrace-cdc/replicator/source"
)

const (
	maxFrame     = 4 << 20 // bytes of pages that go into one append
	framesPerLog = 16      // frames that a log holds at least
)

// storeArrivals stores the first arrival and what else waits. A gap is stored after the pages that
// were read before it: before them it would close the shard that they belong to.
func (w *writer) storeArrivals(ctx context.Context, first arrival) error {
	pages, gap := w.collectPages(first)
	w.progress.begin(pages)
	defer w.progress.end()
	w.gap = gap
	if len(pages) == 0 {
		return w.flush(ctx)
	}
	return w.storePages(ctx, pages)
}

// collectPages takes what waits besides the first arrival, up to one frame or to the first gap: the
// busier the log, the more pages share an append.
func (w *writer) collectPages(a arrival) (pages []*source.Page, gap *request) {
	for size := 0; ; {
		if a.page == nil {
			return pages, &a.gap
		}
		pages, size = append(pages, a.page), size+a.page.Bytes
		if size >= maxFrame {
			return pages, nil
		}
		select {
		case a = <-w.handoff.arrivals:
		default:
			return pages, nil
		}
	}
}

// storePages packs pages and appends the frames. The pages are released in any case: what is not
// stored stays in packed form or, when the outcome is unknown, is read again.
func (w *writer) storePages(ctx context.Context, pages []*source.Page) error {
	full := make([]*change.Page, 0, len(pages))
	var empty []*change.Page
	for _, p := range pages {
		if len(p.Records) > 0 || p.Done {
			full = append(full, &p.Page)
		} else {
			empty = append(empty, &p.Page)
		}
	}
	seen, reads := w.sightings(pages), w.reads(pages)
	packed, err := frame.Pack(full, w.frameSize())
	for _, p := range pages {
		p.Release()
	}
	if tooLarge := (*frame.TooLargeError)(nil); errors.As(err, &tooLarge) {
		return &outcome.HaltError{Code: "record_too_large", Reason: tooLarge.Error()}
	}
	if err != nil {
		return fmt.Errorf("pack pages: %w", err)
	}
	w.frames, w.proofs, w.seen, w.traced = packed, empty, seen, reads
	return w.flush(ctx)
}

// sighting is what came out of a shard with a page that was not empty.
type sighting struct {
	shard  string
	newest change.Millis // creation of the newest record or heartbeat
	beats  []change.Heartbeat
}

// sightings returns what came out of which shard, for a table with heartbeats.
func (w *writer) sightings(pages []*source.Page) (all []sighting) {
	if w.o.Heartbeats == nil {
		return nil
	}
	for _, p := range pages {
		if newest := p.Newest(); newest > 0 {
			all = append(all, sighting{p.Feed.Shard, newest, p.Heartbeats})
		}
	}
	return all
}

// frameSize returns how large a frame may be: a part of the log's limit only, so that the reserve
// above which reading pauses always holds one more frame. In a small log a frame that never fits
// would wait for ever.
func (w *writer) frameSize() int {
	if limit := w.pressure.Limit; limit > 0 {
		return min(w.o.MaxPayload, int(limit/framesPerLog))
	}
	return w.o.MaxPayload
}

// flush appends the packed frames, and then the gap that follows. When the log is full the rest
// waits, and nothing more is taken from the readers.
//
// Rule 2: a page's position, clock and records are one entry.
func (w *writer) flush(ctx context.Context) error {
	ended := false
	for len(w.frames) > 0 {
		f := &w.frames[0]
		sent := time.Now()
		seq, err := w.log.Append(ctx, f.Body, f.Data)
		if err != nil {
			return fmt.Errorf("append frame: %w", err)
		}
		w.trace(f, seq, sent)
		f.Release()
		w.frames = w.frames[1:]
		for i := range f.Body.Pages {
			ended = ended || f.Body.Pages[i].Done
		}
	}
	// An empty page proves something only now, that everything read before it is in the log.
	for _, p := range w.proofs {
		w.watermarks.raise(p)
	}
	for _, x := range w.seen {
		w.watermarks.prove(x.shard, x.newest)
		w.o.Heartbeats.Seen(x.shard, x.beats)
	}
	w.proofs, w.seen, w.traced = nil, nil, nil
	if ended {
		w.publishChanges()
	}
	if gap := w.gap; gap != nil {
		w.gap = nil
		return w.storeRequest(ctx, *gap)
	}
	return nil
}
