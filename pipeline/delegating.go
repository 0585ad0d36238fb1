package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/transform"
)

// unfit returns why workers cannot copy the table; "" where they can, or no copy is delegated. The
// mappings of other tables of the target may not be known yet: planOrder needs them.
func (t *table) unfit(s *checkpoint.State) transform.Unfit {
	if !s.WorkersMayWrite() {
		return ""
	}
	sharing, _ := t.sharing()
	return UnfitForWorkers(t.row.Program, sharing, s.Floor() == 0)
}

// checkWorkers refuses a first start whose copy is for workers that cannot make it.
func (t *table) checkWorkers(start *checkpoint.Start) error {
	if start.Backfill != checkpoint.FromExport || !t.Backfill.ByWorkers {
		return nil
	}
	sharing, err := t.sharing()
	if err != nil {
		return err
	}
	if why := UnfitForWorkers(t.row.Program, sharing, start.Floor == 0); why != "" {
		return &RefusedError{
			What: fmt.Sprintf("workers cannot copy %s: %s", t.Source, why.Why()),
			Hint: "remove by: workers from its backfill, and the replicator copies the export itself",
		}
	}
	return nil
}

// UnfitForWorkers returns why workers cannot copy a table that shares its target with others; ""
// where they can. first is set where no earlier life wrote rows of the table.
func UnfitForWorkers(own *transform.Program, sharing []*transform.Program, first bool) transform.Unfit {
	if why := own.Unfit(first); why != "" {
		return why
	}
	if slices.ContainsFunc(sharing, (*transform.Program).HasSecrets) {
		return transform.UnfitSecrets
	}
	return ""
}

// noteDelegated notes beside the table's row that its log holds an entry.
func (t *table) noteDelegated(ctx context.Context, w *queue.Writer, seq uint64) error {
	if n := w.Acked(); n == nil || n.Seq < seq {
		return fmt.Errorf("entry %d of the log is not acknowledged to this owner yet", seq)
	}
	if _, err := t.row.Note(ctx, w.Acked()); err != nil {
		return err
	}
	stored, err := t.bigtable.LoadLogNote(ctx, t.o.Name, t.Source)
	if err == nil && (stored == nil || stored.Seq < seq) { // whether the log is an older copy is not known yet
		err = fmt.Errorf("entry %d of the log is not noted beside the table's row yet", seq)
	}
	return err
}

// planOrder returns what an order for workers holds of the table and its target.
func (t *table) planOrder() (*delegation.Order, error) {
	sharing, err := t.sharing()
	if err != nil {
		return nil, fmt.Errorf("compile the other tables of the target: %w", err)
	}
	o := &delegation.Order{
		TableID: t.info.ID, Target: t.Target, Profile: t.bigtable.CopyProfileName(), Tombstones: t.bigtable.Tombstones(),
		Heartbeats: delegation.Heartbeats{Prefix: t.Heartbeat.Keys.Prefix, List: t.Heartbeat.Keys.List},
	}
	for _, p := range append([]*transform.Program{t.row.Program}, sharing...) {
		m, err := delegation.MappingOf(p)
		if err != nil {
			return nil, err
		}
		o.Mappings = append(o.Mappings, m)
	}
	slices.SortFunc(o.Mappings, func(a, b delegation.Mapping) int { return cmp.Compare(a.Table, b.Table) })
	return o, nil
}
