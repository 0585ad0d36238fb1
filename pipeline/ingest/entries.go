package ingest

import (
	"context"
	"errors"
	"fmt"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
)

// storeRequest appends what was requested and replies to the goroutine that waits for it.
func (w *writer) storeRequest(ctx context.Context, r request) error {
	err := w.storeEntry(ctx, r.body)
	r.done <- err
	return err
}

// storeEntry appends an entry that the lister, a reader or a sink requested, unless it is out of date by now.
func (w *writer) storeEntry(ctx context.Context, body any) error {
	s := w.log.State()
	bodies := []any{body}
	switch b := body.(type) {
	case *checkpoint.Graph:
		if bodies = toAny(checkpoint.DiffListing(s, b, listingPart(w.o.MaxPayload))); len(bodies) == 0 {
			return nil
		}
	case *checkpoint.Start:
		bodies = toAny(splitStart(s, b, w.o.MaxPayload))
	case *checkpoint.Control:
		if b.Halt != nil && s.Format < checkpoint.Format {
			b.Halt.Held = false // only a log of the present format holds it
		}
	case *checkpoint.Gap:
		if !s.PrepareGap(b) {
			return nil
		}
	}
	for _, b := range bodies {
		if _, err := w.log.Append(ctx, b, nil); err != nil {
			return fmt.Errorf("append %s entry: %w", checkpoint.KindOf(b), hintUpgrade(s, err))
		}
	}
	w.observe()
	w.publishChanges()
	return nil
}

// publishChanges passes what changed in the state to the readers and the lister.
func (w *writer) publishChanges() {
	s := w.log.State()
	w.publish(s, s.TakeReadabilityChanges())
}

// publish gives the readers the shards that became readable among the changed ones, takes from them those that are not
// any more, and brings watermarks and lister up to date.
func (w *writer) publish(s *checkpoint.State, changed []*checkpoint.Shard) {
	for _, sh := range changed {
		w.watermarks.add(sh)
	}
	w.lister.update(s)
	w.handoff.offerShards(s, changed)
}

// observe reports what the log holds and how full it is.
func (w *writer) observe() { w.o.Observe(w.log.State(), w.pressure) }

// AppendStart appends where every shard starts, in as many entries as the log's format and its messages need; only the
// last one counts (Rule 3).
func AppendStart(ctx context.Context, w *queue.Writer, start *checkpoint.Start, maxPayload int) error {
	s := w.State()
	for _, part := range splitStart(s, start, maxPayload) {
		if _, err := w.Append(ctx, part, nil); err != nil {
			return fmt.Errorf("append start: %w", hintUpgrade(s, err))
		}
	}
	return nil
}

// splitStart cuts a start into what fits into messages. Format 1 has one entry for it: a listing that is too large for
// the server is an error there.
func splitStart(s *checkpoint.State, start *checkpoint.Start, maxPayload int) []*checkpoint.Start {
	if s.Format < 2 {
		return []*checkpoint.Start{start}
	}
	return checkpoint.SplitStart(start, listingPart(maxPayload))
}

// listingPart returns how many bytes of shards go into one entry.
func listingPart(maxPayload int) int { return min(checkpoint.ListingPartBytes, maxPayload/2) }

// hintUpgrade adds to the error of an entry that is too large what would let it be stored in parts.
func hintUpgrade(s *checkpoint.State, err error) error {
	if errors.Is(err, queue.ErrTooLarge) && s.Format < checkpoint.Format {
		return fmt.Errorf("%w: %w", &checkpoint.FormatError{Need: checkpoint.Format, Have: s.Format}, err)
	}
	return err
}

func toAny[T any](all []T) (list []any) {
	for _, x := range all {
		list = append(list, x)
	}
	return list
}
