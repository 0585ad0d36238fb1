package verify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source"
)

// Settler decides whether items differ while both sides are written to.
type Settler struct {
	Tables []Table
	Target Target

	// ReadItems reads items of a table strongly, by their canonical keys.
	ReadItems func(ctx context.Context, table string, keys [][]byte) (*source.ItemBatch, error)
	// Prove blocks until the target has every change up to t, by the service's clock.
	Prove func(ctx context.Context, t change.Millis) error
	// Logged calls f with the changes of items of a table, in their order, that its log has stored
	// since a time of the service's clock, and with the index of the item's canonical key. A change
	// is valid until f returns. ErrTrimmed where the log does not reach back so far. nil: items
	// that change in each of their settlings are unproven.
	Logged func(ctx context.Context, table string, since change.Millis, keys [][]byte,
		f func(key int, c *change.Change) error) error

	Now   func() change.Millis                             // the service's clock
	Lead  change.Millis                                    // how far above it versions may be
	Pause func(ctx context.Context, d time.Duration) error // default failure.Pause
	// FirstPause is the pause before items that changed are settled again, which doubles; default
	// half a second.
	FirstPause time.Duration

	Cells  int // how many differing cells a Verdict lists; 0: none
	Values int // how many bytes of each of their values; 0: none
}

// Status is what settling found about an item.
type Status string

// The statuses. Only Different can be repaired.
const (
	Equal     Status = "equal"     // the target had the item as it was at a moment after the settling began
	Different Status = "different" // two settlings in a row saw the same difference
	// EqualByLog is an item that changed each time, and matched the log in its rows.
	EqualByLog Status = "equal by the log"
	Unproven   Status = "unproven" // it changed each time
	Kept       Status = "kept"     // there is no such item, and its cells may remain
	Refused    Status = "refused"  // the mapping does not take the item
)

// Verdict is what settling found about an item.
type Verdict struct {
	Table  int
	Key    string
	Status Status
	Why    string
	Rule   string         // with status Refused: the rule that takes the item, as "rule item"; "" where none does
	Kinds  []Kind         // of the differences
	Rows   [][]byte       // in which they are, for the repair; those of the projection may be among them
	Kept   int            // with status Kept or EqualByLog: cells that remain without the item
	Bare   [][]byte       // with status Kept: rows in which a reader sees nothing of it; a resync makes tombstones there
	Future change.Version // the guard in the future, where there is one: only a write that expects it replaces it
	Busy   bool           // with status Unproven: the only reason is that the item changed during its settlings
	Absent bool           // there is no such item
	// Cells are the first Settler.Cells differing cells.
	Cells []CellDifference
}

const (
	settlings  = 6 // of one item, at most
	keysPerGet = 100
	firstPause = 500 * time.Millisecond
)

// proofMargin is how long after the Date of a reply a read may have happened: the Date is cut to
// seconds, and the servers' clocks differ.
const proofMargin = change.Millis(5000)

// Settle decides about items: it reads them strongly, waits until the target has every change up to
// that reading, reads the target's rows, and reads the items again. An item that is the same in
// both readings is decided by its rows. It is Different only when two settlings in a row see the
// same: the rows of an item that changes from A to B and back to A between the two readings may
// show B, although nothing is wrong. All others are settled again after a pause.
//
// An item that changes in each of its settlings is equal only by the log, else unproven.
//
// All candidates share the readings and proofs, so pass some 1,000 at once: the items of 100 are in
// memory at a time. Verdicts are in the order of the candidates.
func (s *Settler) Settle(ctx context.Context, candidates []Candidate) ([]Verdict, error) {
	open := make([]*settling, len(candidates))
	for i := range candidates {
		open[i] = &settling{Candidate: &candidates[i], at: i}
	}
	out := make([]Verdict, len(candidates))
	judge := newJudge(s)
	before, err := s.read(ctx, judge, open, true)
	if err != nil {
		return nil, err
	}
	began := before
	for n, pause := 1, cmp.Or(s.FirstPause, firstPause); ; n++ {
		if err := s.once(ctx, judge, open, before); err != nil {
			return nil, err
		}
		changing := false
		open = slices.DeleteFunc(open, func(x *settling) bool {
			changing = changing || x.changed
			if x.done {
				out[x.at] = x.verdict
			}
			return x.done
		})
		if len(open) == 0 || n == settlings {
			break
		}
		if changing {
			if err := s.pause(ctx, pause); err != nil {
				return nil, err
			}
			pause *= 2
		}
		if before, err = s.read(ctx, judge, open, true); err != nil {
			return nil, err
		}
	}
	giveUp(open, out)
	if err := s.settleByLog(ctx, judge, open, window{began - proofMargin, before}, out); err != nil {
		return nil, fmt.Errorf("compare with the log: %w", err)
	}
	return out, nil
}

