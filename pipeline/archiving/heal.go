package archiving

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/source/export"
	"github.com/tailrace-cdc/replicator/transform"
)

// Healer makes events of class healed of what gaps lost, as incremental exports show it, and closes
// the archive's part of the gaps. It stores them as the copier does: in the archive's stream, with
// the line of the export as the record. So all that holds for records of the table's stream holds
// for them.
//
// An export does not say which shard had a deletion, so most of those in the time of a gap may be
// archived already. Before anything is stored, each is compared by key and time with what the
// archive holds (healexport.go).
type Healer struct {
	HealOptions

	chunk int           // deletions that are held at once
	one   chan struct{} // held by the healing at work: two would not see each other's events
}

// HealOptions are what a Healer needs.
type HealOptions struct {
	Archive  *Archiver // nil: the table has none
	TableARN string
	TTLAttr  string // attribute of the table's time to live; "": it has none
	Gaps     func() []Gap
	// Letters returns how many dead letters of the archive there are. Their deletions are in no
	// object.
	Letters func() int
	Open    func(ctx context.Context, name string) (*export.Export, error) // URL or ARN
	// Event returns the event of a deletion; nil where the mapping does not archive it.
	Event  func(d *change.Decoder, c *change.Change) (*transform.Event, error)
	Append func(ctx context.Context, body any) error // to the table's log
	Now    func() change.Millis
	Logger *zap.Logger
}

// healMargin is how much a window must extend beyond a gap at each end: some times of records are
// cut to minutes.
const healMargin change.Millis = 60_000

// NewHealer returns a Healer.
func NewHealer(o HealOptions) *Healer {
	return &Healer{HealOptions: o, chunk: chunkSize, one: make(chan struct{}, 1)}
}

// Heal carries out an order. It may be called again, by any later owner: what is stored is found
// and not stored twice. Errors are worth another try.
func (h *Healer) Heal(ctx context.Context, order *request.HealOrder) (*request.Outcome, error) {
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case h.one <- struct{}{}:
		defer func() { <-h.one }()
	}
	done, err := h.heal(ctx, order)
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		return &request.Outcome{Failed: refused.What, Hint: refused.Hint}, nil
	}
	if err != nil {
		return nil, err
	}
	return &request.Outcome{Healed: done}, nil
}

func (h *Healer) heal(ctx context.Context, order *request.HealOrder) (*request.Healed, error) {
	gaps, err := h.wanted(order.Gaps)
	if err != nil {
		return nil, err
	}
	if len(gaps) == 0 { // an earlier owner did it all, and crashed before it replied
		return &request.Healed{}, nil
	}
	exports, err := h.openAll(ctx, order.Exports)
	if err != nil {
		return nil, err
	}
	if err := spanned(gaps, exports); err != nil {
		return nil, err
	}
	if err := h.settled(gaps); err != nil {
		return nil, err
	}
	defer h.Archive.NoteHealing("")
	sum := &request.Healed{}
	for _, e := range exports {
		id := exportID(e)
		sum.Exports = append(sum.Exports, id)
		h.Archive.NoteHealing("gap " + gaps[0].ID + " from export " + id)
		// Rule 8: the gap is closed only when everything that the exports show is in the archive's
		// stream.
		if err := h.newReading(e, gaps, sum).run(ctx); err != nil {
			return nil, fmt.Errorf("heal the archive from export %s: %w", id, err)
		}
		if e.Wholeness != export.Whole {
			sum.Unconfirmed = append(sum.Unconfirmed, request.Unconfirmed{Export: id, Reason: e.Unasked})
		}
	}
	if len(sum.Unconfirmed) > 0 {
		// Rule 13: what a filter left out of an export looks like what the stream gave. So the
		// archive has more now, and the gaps stay open.
		h.Logger.Warn("gaps of the archive stay incomplete: DynamoDB cannot be asked whether these exports are whole",
			zap.Any("exports", sum.Unconfirmed), zap.Int64("events", sum.Events))
		return sum, nil
	}
	h.Logger.Info("gaps of the archive are healed", zap.Strings("exports", sum.Exports),
		zap.Int64("events", sum.Events), zap.Int64("known", sum.Known), zap.Int64("without_image", sum.NoImage))
	return sum, h.Append(ctx, healedEntry(gaps, sum, h.Now()))
}

