package cutover

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize/english"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

// Guards is what a target holds of guards.
type Guards struct {
	Rows    int64 `json:"rows"`    // with guards of the table
	Cells   int64 `json:"cells"`   // of them
	Others  int64 `json:"others"`  // cells of guards of other tables, which stay
	Unknown int64 `json:"unknown"` // cells that no secret of the configuration opens, or no build has written; they stay
}

const (
	deletedAtOnce = 64              // rows whose guards are deleted at once
	reportEvery   = 5 * time.Second // how often the progress is told
)

// sweep reads the guards of the whole target, and deletes the guards of the table if remove is set.
// It reads and deletes only guards, each at exactly its time, so the application's cells are
// untouched. A repeated sweep does not find what an interrupted one has deleted.
func (r *Retirement) sweep(ctx context.Context, remove bool) (*Guards, error) {
	g, told := &Guards{}, time.Now()
	var deleted atomic.Int64
	work, inWork := errgroup.WithContext(ctx)
	work.SetLimit(deletedAtOnce)
	views := []bigtable.View{{Family: transform.LiveFamily}, {Family: transform.DeadFamily}}
	err := r.sink.Rows(inWork, r.Kept.Target, "", "", views, func(row *bigtable.Row) error {
		ours := r.ours(row, g)
		if time.Since(told) > reportEvery {
			told = time.Now()
			r.Say("Guards of %s in %s: %d found, %d deleted.", r.Table, r.Kept.Target, g.Cells, deleted.Load())
		}
		if len(ours) == 0 || !remove {
			return nil
		}
		key := bytes.Clone(row.Key)
		work.Go(func() error {
			if err := r.sink.DeleteCells(inWork, r.Kept.Target, key, ours); err != nil {
				return err
			}
			deleted.Add(int64(len(ours)))
			return nil
		})
		return nil
	})
	if failed := work.Wait(); failed != nil {
		err = failed
	}
	switch {
	case bigtable.Classify(err) == failure.Missing: // the target is gone, and its guards with it
	case err != nil:
		return nil, bigtable.Explain(fmt.Errorf("sweep the guards of %s: %w", r.Kept.Target, err))
	}
	if remove {
		r.Say("Deleted the guards of %s in %s: %s in %s; %s.", r.Table, r.Kept.Target,
			english.Plural(int(deleted.Load()), "cell", ""), english.Plural(int(g.Rows), "row", ""),
			english.Plural(int(g.Others+g.Unknown), "of others stays", "of others stay"))
	}
	return g, nil
}

// ours returns the guards of the table in a row, and counts all.
func (r *Retirement) ours(row *bigtable.Row, g *Guards) (ours []bigtable.Cell) {
	for i := range row.Cells {
		c := &row.Cells[i]
		guard, err := r.sink.GuardOf(c.Value, row.Key, c.Qualifier)
		switch {
		case err != nil || guard.Unknown:
			g.Unknown++
		case guard.Pipeline != r.cfg.Pipeline || guard.Table != r.Table:
			g.Others++
		default:
			own := *c
			own.Qualifier = slices.Clone(c.Qualifier)
			ours = append(ours, own)
		}
	}
	if len(ours) > 0 {
		g.Rows, g.Cells = g.Rows+1, g.Cells+int64(len(ours))
	}
	return ours
}
