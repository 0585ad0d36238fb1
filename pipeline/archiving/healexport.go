package archiving

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/export"
	"github.com/tailrace-cdc/replicator/transform"
)

// reading makes events of one export. It reads the export twice: first it collects the deletions,
// as many as fit into memory; these are compared with the archive; then those that it lacks are
// stored.
type reading struct {
	h     *Healer
	e     *export.Export
	gaps  []Gap
	label string // stands for the label of a stream in the events' ids
	sum   *request.Healed
	chunk int // deletions that are held at once
	dec   change.Decoder
}

// chunkSize is how many deletions are compared with the archive at once: some 60 MB.
const chunkSize = 1 << 19

// storeBatch is how many events are stored at once.
const storeBatch = 512

func (h *Healer) newReading(e *export.Export, gaps []Gap, sum *request.Healed) *reading {
	return &reading{h: h, e: e, gaps: gaps, label: "heal/" + gaps[0].ID + "/" + exportID(e), sum: sum, chunk: h.chunk}
}

// place is a line of an export.
type place struct {
	file int
	line int64
}

// deletion is what is known of an item that an export shows as deleted.
type deletion struct {
	at    change.Millis
	place place
	image bool // the export has its image
	known archivedAs
}

// itemHash names an item: a part of the SHA-256 of its key.
type itemHash [16]byte

// errFull means that a chunk holds as much as it may.
var errFull = errors.New("the chunk is full")

// run reads the whole export.
func (r *reading) run(ctx context.Context) error {
	for from, more := (place{}), true; more; {
		var chunk map[itemHash]*deletion
		var to place
		var err error
		if chunk, to, more, err = r.collect(ctx, from); err != nil {
			return err
		}
		if len(chunk) == 0 {
			return nil
		}
		// From the hour in which the window begins: an event from before it belongs to an earlier
		// item.
		first, last := layout.HourOf(r.e.From.Time())-1, layout.HourOf(r.e.To.Time())+1
		err = r.h.Archive.Held(ctx, first, last, func(e *transform.Event) { r.compare(chunk, e) })
		if err == nil {
			err = r.store(ctx, chunk, from, to)
		}
		if err != nil {
			return err
		}
		from = to
	}
	return nil
}

// collect reads deletions from a place on, and returns where it stopped.
func (r *reading) collect(
	ctx context.Context, from place,
) (chunk map[itemHash]*deletion, to place, more bool, err error) {
	chunk = map[itemHash]*deletion{}
	for to = from; to.file < len(r.e.Files); to = (place{file: to.file + 1}) {
		err := r.e.ReadFile(ctx, to.file, to.line, func(l export.Line) error {
			if len(chunk) == r.chunk {
				return errFull
			}
			to.line = l.N
			e, err := r.event(&l, place{to.file, l.N})
			if e == nil || err != nil {
				return err
			}
			key := hashOf(e.Subject)
			if chunk[key] != nil {
				return refuse("export the table again", "the export names an item twice: line %d of %s", l.N,
					r.e.Files[to.file].Key)
			}
			chunk[key] = &deletion{at: writtenAt(&l), place: place{to.file, l.N}, image: l.Old != nil}
			return nil
		})
		if errors.Is(err, errFull) {
			return chunk, to, true, nil
		}
		if err != nil {
			return nil, to, false, refusedBy(err)
		}
	}
	return chunk, to, false, nil
}

// event returns the event of a line; nil unless it may be of an item that expired in the time of a
// gap.
func (r *reading) event(l *export.Line, at place) (*transform.Event, error) {
	deleted := writtenAt(l)
	if l.New != nil || !r.inGap(deleted) {
		return nil, nil
	}
	second := deleted - deleted%1000
	c := &change.Change{
		Op: change.Remove, TTL: true, Version: change.Version(deleted), Created: second, Keys: l.Keys, Old: l.Old,
		SequenceNumber: change.SequenceNumber(strconv.FormatInt(l.N, 10)),
		Feed:           change.Feed{Stream: r.h.TableARN + "/stream/" + r.label, Shard: path.Base(r.e.Files[at.file].Key)},
	}
	r.dec.Reset()
	e, err := r.h.Event(&r.dec, c)
	if err != nil {
		return nil, refuse("`replicator gaps clear` waives what the archive lacks",
			"the mapping refuses line %d of %s: %v", l.N, r.e.Files[at.file].Key, err)
	}
	switch {
	case e == nil:
		r.sum.Skipped++
		return nil, nil
	case l.Old != nil && !change.HadExpired(e.Expiry, deleted):
		r.sum.Alive++
		return nil, nil
	}
	e.Class = transform.ClassHealed
	return e, nil
}

