package bigtable

import (
	"context"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/transform"
)

// Resynced is what became of the rows of a resync.
type Resynced struct {
	Written int
	Skipped int // they hold the item at the write's version or a later one
	// Again counts the rows of Skipped that hold it at exactly that version: an attempt that was
	// not answered may have written them.
	Again int
	// Hot is the highest version at which a skipped row holds the item, or held it until it left:
	// the caller may resync the item again once it can do so above this version. 0 without skipped
	// rows.
	Hot change.Version
}

// StaleError means that the content of a write is too old to be sent, see Resync. It is of class
// Canceled: whether an earlier attempt arrived is not known.
type StaleError struct{ Err error }

func (e *StaleError) Error() string { return "not sent: " + e.Err.Error() }
func (e *StaleError) Unwrap() error { return e.Err }

// Resync is Apply for content that was read from the source table rather than from its stream. It
// returns the outcome for the rows. fresh is called before every attempt of every call, repeated
// ones included: when it returns an error, nothing more is sent and Resync returns a *StaleError
// with it. So a process that was frozen does not write what it read before. fresh may be nil.
//
// A skipped row needs no second try at the version that it holds. It holds what the stream wrote
// later, and a write conditional on that version would replace it by older content, for good.
func (c *Client) Resync(ctx context.Context, target string, w *transform.Write, fresh func() error) (Resynced, error) {
	var done Resynced
	var skipped []transform.RowRead
	t := c.table(target)
	d := delivery{t: t, of: ofCopy, w: w, fresh: fresh, done: func(row *transform.Row, matched bool) {
		if !matched {
			done.Written++
			return
		}
		done.Skipped++
		skipped = append(skipped, transform.RowRead{Key: row.Key, Class: row.Class})
	}}
	if err := t.counted(d.rows(ctx)); err != nil {
		return done, err
	}
	if len(skipped) == 0 {
		return done, nil
	}
	held, err := c.HeldRows(ctx, target, w.Item, skipped)
	if err != nil {
		return done, fmt.Errorf("read guards of skipped rows: %w", err)
	}
	for i := range held {
		guard := max(held[i].Live, held[i].Dead)
		if guard == w.Version {
			done.Again++
		}
		done.Hot = max(done.Hot, guard)
	}
	return done, nil
}

// Replacement is a guard that a broken clock has put into the future, and what is to replace it.
type Replacement struct {
	Write  *transform.Write
	Row    int            // index in Write.Rows
	Broken change.Version // of the row's newest guard of the item
	Lead   time.Duration  // how far versions may run ahead of time: the version reservation
	Fresh  func() error   // as in Resync
}

// ReplaceGuard writes a row if its newest guard of the item has exactly the version Broken, and
// replaces the guard too. It reports whether it did; where the reply of an earlier attempt was lost
// it may report false for a row that it has written.
//
// It refuses guards that are not beyond now + Lead. Such a guard was written by a change, and
// protects newer content than the write can have.
func (c *Client) ReplaceGuard(ctx context.Context, target string, x Replacement) (replaced bool, err error) {
	t := c.table(target)
	families, err := (&delivery{t: t, w: x.Write}).prepare(ctx)
	if err != nil {
		return false, err
	}
	if now := c.opt.Now().Add(x.Lead).UnixMilli(); int64(x.Broken) <= now || int64(x.Write.Version) > now {
		return false, fmt.Errorf("replace guard: version %d may have been given to a change", x.Broken)
	}
	r := requests.Get().(*request)
	defer r.free()
	r.seal, r.fresh, r.of = c.opt.Seal, x.Fresh, ofCopy
	if err := r.encodeReplacement(x.Write, &x.Write.Rows[x.Row], families, x.Broken); err != nil {
		return false, fmt.Errorf("replace guard: %w", err)
	}
	if err := t.deliver(ctx, r, x.Write.Version); err != nil {
		return false, t.counted(fmt.Errorf("replace guard: %w", asRejected(err)))
	}
	if r.matched {
		t.metrics.outcomes[failure.None].Inc()
	} else {
		t.metrics.skipped.Inc()
	}
	return r.matched, nil
}
