package bigtable

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/status"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/transform"
)

// Apply makes a write durable in the target table and returns nil then: each of its rows is
// written, or holds this version or a later one already. It blocks while the service is
// unavailable, until ctx ends.
//
// A *RejectedError means that Bigtable will never take the write, which becomes a dead letter.
// Classify classifies the other errors: Denied, Missing and Fatal writes may succeed once an
// operator has acted; Canceled means that ctx ended and that the outcome of the last row is
// unknown. After any error the whole write may be applied again.
//
// Apply does not modify or keep w.
func (c *Client) Apply(ctx context.Context, target string, w *transform.Write) error {
	return c.ApplyWhile(ctx, target, w, nil)
}

// ApplyWhile is Apply for a process that may have lost the right to write: fresh is asked before
// every attempt of every call, as in Resync. It may block.
func (c *Client) ApplyWhile(ctx context.Context, target string, w *transform.Write, fresh func() error) error {
	return c.applyOf(ctx, ofStream, target, w, fresh)
}

// ApplyInCopy is ApplyWhile for a write that is part of a copy or resync.
func (c *Client) ApplyInCopy(ctx context.Context, target string, w *transform.Write, fresh func() error) error {
	return c.applyOf(ctx, ofCopy, target, w, fresh)
}

// CopyItem is ApplyInCopy that counts the rows of the write: those that were written, and those
// that held the item at this version or later. After an error it has counted the rows before it.
func (c *Client) CopyItem(
	ctx context.Context, target string, w *transform.Write, fresh func() error,
) (written, skipped int, err error) {
	t := c.table(target)
	d := delivery{t: t, of: ofCopy, w: w, fresh: fresh, done: func(_ *transform.Row, matched bool) {
		if matched {
			skipped++
		} else {
			written++
		}
	}}
	err = t.counted(d.rows(ctx))
	return written, skipped, err
}

func (c *Client) applyOf(ctx context.Context, of traffic, target string, w *transform.Write, fresh func() error) error {
	t := c.table(target)
	d := delivery{t: t, of: of, w: w, fresh: fresh}
	return t.counted(d.rows(ctx))
}

// counted counts an error that rejects a write, and returns it.
func (t *table) counted(err error) error {
	var rejected *RejectedError
	if errors.As(err, &rejected) {
		t.metrics.rejected.WithLabelValues(rejected.Code).Inc()
	}
	return err
}

// Declare sets the data families of a target table, over all mappings that write to it. Apply
// empties these families in rows that it replaces but that also contain a history family, and in
// shared rows that a removal deletes. Without a declaration Apply requests the table's families
// from the service, once.
func (c *Client) Declare(target string, families []string) {
	names := slices.Clone(families)
	c.table(target).families.Store(&names)
}

// delivery is one write on its way.
type delivery struct {
	t     *table
	of    traffic
	w     *transform.Write
	fresh func() error                           // see Resync; nil: not asked
	done  func(row *transform.Row, skipped bool) // called for each row that was delivered; may be nil
}

// prepare checks the write, and returns the families to empty.
func (d *delivery) prepare(ctx context.Context) ([]string, error) {
	if d.t.client.opt.Now == nil {
		return nil, errors.New("apply: Options.Now is not set, so the tombstone gate cannot work")
	}
	if r := checkWrite(d.w); r != nil {
		return nil, fmt.Errorf("check write: %w", r)
	}
	if d.w.Item.Sealed && d.t.client.opt.Seal == nil {
		return nil, errNoSecret
	}
	return d.t.familiesToEmpty(ctx, d.w)
}

// rows delivers the rows of the write.
func (d *delivery) rows(ctx context.Context) error {
	families, err := d.prepare(ctx)
	if err != nil {
		return err
	}
	t, w := d.t, d.w
	r := requests.Get().(*request)
	defer r.free()
	r.seal, r.fresh, r.of = t.client.opt.Seal, d.fresh, d.of
	for row := range inRowOrder(w.Rows) {
		r.encode(w, row, families)
		if err := t.deliver(ctx, r, w.Version); err != nil {
			return fmt.Errorf("write row: %w", asRejected(err))
		}
		if r.matched {
			t.metrics.skipped.Inc()
		} else {
			t.metrics.outcomes[failure.None].Inc()
		}
		if d.done != nil {
			d.done(row, r.matched)
		}
	}
	// Rule 1: A mark never passes a change that is not durable. Only here are all rows of the write
	// durable.
	return nil
}

// familiesToEmpty returns the families to empty in rows that are not deleted as a whole, or nil
// without such rows.
func (t *table) familiesToEmpty(ctx context.Context, w *transform.Write) ([]string, error) {
	for i := range w.Rows {
		if w.Rows[i].Exclusive && !wholeRow(&w.Rows[i]) {
			return t.dataFamilies(ctx)
		}
	}
	return nil, nil
}

// dataFamilies returns the declared families, or else all families of the table except the guard
// families.
func (t *table) dataFamilies(ctx context.Context) ([]string, error) {
	if declared := t.families.Load(); declared != nil {
		return *declared, nil
	}
	admin, err := t.client.adminClient(ctx)
	if err != nil {
		return nil, fmt.Errorf("list families: %w", err)
	}
	info, err := admin.TableInfo(ctx, t.short)
	if err != nil {
		return nil, fmt.Errorf("list families: %w", orInterrupted(ctx, err))
	}
	names := slices.DeleteFunc(info.Families, func(name string) bool {
		return name == transform.LiveFamily || name == transform.DeadFamily
	})
	t.families.CompareAndSwap(nil, &names)
	return names, nil
}

// asRejected turns an error of traffic Rejected into a *RejectedError.
func asRejected(err error) error {
	var rejected *RejectedError
	if Classify(err) != failure.Rejected || errors.As(err, &rejected) {
		return err
	}
	return &RejectedError{Code: CodeService, Reason: status.Convert(err).Message()}
}
