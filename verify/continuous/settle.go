package continuous

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

const (
	settledAtOnce = 1000
	againAtOnce   = 100 // known differences that are settled again with them
	maxOpen       = 10_000
	shownCells    = 10  // of an item in the list of differences
	shownValues   = 256 // bytes of each of their values
)

// openItem is an item that was settled and is not equal.
type openItem struct {
	verdict verify.Verdict
	due     time.Time // when it is settled again
}

// candidate notes an item that may differ.
func (v *Verifier) candidate(kind verify.Kind, of guarded.Item, row []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.pending[of.Key]
	if c == nil {
		c = &verify.Candidate{Key: of.Key}
		v.pending[of.Key] = c
	}
	addTo(c, kind, row)
}

func addTo(c *verify.Candidate, kind verify.Kind, row []byte) {
	if row != nil && !slices.ContainsFunc(c.Rows, func(r []byte) bool { return bytes.Equal(r, row) }) {
		c.Rows = append(c.Rows, bytes.Clone(row))
	}
	if kind != "" && !slices.Contains(c.Kinds, kind) {
		c.Kinds = append(c.Kinds, kind)
	}
}

// settleAll settles what may differ, and what was found to differ some time ago.
func (v *Verifier) settleAll(ctx context.Context) error {
	for {
		var batch []verify.Candidate
		if v.o.Hold() == "" {
			batch = v.batch()
		}
		if len(batch) == 0 {
			if err := failure.Pause(ctx, lookAgain); err != nil {
				return err
			}
			continue
		}
		verdicts, err := v.settle.Settle(ctx, batch)
		if err == nil && v.o.Hold() == "" {
			err = errors.Join(v.note(verdicts), v.collect(ctx, verdicts))
		} else {
			v.putBack(batch)
		}
		if err != nil {
			return fmt.Errorf("settle: %w", err)
		}
	}
}

// prove waits for a proof, and then reads how far versions may be ahead by now: a burst of changes
// raises that.
func (v *Verifier) prove(ctx context.Context, t change.Millis) error {
	err := v.o.Prove(ctx, t)
	v.settle.Lead = v.o.Lead()
	return err
}

// batch takes candidates to be settled.
func (v *Verifier) batch() (batch []verify.Candidate) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for key, c := range v.pending {
		if len(batch) == settledAtOnce {
			break
		}
		if known := v.open[key]; known != nil {
			for _, row := range known.verdict.Rows {
				addTo(c, "", row)
			}
		}
		batch = append(batch, *c)
		delete(v.pending, key)
	}
	v.settling = map[string]*verify.Candidate{}
	for i := range batch {
		v.settling[batch[i].Key] = &batch[i]
	}
	now, again := time.Now(), 0
	for key, x := range v.open {
		if again == againAtOnce {
			break
		}
		if now.Before(x.due) {
			continue
		}
		again++
		x.due = now.Add(v.o.Again) // so that it is not taken twice
		batch = append(batch, verify.Candidate{Key: key, Rows: x.verdict.Rows, Kinds: x.verdict.Kinds})
	}
	return batch
}

// putBack returns candidates that were not settled.
func (v *Verifier) putBack(batch []verify.Candidate) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.settling = nil
	for i := range batch {
		v.pending[batch[i].Key] = &batch[i]
	}
}

// note stores verdicts.
func (v *Verifier) note(verdicts []verify.Verdict) error {
	changed := false
	v.mu.Lock()
	v.settling = nil
	for i := range verdicts {
		changed = v.noteOne(&verdicts[i]) || changed
	}
	v.mu.Unlock()
	if !changed {
		return nil
	}
	return v.o.Changed()
}

// collect has the guards of expired items collected, where a reader finds nothing of the item in
// its rows.
func (v *Verifier) collect(ctx context.Context, verdicts []verify.Verdict) error {
	bare := slices.DeleteFunc(slices.Clone(verdicts), func(x verify.Verdict) bool { return len(x.Bare) == 0 })
	if len(bare) == 0 || v.o.Collect == nil {
		return nil
	}
	if err := v.o.Collect(ctx, bare); err != nil {
		return fmt.Errorf("collect guards of expired items: %w", err)
	}
	return nil
}

// noteOne stores a verdict, and reports whether what is known to differ has changed.
func (v *Verifier) noteOne(x *verify.Verdict) bool {
	known := v.open[x.Key]
	switch x.Status {
	case verify.Equal, verify.EqualByLog, verify.Kept:
		delete(v.open, x.Key)
		return known != nil
	case verify.Different:
		v.last = v.o.Now()
	case verify.Unproven, verify.Refused:
	}
	if known == nil && len(v.open) >= maxOpen {
		v.more++
		return true
	}
	v.open[x.Key] = &openItem{verdict: *x, due: time.Now().Add(v.o.Again)}
	return known == nil || known.verdict.Status != x.Status || !slices.Equal(known.verdict.Kinds, x.Kinds)
}
