package resync

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize/english"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify"
)

// Whole resyncs the whole table when the log holds an order for it, after a gap or a lost log: it
// compares Bigtable with the table, and writes rows that differ again. Most rows are equal, and
// writing them again would cost the target, give their cells new times, and push histories out.
type Whole struct {
	Options
	Program *transform.Program
	// Sharing returns the programs of the other tables with the same target. It may fail while they
	// are not known; nil: there are none.
	Sharing func() ([]*transform.Program, error)
	Client  *bigtable.Client
	Scratch string // directory for sorted runs

	sharing []*transform.Program
	status  atomic.Pointer[WholeStatus]
}

// Status returns how far the resync is; nil while there is none.
func (w *Whole) Status() *WholeStatus { return w.status.Load() }

const (
	// wholeLook is the time between two checks for a resync ordered in the log.
	wholeLook = time.Second
	// firstWhole is the pause after a resync failed, as when there is no room for it; it doubles up
	// to lastWhole.
	firstWhole = 2 * time.Second
	lastWhole  = time.Minute
	// lastRecheck is the longest pause before what is not equal yet is looked at again.
	lastRecheck = 10 * time.Minute
)

// errReplaced means that the log holds a later order for a resync.
var errReplaced = errors.New("another resync was asked for")

// Run does the resyncs that the log orders until ctx ends, and then returns nil. A resync that
// fails is tried again: the stream does not need it. An error concerns the table's life.
func (w *Whole) Run(ctx context.Context) error {
	defer w.status.Store(nil) // the drain that follows takes time, and the resync does not go on
	for fails := 1; w.Sharing != nil; fails++ {
		var err error
		if w.sharing, err = w.Sharing(); err == nil {
			break
		}
		w.Logger.Warn("the other tables of the target are not known yet: a resync would have to wait", zap.Error(err))
		if failure.Pause(ctx, failure.Backoff(fails)) != nil {
			return nil
		}
	}
	for retry := firstWhole; ctx.Err() == nil; {
		p, pause := w.Facts().Resync, wholeLook
		if p == nil {
			w.status.Store(nil)
			retry = firstWhole
		} else if err := w.run(ctx, p); err != nil && ctx.Err() == nil && !errors.Is(err, errReplaced) {
			if source.Classify(err) == failure.Canceled {
				return nil
			}
			w.note(func(s *WholeStatus) { s.Doing, s.Why = "waiting", err.Error() })
			w.Logger.Error("the resync of the table stopped: will be tried again", zap.String("resync", p.ID), zap.Error(err))
			pause, retry = retry, min(2*retry, lastWhole)
		}
		_ = failure.Pause(ctx, pause) // fails when ctx ends, which ends the loop
	}
	return nil
}

// run does one resync, until it is complete or the log holds an order for another one.
func (w *Whole) run(ctx context.Context, p *checkpoint.PendingResync) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		for failure.Pause(ctx, wholeLook) == nil {
			if now := w.Facts().Resync; now == nil || now.ID != p.ID {
				cancel(errReplaced)
				return
			}
		}
	})
	err := w.resync(ctx, p)
	cause := context.Cause(ctx)
	cancel(nil)
	watch.Wait()
	if errors.Is(cause, errReplaced) {
		return cause
	}
	return err
}

// resync compares, repairs, and stores that the table is healed.
func (w *Whole) resync(ctx context.Context, p *checkpoint.PendingResync) error {
	w.status.Store(&WholeStatus{ID: p.ID, Doing: "waiting"})
	w.Logger.Info("the resync of the whole table begins", zap.String("resync", p.ID), zap.Bool("recover", p.Recover),
		zap.Strings("gaps", p.Gaps))
	if err := w.awaitBegin(ctx, p); err != nil {
		return err
	}
	settler := w.settler()
	found, err := verify.Full(ctx, w.fullOptions(p), settler.Tables, settler.Target)
	if err != nil {
		return err
	}
	res, err := w.repairAll(ctx, settler, found)
	if err != nil {
		return errors.Join(err, found.Close())
	}
	if err := w.Append(ctx, w.healed(p, res)); err != nil {
		return errors.Join(err, found.Close())
	}
	w.Logger.Info("the whole table is resynced and equal", zap.String("resync", p.ID),
		zap.Int64("items", res.Counts.Items), zap.Int64("different", res.Different), zap.Int64("rows_written", res.Written),
		zap.String("left", w.left(res)))
	w.status.Store(nil)
	if err := found.Remove(); err != nil { // Rule 15: that the table is healed stands in the log
		w.Logger.Warn("files of the resync are left: the next one drops them", zap.Error(err))
	}
	return nil
}

