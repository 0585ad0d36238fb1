package preflight

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/staterow"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// Life is the new life of a table that a recovery begins, or the row of a table that it stores
// again.
type Life struct {
	Table string  `json:"table"`
	Why   string  `json:"why"` // the old log cannot go on
	Life  uint64  `json:"life"`
	Lead  float64 `json:"lead_s"` // how far versions are ahead of the clock at first
	Hours float64 `json:"red_hours"`
	Begun bool    `json:"begun"` // by an earlier recover: nothing is changed
	// Restores means that no new life begins: the row of the table is gone, and is stored again
	// from the log.
	Restores bool `json:"restores_row,omitempty"`

	plan  *staterow.Recovery
	reads string // what the resync reads

	archivedOnly bool
}

// PlanRecoveries returns the new lives of the tables that need one because of their logs; of one
// table if its name is not empty. The tables must be described and compiled.
func PlanRecoveries(
	ctx context.Context, cfg *config.Config, clients *clients.Clients, tables *catalog.Catalog, only string,
) (lives []*Life, err error) {
	q, err := openQueue(ctx, cfg, clients)
	if err != nil {
		return nil, err
	}
	for _, t := range tables.Tables {
		if only != "" && t.Source != only {
			continue
		}
		found, err := foundOf(ctx, cfg, clients, t, q)
		if err != nil {
			return nil, err
		}
		plan, err := staterow.PlanRecovery(found)
		if refused := (*pipeline.RefusedError)(nil); errors.As(err, &refused) {
			return nil, failure.With(failure.Unready, refused.Hint, fmt.Errorf("recover %s: %s", t.Source, refused.What))
		}
		if err != nil {
			return nil, fmt.Errorf("recover %s: %w", t.Source, err)
		}
		if plan == nil {
			continue
		}
		reads, hours := ResyncCost(&t.Info, t.Backfill)
		if plan.Restores {
			reads, hours = "", 0
		}
		lives = append(lives, &Life{
			Table: t.Source, Why: plan.Why, Life: plan.Life, Lead: plan.Lead.Seconds(), Hours: hours, Begun: plan.Begun,
			Restores: plan.Restores, plan: plan, reads: reads, archivedOnly: t.ArchivedOnly(),
		})
	}
	return lives, nil
}

// Asks reports whether any of the lives has not begun yet.
func Asks(lives []*Life) bool {
	return slices.ContainsFunc(lives, func(l *Life) bool { return !l.Begun })
}

// openQueue opens the logs; nil if the directory of the embedded ones is not there.
func openQueue(ctx context.Context, cfg *config.Config, clients *clients.Clients) (*queue.Queue, error) {
	if dir := cfg.Queue.Dir; dir != "" {
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
	}
	return clients.Queue(ctx)
}

// foundOf returns what a recovery of a table looks at.
func foundOf(
	ctx context.Context, cfg *config.Config, c *clients.Clients, t *catalog.Table, q *queue.Queue,
) (f staterow.Found, err error) {
	var sink *bigtable.Client
	if !t.ArchivedOnly() {
		if sink, err = c.Bigtable(ctx); err != nil {
			return f, err
		}
	}
	rows, err := c.Rows(ctx, &t.Table)
	if err != nil {
		return f, err
	}
	f = staterow.Found{
		Want: t.Identity(cfg.Pipeline, sink), Start: clients.Start(cfg), Date: change.MillisOf(c.Now()),
		Lead: time.Duration(cfg.Protocol.Lead),
	}
	if f.Row, err = loadRow(ctx, rows, cfg.Pipeline, t.Source); err != nil {
		return f, staterow.Explain(fmt.Errorf("load state of %s: %w", t.Source, err))
	}
	if q == nil {
		return f, nil
	}
	log, err := q.Log(ctx, t.Source)
	if errors.Is(err, queue.ErrNoLog) {
		return f, nil
	}
	if errors.Is(err, queue.ErrUnopened) {
		f.FoldErr = err // the owner sets it aside
		return f, nil
	}
	if errors.Is(err, queue.ErrVolume) {
		return f, failure.With(failure.Unready, "nothing was changed", fmt.Errorf("open log of %s: %w", t.Source, err))
	}
	if err != nil {
		return f, failure.With(failure.Unready, "see `replicator check`", fmt.Errorf("open log of %s: %w", t.Source, err))
	}
	f.Created = log.Created()
	f.Want.LogCreated = f.Created.UTC()
	if f.Log, f.FoldErr = log.Fold(ctx); errors.Is(f.FoldErr, queue.ErrVolume) { // Rule 13: the log may be whole
		return f, failure.With(failure.Unready, "nothing was changed", f.FoldErr)
	}
	if sink == nil {
		return f, nil
	}
	note, err := sink.LoadLogNote(ctx, cfg.Pipeline, t.Source)
	if err != nil {
		return f, staterow.Explain(err)
	}
	if f.Noted = staterow.NoteOf(note); f.Noted != nil {
		if f.Seen, err = log.SeenAt(ctx, f.Noted.Seq); err != nil && f.FoldErr == nil {
			return f, failure.With(failure.Unready, "see `replicator check`",
				fmt.Errorf("look at the log of %s: %w", t.Source, err))
		}
	}
	return f, nil
}

// loadRow returns the row of a table; nil if there is none.
//
// Rule 13: what `recover` makes of a row that is not there is stored, so it is looked for twice.
func loadRow(ctx context.Context, rows staterow.Store, pipeline, table string) (row *bigtable.State, err error) {
	for range 2 {
		if row, err = rows.LoadState(ctx, pipeline, table); !errors.Is(err, bigtable.ErrNoState) {
			return row, err
		}
	}
	return nil, nil
}

// Text describes what the recovery does, and for how long the table is not ready.
func (l *Life) Text() string {
	if l.Begun {
		return fmt.Sprintf("%s is already recovering: life %d begins at the next try of a replicator, nothing was changed.",
			l.Table, l.Life)
	}
	if l.Restores {
		return fmt.Sprintf(`%s: %s.
  recover stores it again, from the log, which has everything that the row had. The log goes on: nothing is copied or
  compared.`,
			l.Table, l.Why)
	}
	if l.archivedOnly {
		return fmt.Sprintf(`%s: %s.
  recover begins life %d. A log that is still there is deleted. The stream is read again from its oldest record, and the
  archive drops what it has. Its hours until then say that a recovery was: what was lost with the log is in no count.`,
			l.Table, l.Why, l.Life)
	}
	return fmt.Sprintf(`%s: %s.
  recover begins life %d: versions go on %s ahead of the clock, above everything that was ever written. A log that is
  still there is deleted. Then the whole table is compared with Bigtable and what differs is written again: %s.
  Until that is complete, for %s, the table is red; readers keep seeing its rows, and changes go on arriving.`,
		l.Table, l.Why, l.Life, (time.Duration(l.Lead) * time.Second).String(), l.reads, span(l.Hours))
}

// span returns a time in words. A small table takes some minutes too: the resync first waits until
// earlier owners write nothing any more.
func span(hours float64) string {
	switch {
	case hours < 0.05:
		return "a few minutes"
	case hours < 2:
		return fmt.Sprintf("about %.0f minutes", hours*60)
	}
	return fmt.Sprintf("about %.0f hours", hours)
}

// Begin stores the new life in the table's row. Nothing else is changed.
func (l *Life) Begin(ctx context.Context, rows staterow.Store) error {
	return l.plan.Begin(ctx, rows)
}
