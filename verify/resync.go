package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// Repair is one item to be resynced: its rows by its projection, and these.
type Repair struct {
	Table  int
	Key    string // canonical
	Rows   [][]byte
	Future change.Version // not 0: a guard in the future, which only a write that expects exactly it replaces
}

// Repaired is what became of a Repair.
type Repaired struct {
	Written, Left int           // rows
	Hot           change.Millis // not 0: a newer write keeps a difference alive until then
	Lettered      bool          // the mapping refuses the item: it is a dead letter now
	Why           string        // of a letter
}

// Resyncer settles the candidates of a full comparison, and has the differences repaired.
type Resyncer struct {
	Settler
	// Repair resyncs items, and returns what became of each, in their order. nil: nothing is
	// repaired.
	Repair   func(ctx context.Context, repairs []Repair) ([]Repaired, error)
	Batch    int            // candidates that are settled at once; default 1,000
	Progress func(Resynced) // may be nil; called whenever more is known
}

// repairTries is how often an item is repaired that still differs afterwards.
const repairTries = 5

// Run settles all candidates, repairs those that differ, and settles them again. It may be called
// again, to look at what stayed open.
func (r *Resyncer) Run(ctx context.Context, found *Findings) (*Resynced, error) {
	open, err := found.newOpen()
	if err != nil {
		return nil, err
	}
	if err := r.lookAgain(ctx, found, func(o *Open) error { return open.Add(*o) }); err != nil {
		return nil, err
	}
	w := &resyncing{Resyncer: r, open: open, result: Resynced{Counts: found.Counts, Kept: found.Counts.Kept,
		Foreign: found.Counts.Foreign, Unproven: found.Counts.Unproven}}
	n := cmp.Or(r.Batch, checkedAtOnce)
	if err := found.Candidates(n, func(batch []Candidate) error { return w.settle(ctx, batch) }); err != nil {
		return nil, fmt.Errorf("settle: %w", err)
	}
	if err := found.unownedCells(n, func(cells []Open) error { return w.leaveUnowned(ctx, cells) }); err != nil {
		return nil, fmt.Errorf("settle cells: %w", err)
	}
	if err := open.Flush(); err != nil {
		return nil, err
	}
	w.result.Equal = w.result.Counts.Items - w.notEqual
	w.result.Open, w.result.OpenCount, w.result.OpenFile = open.First(), open.Count(), open.Path()
	return &w.result, nil
}

// resyncing is one Run of a Resyncer.
type resyncing struct {
	*Resyncer
	open     *openList
	result   Resynced
	notEqual int64 // items of the source
}