// healedEntry returns the entry that closes the archive's part of gaps.
func healedEntry(gaps []Gap, sum *request.Healed, now change.Millis) *checkpoint.Healed {
	b := &checkpoint.Healed{ID: "archive", Exports: sum.Exports, Date: now, Sinks: map[string]string{}}
	for _, g := range gaps {
		b.Gaps = append(b.Gaps, g.ID)
	}
	b.Sinks[checkpoint.SinkArchive] = fmt.Sprintf(
		"%d events from %s, but for items whose whole life lay in a window (%d are named)", sum.Events,
		strings.Join(sum.Exports, " "), sum.NoImage)
	return b
}

// wanted returns the gaps of an order that are not healed yet, sorted by id.
func (h *Healer) wanted(ids []string) (gaps []Gap, err error) {
	switch {
	case h.Archive == nil || !h.Archive.HasObjects():
		return nil, refuse("set archive.url; a subject alone keeps nothing to compare with",
			"the table has no archive with objects")
	case h.TTLAttr == "":
		return nil, refuse("enable it, or waive what the archive lacks with `replicator gaps clear`",
			"the table has no time to live, so an export does not show what expired")
	case len(ids) == 0:
		return nil, refuse("", "the order names no gap")
	}
	all := h.Gaps()
	for _, id := range slices.Sorted(slices.Values(ids)) {
		at := slices.IndexFunc(all, func(g Gap) bool { return g.ID == id })
		switch {
		case at < 0:
			return nil, refuse("`replicator gaps list` shows them", "no gap %q", id)
		case all[at].Healed != "":
		case !all[at].Accepted:
			return nil, refuse("first `replicator repair --gaps`, or `replicator resume`",
				"gap %s is open: nothing after it is read", id)
		case !all[at].Differs:
			return nil, refuse("`replicator gaps list` shows what is missing", "the archive lacks nothing because of gap %s", id)
		default:
			gaps = append(gaps, all[at])
		}
	}
	return gaps, nil
}

// openAll opens the exports, in the order of their windows.
func (h *Healer) openAll(ctx context.Context, names []string) (exports []*export.Export, err error) {
	for _, name := range names {
		e, err := h.Open(ctx, name)
		if err != nil {
			return nil, refusedBy(err)
		}
		if e.Kind != export.Incremental {
			return nil, refuse("export the table with --export-type INCREMENTAL_EXPORT",
				"%s is a full export: it does not show what was deleted", name)
		}
		exports = append(exports, e)
	}
	slices.SortStableFunc(exports, func(a, b *export.Export) int { return int(a.From - b.From) })
	return exports, nil
}

// spanned returns an error unless the windows of the exports, one after the other, span each gap.
func spanned(gaps []Gap, exports []*export.Export) error {
	for _, g := range gaps {
		from, to := g.Since-healMargin, g.Until+healMargin
		at := from
		for _, e := range exports {
			if e.From <= at {
				at = max(at, e.To)
			}
		}
		if at < to {
			return refuse("export the table again with --export-type INCREMENTAL_EXPORT and the view type NEW_AND_OLD_IMAGES, "+
				"and name all exports; a window has at most 24 hours, so it may take several that touch",
				"the windows of the exports do not span gap %s: they must reach from %s to %s, and nothing is known from %s on",
				g.ID, timeOf(from), timeOf(to), timeOf(at))
		}
	}
	return nil
}

func timeOf(t change.Millis) string { return t.Time().UTC().Format("2006-01-02T15:04:05Z") }

// settled returns an error while a deletion in the time of a gap may still reach the archive from
// the stream.
func (h *Healer) settled(gaps []Gap) error {
	var until change.Millis
	for _, g := range gaps {
		until = max(until, g.Until+2*healMargin)
	}
	if through := h.Archive.Status().Through; through < until {
		return fmt.Errorf("the archive has what the stream gave until %s, and is compared once that is %s",
			timeOf(through), timeOf(until))
	}
	if n := h.Letters(); n > 0 {
		return refuse("`replicator dlq retry --all`, or drop them, and repeat the command",
			"the archive has %d dead letters: the export may show the same deletions", n)
	}
	return nil
}
