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

// Apply makes a write durable in the target table and returns nil then: every row of it is written, or was
// found to hold this version or a later one. It blocks while the service is away, until ctx ends.
//
// A *RejectedError will never be taken and makes a dead letter. Classify sorts the rest: Denied, Missing and Fatal
// are worth trying again once somebody has acted; Canceled means that ctx ended and that the last row's
// outcome is unknown. After any error the same write may be applied again, whole.
//
// w is only read, and not kept.
func (c *Client) Apply(ctx context.Context, target string, w *transform.Write) error {
	t := c.table(target)
	err := t.apply(ctx, w)
	var rejected *RejectedError
	if errors.As(err, &rejected) {
		t.metrics.rejected.WithLabelValues(rejected.Code).Inc()
	}
	return err
}

// Declare names the data families of a target table, of all mappings that write to it. Rows that keep the
// history of some families have the others emptied, and so do removals that take a shared row along; where
// nothing was declared, the table is asked once for its families.
func (c *Client) Declare(target string, families []string) {
	names := slices.Clone(families)
	c.table(target).families.Store(&names)
}

func (t *table) apply(ctx context.Context, w *transform.Write) error {
	if t.client.opt.Now == nil {
		return errors.New("apply: Options.Now is not set, so the tombstone gate cannot work")
	}
	if r := checkWrite(w); r != nil {
		return fmt.Errorf("check write: %w", r)
	}
	families, err := t.familiesToEmpty(ctx, w)
	if err != nil {
		return err
	}
	r := requests.Get().(*request)
	defer r.free()
	// Entered rows come first: a reader sees a moving item twice rather than not at all.
	for _, left := range [...]bool{false, true} {
		for i := range w.Rows {
			if w.Rows[i].Left != left {
				continue
			}
			r.encode(w, &w.Rows[i], families)
			if err := t.write(ctx, r, w.Version); err != nil {
				return fmt.Errorf("write row: %w", err)
			}
		}
	}
	// Rule 1: A mark never passes a change that is not durable. Only here is the whole write done.
	return nil
}

// familiesToEmpty returns the families to empty in rows that are not deleted as a whole; nil where there is none.
func (t *table) familiesToEmpty(ctx context.Context, w *transform.Write) ([]string, error) {
	for i := range w.Rows {
		if w.Rows[i].Exclusive && !wholeRow(&w.Rows[i]) {
			return t.dataFamilies(ctx)
		}
	}
	return nil, nil
}

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

// write sends one guarded row until it is answered.
func (t *table) write(ctx context.Context, r *request, version int64) error {
	if err := t.deliver(ctx, r, version); err != nil {
		return asRejected(err)
	}
	if r.matched {
		t.metrics.skipped.Inc()
	} else {
		t.metrics.outcomes[failure.None].Inc()
	}
	return nil
}

// asRejected makes a *RejectedError of what the service will never take.
func asRejected(err error) error {
	var rejected *RejectedError
	if Classify(err) != failure.Rejected || errors.As(err, &rejected) {
		return err
	}
	return &RejectedError{Code: CodeService, Reason: status.Convert(err).Message()}
}