// leaveUnowned lists the cells whose owner cannot be determined, and settles the items that own one
// of them by now.
func (w *resyncing) leaveUnowned(ctx context.Context, some []Open) error {
	cells, owned, err := w.settleCells(ctx, some)
	if err != nil {
		return err
	}
	if err := w.settle(ctx, owned); err != nil {
		return err
	}
	for i := range cells {
		switch cells[i].Kind {
		case Foreign:
			w.result.Foreign++
		case Unowned:
			w.result.Unowned++
		default:
			w.result.Unproven++
		}
		if err := w.open.Add(cells[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w *resyncing) settle(ctx context.Context, batch []Candidate) error {
	w.result.Settled += int64(len(batch))
	todo, batch := w.takeMissing(batch)
	verdicts, err := w.settleAll(ctx, batch)
	if err != nil {
		return err
	}
	var busy, bare []Verdict
	for _, v := range verdicts {
		if len(v.Bare) > 0 {
			v.Rows = v.Bare
			bare = append(bare, v)
		}
		switch {
		case v.Status == Different:
			todo = append(todo, v)
			w.result.Different++
		case v.Busy && w.Repair != nil:
			busy = append(busy, v)
		default:
			if err := w.conclude(&v); err != nil {
				return err
			}
		}
	}
	w.progress()
	if err := w.resyncBusy(ctx, busy); err != nil {
		return err
	}
	if err := w.leaveBare(ctx, bare); err != nil {
		return err
	}
	for try := 0; len(todo) > 0 && w.Repair != nil && try < repairTries; try++ {
		if try > 0 {
			if err := w.pause(ctx, time.Second<<try); err != nil {
				return err
			}
		}
		if todo, err = w.repair(ctx, todo); err != nil {
			return err
		}
		w.progress()
	}
	for i := range todo {
		if err := w.leave(&todo[i], Open{Why: "it differs"}); err != nil {
			return err
		}
	}
	w.progress()
	return nil
}

// takeMissing returns the candidates of which nothing but rows is missing, as different, and the
// others. They are repaired without being settled before, which would read each of them four times:
// where a row is missing because of a loss, nearly all are, and an item that was removed since is
// left alone by its repair. All are settled afterwards.
func (w *resyncing) takeMissing(batch []Candidate) (missing []Verdict, rest []Candidate) {
	for _, c := range batch {
		if w.Repair == nil || len(c.Kinds) != 1 || c.Kinds[0] != MissingRow {
			rest = append(rest, c)
			continue
		}
		missing = append(missing, Verdict{Table: c.Table, Key: c.Key, Status: Different, Kinds: c.Kinds, Rows: c.Rows})
	}
	w.result.Different += int64(len(missing))
	return missing, rest
}

func (w *resyncing) settleAll(ctx context.Context, batch []Candidate) ([]Verdict, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	return w.Decide(ctx, batch)
}

func (w *resyncing) progress() {
	if w.Progress != nil {
		w.Progress(w.result)
	}
}

// resyncBusy resyncs items that change so often that no settling reads one of them twice alike.
// That makes their rows true: a row that the resync writes holds the item as it was read; in a row
// with a later version, the stream has replaced all of the item's cells since.
func (w *resyncing) resyncBusy(ctx context.Context, busy []Verdict) error {
	if len(busy) == 0 {
		return nil
	}
	done, err := w.askRepair(ctx, busy)
	if err != nil {
		return err
	}
	for i := range done {
		w.result.Written, w.result.Left = w.result.Written+int64(done[i].Written), w.result.Left+int64(done[i].Left)
		if !done[i].Lettered {
			w.result.Busy++
			continue
		}
		w.result.Different, w.result.Letters = w.result.Different+1, w.result.Letters+1
		if err := w.leave(&busy[i], Open{Why: done[i].Why}); err != nil {
			return err
		}
	}
	return nil
}

// leaveBare has the guards of expired items collected, where a reader finds nothing of the item in
// its rows.
func (w *resyncing) leaveBare(ctx context.Context, bare []Verdict) error {
	if len(bare) == 0 || w.Repair == nil {
		return nil
	}
	done, err := w.askRepair(ctx, bare)
	for i := range done {
		w.result.Left += int64(done[i].Left)
	}
	return err
}

// askRepair has items resynced.
func (w *resyncing) askRepair(ctx context.Context, items []Verdict) ([]Repaired, error) {
	repairs := make([]Repair, len(items))
	for i := range items {
		repairs[i] = Repair{items[i].Table, items[i].Key, items[i].Rows, items[i].Future}
	}
	done, err := w.Repair(ctx, repairs)
	if err != nil {
		return nil, fmt.Errorf("repair: %w", err)
	}
	if len(done) != len(items) {
		return nil, fmt.Errorf("repair: %d answers for %d items", len(done), len(items))
	}
	return done, nil
}

// conclude counts an item that does not need a repair, or cannot have one.
func (w *resyncing) conclude(v *Verdict) error {
	switch v.Status {
	case Equal, Different:
		return nil
	case EqualByLog:
		w.result.ByLog++
		return nil
	case Kept:
		w.result.Kept += int64(v.Kept)
		return nil
	case Refused:
		w.result.Refused++
	case Unproven:
		w.result.Unproven++
	}
	return w.leave(v, Open{Why: v.Why})
}

// leave lists an item that is not proven equal.
func (w *resyncing) leave(v *Verdict, o Open) error {
	if !v.Absent { // else only the target has it
		w.notEqual++
	}
	o.Table, o.Key, o.Kind = w.Tables[v.Table].Program.Table().Source, v.Key, Refusal
	if v.Status != Refused && len(v.Kinds) > 0 {
		o.Kind = v.Kinds[0]
	}
	if len(v.Rows) > 0 {
		o.Row = v.Rows[0]
	}
	return w.open.Add(o)
}

// repair has items repaired and settles them again. It returns those that still differ. A row that
// holds a newer write than the repair may be right, since the stream has written it: it is settled
// too, or an item that is changed every half a minute would be hot for ever.
func (w *resyncing) repair(ctx context.Context, todo []Verdict) ([]Verdict, error) {
	done, err := w.askRepair(ctx, todo)
	if err != nil {
		return nil, err
	}
	var again, hot []Candidate
	var until []change.Millis // of hot
	for i := range done {
		w.result.Written, w.result.Left = w.result.Written+int64(done[i].Written), w.result.Left+int64(done[i].Left)
		v := &todo[i]
		c := Candidate{Table: v.Table, Key: v.Key, Rows: v.Rows, Kinds: v.Kinds}
		switch {
		case done[i].Lettered:
			w.result.Letters++
			if err := w.leave(v, Open{Why: done[i].Why}); err != nil {
				return nil, err
			}
		case done[i].Hot > 0:
			hot, until = append(hot, c), append(until, done[i].Hot)
		default:
			again = append(again, c)
		}
	}
	if err := w.settleHot(ctx, hot, until); err != nil {
		return nil, err
	}
	return w.settleAgain(ctx, again)
}

// settleHot settles items that have newer writes in their rows than their repair, and lists the
// items that still differ at the time until.
func (w *resyncing) settleHot(ctx context.Context, hot []Candidate, until []change.Millis) error {
	differ, err := w.settleAgain(ctx, hot)
	if err != nil {
		return err
	}
	for i := range differ {
		at := slices.IndexFunc(hot, func(c Candidate) bool {
			return c.Table == differ[i].Table && c.Key == differ[i].Key
		})
		w.result.Hot++
		if err := w.leave(&differ[i], Open{Why: "a newer write keeps the difference", Until: until[at]}); err != nil {
			return err
		}
	}
	return nil
}

// settleAgain settles items that were repaired, and returns those that still differ.
func (w *resyncing) settleAgain(ctx context.Context, again []Candidate) ([]Verdict, error) {
	verdicts, err := w.settleAll(ctx, again)
	if err != nil {
		return nil, err
	}
	for i := range verdicts {
		switch verdicts[i].Status {
		case Equal, EqualByLog, Kept:
			w.result.Repaired++
		case Refused, Unproven:
			if verdicts[i].Busy { // it was resynced just now
				w.result.Repaired++
				continue
			}
			w.result.Different-- // it is counted by what it is now
		case Different:
		}
		if err := w.conclude(&verdicts[i]); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(verdicts, func(v Verdict) bool { return v.Status != Different }), nil
}
