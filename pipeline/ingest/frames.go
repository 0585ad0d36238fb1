package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/pipeline/tracing"
	"github.com/tailrace-cdc/replicator/queue/frame"
	"github.com/tailrace-cdc/replicator/source"
)

// framesPerLog is how many frames a log holds at least.
const framesPerLog = 16

// arrived is what was taken from the readers and is not packed yet: the pages of one frame.
type arrived struct {
	pages []*source.Page
	size  int      // as a frame counts it
	gap   *request // was found after the pages
	next  *arrival // did not fit any more
}

// full reports whether nothing more may be taken before the pages are packed. A gap is stored after
// the pages that were read before it: before them it would close the shard that they belong to.
func (a *arrived) full(room int) bool { return a.next != nil || a.gap != nil || a.size >= room }

// batch is what is packed and stored together.
type batch struct {
	frames []frame.Packed
	proofs []*change.Page // pages without records that were read after the frames
	seen   []sighting     // what has come out of which shard, in frames and proofs; with heartbeats only
	gap    *request       // was found after them
	traced []tracing.Read // of the frames; with tracing only
	ended  bool           // a stored frame has the end of a shard

	// pages hold memory of the budget for the frames while another batch is stored before them.
	pages []*source.Page
}

// release gives back the memory of the batch's pages, when its turn has come.
func (b *batch) release() {
	for _, p := range b.pages {
		p.Release()
	}
	b.pages = nil
}

// take adds an arrival to what is packed next.
func (w *writer) take(a arrival) {
	t := &w.taken
	if a.page == nil {
		t.gap = &a.gap
		return
	}
	size := 0
	if isData(a.page) {
		size = frame.Size(&a.page.Page)
	}
	if t.size > 0 && t.size+size > frame.Room(w.frameSize()) {
		t.next = &a
		return
	}
	t.pages, t.size = append(t.pages, a.page), t.size+size
}

// isData reports whether a page goes into a frame. Others only prove that everything before them was
// read.
func isData(p *source.Page) bool { return len(p.Records) > 0 || p.Done }

// inHand reports whether there is something to store.
func (w *writer) inHand() bool { return w.ahead != nil || len(w.taken.pages) > 0 || w.taken.gap != nil }

// dropInHand gives back the memory of what is not stored. It is read again in the next life.
func (w *writer) dropInHand() {
	for _, p := range w.taken.pages {
		p.Release()
	}
	if w.taken.next != nil {
		w.taken.next.release()
	}
	for _, b := range []*batch{w.current, w.ahead} {
		if b != nil {
			b.release()
		}
	}
	w.taken, w.current, w.ahead = arrived{}, nil, nil
}

// store stores what was packed ahead, or else what waits now, up to one frame or to the first gap:
// the busier the log, the more pages share an append.
func (w *writer) store(ctx context.Context) (err error) {
	b := w.ahead
	if w.ahead = nil; b == nil {
		w.collect()
		if b, err = w.pack(); err != nil {
			return err
		}
	}
	w.progress.begin(b.pages)
	defer w.progress.end()
	b.release()
	w.current = b
	return w.flush(ctx)
}

// collect takes what waits, up to one frame or to the first gap.
func (w *writer) collect() {
	for room := frame.Room(w.frameSize()); !w.taken.full(room); {
		select {
		case a := <-w.handoff.arrivals:
			w.take(a)
		default:
			return
		}
	}
}

// collectUntil takes what waits, and what arrives until acked is closed. It reports whether a whole
// frame is in hand.
func (w *writer) collectUntil(acked <-chan struct{}) bool {
	w.collect()
	for room := frame.Room(w.frameSize()); !w.taken.full(room); {
		select {
		case <-acked:
			return false
		case a := <-w.handoff.arrivals:
			w.take(a)
			w.collect()
		}
	}
	return true
}

// pack packs what was taken. The pages stay in the batch, and hold the memory of their packed form.
// What is not stored is read again.
func (w *writer) pack() (*batch, error) {
	t := w.taken
	w.taken = arrived{}
	if t.next != nil {
		w.take(*t.next)
	}
	b := &batch{gap: t.gap, seen: w.sightings(t.pages), traced: w.reads(t.pages), pages: t.pages}
	full := make([]*change.Page, 0, len(t.pages))
	for _, p := range t.pages {
		if isData(p) {
			full = append(full, &p.Page)
		} else {
			b.proofs = append(b.proofs, &p.Page)
		}
	}
	var err error
	b.frames, err = frame.Pack(full, w.frameSize())
	if err != nil {
		b.release()
	}
	if tooLarge := (*frame.TooLargeError)(nil); errors.As(err, &tooLarge) {
		return nil, &outcome.HaltError{Code: "record_too_large", Reason: tooLarge.Error()}
	}
	if err != nil {
		return nil, fmt.Errorf("pack pages: %w", err)
	}
	b.shrink()
	return b, nil
}

// shrink lets the pages give up their records. They hold the memory that the frames take until they
// are stored: the packed records, and once more the encoded entry.
//
// Rule 9: what is packed ahead counts in the budget.
func (b *batch) shrink() {
	size := 0
	for i := range b.frames {
		size += 2 * len(b.frames[i].Data)
	}
	for _, p := range b.pages {
		p.Shrink(size / len(b.pages))
	}
}

// packAhead packs the next batch while a frame waits for its acknowledgement, once a whole frame
// waits: packing less would only make frames smaller. It returns the frame that follows; nil before
// there is one.
func (w *writer) packAhead(acked <-chan struct{}) *frame.Packed {
	if rest := w.current.frames[1:]; len(rest) > 0 {
		return &rest[0]
	}
	if w.ahead == nil && w.failed == nil && w.current.gap == nil && !w.pressure.Pause && w.collectUntil(acked) {
		w.ahead, w.failed = w.pack()
	}
	if w.ahead == nil || len(w.ahead.frames) == 0 {
		return nil
	}
	return &w.ahead.frames[0]
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

// flush appends the frames of the current batch, and then the gap that follows. When the log is full
// the rest waits, and nothing more is taken from the readers.
//
// Rule 2: a page's position, clock and records are one entry.
func (w *writer) flush(ctx context.Context) error {
	b := w.current
	for len(b.frames) > 0 {
		f := &b.frames[0]
		sent := time.Now()
		seq, err := w.log.AppendFrame(ctx, f, w.packAhead)
		if err != nil {
			return fmt.Errorf("append frame: %w", err)
		}
		w.trace(f, seq, sent)
		f.Release()
		b.frames = b.frames[1:]
		for i := range f.Body.Pages {
			b.ended = b.ended || f.Body.Pages[i].Done
		}
	}
	w.current = nil
	// An empty page proves something only now, that everything read before it is in the log.
	for _, p := range b.proofs {
		w.watermarks.raise(p)
	}
	for _, x := range b.seen {
		w.watermarks.prove(x.shard, x.newest)
		w.o.Heartbeats.Seen(x.shard, x.beats)
	}
	if b.ended {
		w.publishChanges()
	}
	if b.gap != nil {
		if err := w.storeRequest(ctx, *b.gap); err != nil {
			return err
		}
	}
	return w.failed
}