// writtenAt returns when the item of a line was written last: for one that is gone, when it was
// deleted.
func writtenAt(l *export.Line) change.Millis { return change.Millis(l.Written / 1000) }

// inGap reports whether a deletion at a time may have been lost in one of the gaps.
func (r *reading) inGap(at change.Millis) bool {
	for _, g := range r.gaps {
		if g.Since-clockSlack <= at && at <= g.Until+healMargin {
			return true
		}
	}
	return false
}

// store stores the deletions of a chunk that the archive lacks, in the order of the export's lines.
func (r *reading) store(ctx context.Context, chunk map[itemHash]*deletion, from, to place) error {
	r.h.Archive.DeferCuts(true)
	defer r.h.Archive.DeferCuts(false)
	var batch []ledger.Record
	flush := func() error {
		stored, err := r.h.Archive.Store(ctx, batch)
		if large := (*TooLargeError)(nil); errors.As(err, &large) {
			return refuse("`replicator gaps clear` waives what the archive lacks; or raise max_payload of the NATS server",
				"line %s of %s: %v", batch[stored].Sequence, batch[stored].Shard, err)
		}
		batch = batch[:0]
		return err
	}
	for at := from; at.file < len(r.e.Files) && at.file <= to.file; at = (place{file: at.file + 1}) {
		err := r.e.ReadFile(ctx, at.file, at.line, func(l export.Line) error {
			if at.file == to.file && l.N > to.line {
				return errFull
			}
			rec, wanted, err := r.record(chunk, &l, at.file)
			if err != nil || !wanted {
				return err
			}
			if batch = append(batch, rec); len(batch) < storeBatch {
				return nil
			}
			return flush()
		})
		if err == nil || errors.Is(err, errFull) {
			err = flush()
		}
		if err != nil {
			return fmt.Errorf("store events: %w", err)
		}
	}
	return nil
}

// record returns what the archive's stream is to know of a line, and counts it.
func (r *reading) record(
	chunk map[itemHash]*deletion, l *export.Line, file int,
) (rec ledger.Record, ok bool, err error) {
	counted := *r.sum
	e, err := r.event(l, place{file, l.N})
	*r.sum = counted // collect has counted what is no event
	if e == nil || err != nil {
		return rec, false, err
	}
	d := chunk[hashOf(e.Subject)]
	switch {
	case d.known == own:
		r.sum.Events++
		return ledger.Record{Event: cloneEvent(e), Verdict: ledger.Known}, true, nil
	case d.known == sameDeletion:
		r.sum.Known++
	case !d.image || d.known == earlierItem:
		r.sum.NoImage++
	default:
		r.sum.Events++
		r.h.Archive.CountHealed()
		return ledger.Record{Event: cloneEvent(e)}, true, nil
	}
	return rec, false, nil
}

// cloneEvent returns an event that is valid after the call that hands out the line.
func cloneEvent(e *transform.Event) *transform.Event {
	c := *e
	c.Item = append([]byte(nil), e.Item...)
	return &c
}

// RefusedError is the reason why gaps cannot be healed as ordered, and what to do.
type RefusedError struct{ What, Hint string }

func (e *RefusedError) Error() string { return e.What }

func refuse(hint, what string, args ...any) error {
	return &RefusedError{What: fmt.Sprintf(what, args...), Hint: hint}
}

// refusedBy turns an error about an export that trying again cannot help into a refusal.
func refusedBy(err error) error {
	own := (*source.Error)(nil)
	if !errors.As(err, &own) {
		return err
	}
	switch source.Classify(err) {
	case failure.Transient, failure.Throttled, failure.Canceled:
		return err
	}
	return &RefusedError{What: err.Error(), Hint: source.Hint(err)}
}

// exportID returns the name that DynamoDB gave an export.
func exportID(e *export.Export) string { return e.ARN[strings.LastIndexByte(e.ARN, '/')+1:] }