// awaitBegin waits until a reading is newer than everything that was lost, and the versions of
// repairs are, too.
func (w *Whole) awaitBegin(ctx context.Context, p *checkpoint.PendingResync) error {
	for {
		from, ok := protocol.ResyncFrom(p, w.Facts().RowFacts)
		left := time.Duration(from-w.Now()) * time.Millisecond
		switch {
		case ok && left <= 0:
			return nil
		case ok:
			w.note(func(s *WholeStatus) {
				s.Why = "begins in " + left.Round(time.Second).String() + ", so that what it writes is newer than all before"
			})
		default:
			left = wholeLook
			w.note(func(s *WholeStatus) {
				s.Why = "begins when no worker copies the table any more: `replicator copy takeback` ends that"
			})
		}
		if err := failure.Pause(ctx, min(left, wholeLook)); err != nil {
			return err
		}
	}
}

func (w *Whole) fullOptions(p *checkpoint.PendingResync) verify.FullOptions {
	hash := w.Program.Hash()
	return verify.FullOptions{
		Dir:      filepath.Join(w.Scratch, "resync", w.Pipeline, w.Source),
		Identity: fmt.Sprintf("%s %d %s %s", p.ID, p.Asked, hex.EncodeToString(hash[:]), w.Info.ID),
		Now:      w.Now, Lead: w.leadMillis(),
		Progress: func(c verify.Counts) {
			w.note(func(s *WholeStatus) { s.Doing, s.Items, s.Candidates, s.Why = "comparing", c.Items, c.Candidates, "" })
		},
	}
}

func (w *Whole) leadMillis() change.Millis { return change.Millis(w.Lead().Milliseconds()) }

// settler returns the Settler that decides about items while both sides are written to.
func (w *Whole) settler() verify.Settler {
	segments := Segments(w.Info.Bytes)
	tables := []verify.Table{{
		Program: w.Program, Parts: segments, Outlives: w.Program.Outlives, Items: w.Info.Items, Bytes: w.Info.Bytes,
		Page: func(ctx context.Context, part int, after string) (*source.ItemPage, error) {
			return w.page(ctx, source.ScanRequest{Table: w.Source, Segment: part, Total: segments, After: after})
		},
	}}
	programs := []*transform.Program{w.Program}
	for _, p := range w.sharing {
		tables = append(tables, verify.Table{Program: p, Outlives: p.Outlives})
		programs = append(programs, p)
	}
	return verify.Settler{
		Tables: tables, Target: verify.NewTarget(w.Client, w.Target, programs...),
		ReadItems: func(ctx context.Context, _ string, keys [][]byte) (*source.ItemBatch, error) {
			return NewItems(w.Options).readKeys(ctx, keys)
		},
		Prove: func(ctx context.Context, t change.Millis) error { return w.Prove(ctx, t) },
		Now:   w.Now, Lead: w.leadMillis(), FirstPause: w.Periods.Settle,
	}
}

// keepLead has a settler learn behind each proof how far versions may be ahead by then: a burst of
// changes may have raised that since the resync began, and what it wrote has no guard in the
// future.
func (w *Whole) keepLead(s *verify.Settler) {
	prove := s.Prove
	s.Prove = func(ctx context.Context, through change.Millis) error {
		err := prove(ctx, through)
		s.Lead = w.leadMillis()
		return err
	}
}

// page reads a page of the table within the read budget, again and again while the service does not
// answer.
func (w *Whole) page(ctx context.Context, r source.ScanRequest) (*source.ItemPage, error) {
	for tries := 1; ; tries++ {
		if err := w.awaitStream(ctx); err != nil {
			return nil, err
		}
		if err := w.Budget.Take(ctx, firstUnits); err != nil {
			return nil, err
		}
		pg, err := w.Reader.ScanPage(ctx, r)
		if err == nil {
			w.Budget.Settle(firstUnits, pg.Units)
			return pg, nil
		}
		w.Budget.Settle(firstUnits, 0)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if class := source.Classify(err); class != failure.Transient && class != failure.Throttled {
			return nil, err
		}
		if err := failure.Pause(ctx, failure.Backoff(tries)); err != nil {
			return nil, err
		}
	}
}

