package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue/frame"
	"github.com/tailrace-cdc/replicator/source"
)

// take stores what arrived, and what else waits. A gap is written down behind the pages that were read before it:
// in front of them it would close the shard that they belong to.
func (in *ingest) take(ctx context.Context, first arrival) error {
	pages, gap := in.collect(first)
	in.behind = gap
	if len(pages) == 0 {
		return in.flush(ctx)
	}
	return in.frames(ctx, pages)
}

// collect takes what waits besides the first arrival, up to one frame, or to the first gap: group commit by itself.
func (in *ingest) collect(a arrival) (pages []*source.Page, gap *finding) {
	for size := 0; ; {
		if a.page == nil {
			return pages, &a.gap
		}
		pages, size = append(pages, a.page), size+a.page.Bytes
		if size >= maxFrame {
			return pages, nil
		}
		select {
		case a = <-in.arrivals:
		default:
			return pages, nil
		}
	}
}

// maxFrame is the volume of pages that go into one append.
const maxFrame = 4 << 20

// frames packs pages and appends the frames. The pages are released whatever happens: what is not stored stays
// in packed form, or, after doubt, is read again.
func (in *ingest) frames(ctx context.Context, pages []*source.Page) error {
	full := make([]*change.Page, 0, len(pages))
	var empty []*change.Page
	for _, p := range pages {
		if len(p.Records) > 0 || p.Done {
			full = append(full, &p.Page)
		} else {
			empty = append(empty, &p.Page)
		}
	}
	packed, err := frame.Pack(full, in.payload())
	for _, p := range pages {
		p.Release()
	}
	if err != nil {
		return in.tooLarge(err)
	}
	in.unsent, in.proofs = packed, empty
	return in.flush(ctx)
}

// payload is how large a frame may be: a part of the log's limit only, so that the reserve above which reading
// pauses always holds one more frame. In a small log a frame that never fits would wait for ever.
func (in *ingest) payload() int {
	most := in.t.p.queue.MaxPayload()
	if limit := in.t.pressure.Limit; limit > 0 {
		most = min(most, int(limit/framesPerLog))
	}
	return most
}

// framesPerLog is how many frames a log holds at least.
const framesPerLog = 16

// flush appends what is packed, and the gap behind it. When the log is full the rest waits, and nothing more is
// taken from the readers.
//
// Rule 2: a page's position, clock and records are one entry.
func (in *ingest) flush(ctx context.Context) error {
	ended := false
	for len(in.unsent) > 0 {
		f := &in.unsent[0]
		if _, err := in.w.Append(ctx, f.Body, f.Data); err != nil {
			return fmt.Errorf("append frame: %w", err)
		}
		f.Release()
		in.unsent = in.unsent[1:]
		for i := range f.Body.Pages {
			ended = ended || f.Body.Pages[i].Done
		}
	}
	// What an empty page proves counts only now, that everything read before it is in the log.
	for _, p := range in.proofs {
		in.idle.note(p)
	}
	in.proofs = nil
	if ended {
		in.spread()
	}
	if gap := in.behind; gap != nil {
		in.behind = nil
		return in.storeFinding(ctx, *gap)
	}
	return nil
}

func (in *ingest) tooLarge(err error) error {
	big := (*frame.TooLargeError)(nil)
	if errors.As(err, &big) {
		return &outcome.HaltError{Code: "record_too_large", Reason: big.Error()}
	}
	return fmt.Errorf("pack pages: %w", err)
}