// Look reads items, their rows, and the items again, without a proof that the target has every
// change. What Verdict.Certain reports of an item is so, whatever is on its way to its rows: the item
// is the same in both readings. An item that changed meanwhile is Unproven, and one that differs may
// be equal soon: about these Settle decides. Verdicts are in the order of the candidates.
func (s *Settler) Look(ctx context.Context, candidates []Candidate) ([]Verdict, error) {
	all := make([]*settling, len(candidates))
	for i := range candidates {
		all[i] = &settling{Candidate: &candidates[i], at: i}
	}
	judge := newJudge(s)
	if _, err := s.read(ctx, judge, all, true); err != nil {
		return nil, err
	}
	if err := judge.lookAtRows(ctx, all); err != nil {
		return nil, err
	}
	if _, err := s.read(ctx, judge, all, false); err != nil {
		return nil, err
	}
	out := make([]Verdict, len(candidates))
	for i, x := range all {
		if out[i] = judge.verdict(x); x.changed {
			out[i] = x.busy()
		}
	}
	return out, nil
}

// Certain reports whether a look without a proof decides about the item.
func (v *Verdict) Certain() bool {
	return v.Status == Equal || v.Status == Kept || v.Status == Refused
}

// Decide is Settle for items of which most are equal by now: only those that a look does not decide
// wait for a proof. Verdicts are in the order of the candidates.
func (s *Settler) Decide(ctx context.Context, candidates []Candidate) ([]Verdict, error) {
	out, err := s.Look(ctx, candidates)
	if err != nil {
		return nil, err
	}
	var open []Candidate
	var places []int
	for i := range out {
		if !out[i].Certain() {
			open, places = append(open, candidates[i]), append(places, i)
		}
	}
	if len(open) == 0 {
		return out, nil
	}
	settled, err := s.Settle(ctx, open)
	if err != nil {
		return nil, err
	}
	for i := range settled {
		out[places[i]] = settled[i]
	}
	return out, nil
}

// settling is one item on its way to a verdict.
type settling struct {
	*Candidate
	at int // in the result

	content [sha256.Size]byte // of the item, in the reading before the rows
	want    projected
	seen    sighting          // what the rows showed
	last    [sha256.Size]byte // fingerprint of the settling before; zero after a change
	changed bool
	done    bool
	verdict Verdict
}

// once settles each item once. The items were read before.
func (s *Settler) once(ctx context.Context, judge *judge, open []*settling, before change.Millis) error {
	if err := s.Prove(ctx, before+proofMargin); err != nil {
		return fmt.Errorf("prove what is applied: %w", err)
	}
	if err := judge.lookAtRows(ctx, open); err != nil {
		return err
	}
	if _, err := s.read(ctx, judge, open, false); err != nil {
		return err
	}
	for _, x := range open {
		if x.changed {
			x.last = [sha256.Size]byte{}
			continue
		}
		v := judge.verdict(x)
		print := x.seen.fingerprint(x.content)
		x.done = v.Status != Different || x.last == print
		x.last, x.verdict = print, v
	}
	return nil
}

// read reads the items strongly, 100 at once, and returns the time of the last reply. The first
// reading stores what the target should hold of them, the second one whether they have changed
// since.
func (s *Settler) read(ctx context.Context, judge *judge, open []*settling, first bool) (change.Millis, error) {
	byTable := map[int][]*settling{}
	for _, x := range open {
		byTable[x.Table] = append(byTable[x.Table], x)
	}
	answered := change.Millis(0)
	for table, list := range byTable {
		for some := range slices.Chunk(list, keysPerGet) {
			keys := make([][]byte, len(some))
			for i, x := range some {
				keys[i] = []byte(x.Key)
			}
			name := s.Tables[table].Program.Table().Source
			batch, err := s.ReadItems(ctx, name, keys)
			if err != nil {
				return 0, fmt.Errorf("read items of %s: %w", name, err)
			}
			answered = max(answered, batch.Answered)
			for i, x := range some {
				if err := judge.take(x, batch.Items[i], first); err != nil {
					return 0, err
				}
			}
		}
	}
	return answered, nil
}

func (s *Settler) pause(ctx context.Context, d time.Duration) error {
	if s.Pause != nil {
		return s.Pause(ctx, d)
	}
	return failure.Pause(ctx, d)
}

// giveUp decides about the items that changed each time. A Resyncer resyncs them: that makes their
// rows true.
func giveUp(open []*settling, out []Verdict) {
	for _, x := range open {
		out[x.at] = x.busy()
	}
}

// busy returns the verdict on an item that changed while it was looked at.
func (x *settling) busy() Verdict {
	return Verdict{Table: x.Table, Key: x.Key, Status: Unproven, Why: busyItem,
		Kinds: x.Kinds, Rows: x.Rows, Busy: x.seen.future == 0, Absent: x.want.absent}
}