// awaitStream waits while Bigtable is too far behind the stream: what is compared then would
// differ.
func (w *Whole) awaitStream(ctx context.Context) error {
	for w.Behind() > maxBehind {
		if err := failure.Pause(ctx, 250*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// repair resyncs items that differ.
func (w *Whole) repair(ctx context.Context, repairs []verify.Repair) ([]verify.Repaired, error) {
	wanted := make([]Wanted, len(repairs))
	for i, r := range repairs {
		wanted[i] = Wanted{Key: []byte(r.Key), Rows: r.Rows, Letters: true, Future: r.Future}
	}
	outcomes, err := NewItems(w.Options).Resync(ctx, wanted)
	if err != nil {
		return nil, err
	}
	done := make([]verify.Repaired, len(repairs))
	for i := range outcomes {
		o := &outcomes[i]
		done[i] = verify.Repaired{Written: o.Written, Left: o.Left, Hot: o.Hot}
		if o.Refused != nil {
			done[i].Lettered, done[i].Why = true, o.Refused.Reason
		}
	}
	return done, nil
}

// repairAll settles all candidates and repairs what differs, again and again until nothing is open.
//
// Rule 8: a gap is healed only when every difference was repaired and found equal afterwards.
func (w *Whole) repairAll(ctx context.Context, s verify.Settler, found *verify.Findings) (*verify.Resynced, error) {
	r := &verify.Resyncer{Settler: s, Repair: w.repair, Progress: func(r verify.Resynced) {
		w.note(func(s *WholeStatus) {
			s.Doing, s.Settled, s.Different, s.Repaired, s.Why = "repairing", r.Settled, r.Different, r.Repaired, ""
			s.Hot, s.Unproven, s.Unowned, s.Refused = r.Hot, r.Unproven, r.Unowned, r.Refused+r.Letters
		})
	}}
	w.keepLead(&r.Settler)
	w.note(func(s *WholeStatus) {
		s.Doing, s.Items, s.Candidates = "repairing", found.Counts.Items, found.Counts.Candidates
	})
	repaired, written, left := int64(0), int64(0), int64(0)
	for pause := w.Periods.withDefaults().Recheck; ; pause = min(2*pause, lastRecheck) {
		res, err := r.Run(ctx, found)
		if err != nil {
			return nil, err
		}
		repaired, written, left = repaired+res.Repaired, written+res.Written, left+res.Left
		ok, why := complete(res)
		if ok {
			res.Repaired, res.Written, res.Left = repaired, written, left
			return res, nil
		}
		w.note(func(s *WholeStatus) {
			s.Doing, s.Why = "open", why+"; on the owner's disk "+res.OpenFile+" lists what is open"
		})
		w.Logger.Warn("the resync is not complete: what is open will be looked at again", zap.String("open", why),
			zap.String("list", res.OpenFile), zap.Duration("in", pause))
		if err := failure.Pause(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// complete reports whether the resync is complete. Foreign cells do not keep it open, because cells
// that a gap left behind have guards. Nor do cells with columns that do not show to which item they
// belong: another reading shows no more of them, and the note of the healed gap names them. Cells
// next to an unreadable guard do keep it open: with its secret they can be judged.
func complete(res *verify.Resynced) (bool, string) {
	r := *res
	r.Unowned = 0
	return r.Healed(true)
}

// left describes what a complete resync could not check; "" where it has checked everything.
func (w *Whole) left(res *verify.Resynced) string {
	if res.Unowned == 0 {
		return ""
	}
	var rules []string
	for i := range res.Open {
		if o := &res.Open[i]; o.Kind == verify.Unowned && o.Rule != "" && !slices.Contains(rules, o.Rule) {
			rules = append(rules, o.Rule)
		}
	}
	text := "not checked: " + english.Plural(int(res.Unowned),
		"cell that does not show to which item of its row it belongs",
		"cells that do not show to which item of their row they belong")
	if len(rules) > 0 {
		text += " (" + strings.Join(rules, ", ") + ")"
	}
	return text
}

// healed returns the entry that ends the resync.
func (w *Whole) healed(p *checkpoint.PendingResync, res *verify.Resynced) *checkpoint.Healed {
	var notes []string
	if !w.Program.CanCoalesce() && len(p.Gaps) > 0 {
		notes = append(notes, "versions between are missing in histories")
	}
	if left := w.left(res); left != "" {
		notes = append(notes, left)
	}
	if res.Kept > 0 {
		notes = append(notes, english.Plural(int(res.Kept), "cell", "")+
			" without an item kept, a deletion may be among what was lost")
	}
	if res.Foreign > 0 {
		notes = append(notes, english.Plural(int(res.Foreign), "foreign cell", ""))
	}
	return &checkpoint.Healed{
		ID: p.ID, Gaps: p.Gaps, Sinks: map[string]string{checkpoint.SinkBigtable: strings.Join(notes, "; ")}, Date: w.Now(),
		Result: checkpoint.ResyncResult{
			Items: res.Counts.Items, Written: res.Repaired, Equal: res.Equal, Left: res.Left, Hot: res.Hot,
			Letters: res.Letters + res.Refused, Unproven: res.Unproven, Unowned: res.Unowned,
		},
	}
}

// note changes what people see of the resync.
func (w *Whole) note(change func(*WholeStatus)) {
	s := WholeStatus{Estimate: w.Info.Items}
	if old := w.status.Load(); old != nil {
		s = *old
		s.Estimate = w.Info.Items
	}
	change(&s)
	w.status.Store(&s)
}
