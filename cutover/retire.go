package cutover

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/staterow"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
)

// RetireOptions name the table to retire, and what is deleted or given up with it.
type RetireOptions struct {
	Table       string
	DropGuards  bool                             // delete the guards in the target, too
	DropLetters bool                             // delete dead letters, which no replicator can apply any more
	DropChanges uint64                           // give up exactly this many changes of the log; Bigtable never gets them
	Now         func() time.Time                 // the service's clock
	Say         func(format string, args ...any) // prints a step as it happens
}

// Retirement is the end of one table's replication. Its zero value is not useful; use
// PlanRetirement.
type Retirement struct {
	RetireOptions
	Kept Kept

	cfg   *config.Config
	queue *queue.Queue     // nil: there is none
	sink  *bigtable.Client // nil: the table has no target
	rows  RowStore
	row   *bigtable.State // nil: there is none
	// delegated is set where the log does not show that its workers have ended.
	delegated bool
}

// RowStore is where the table's row is kept: in Bigtable or, for a table without a target, in the
// archive's bucket.
type RowStore interface {
	staterow.Store
	RemoveState(ctx context.Context, s *bigtable.State) error
}

// Kept is what the replicator keeps of a table.
type Kept struct {
	Table   string       `json:"table"`
	Target  string       `json:"target"`           // "": not known, because there is no row
	Retired *time.Time   `json:"retired_at"`       // by an earlier retire, which may have left guards; nil: by none
	Fence   string       `json:"fence"`            // of the cutover that has fenced the table; "": not fenced
	Row     bool         `json:"state_row"`        // in tailrace_state or, without a target, in the archive
	Streams []queue.Kept `json:"streams"`          // in the queue
	Files   []string     `json:"files"`            // folders in scratch
	Guards  *Guards      `json:"guards,omitempty"` // with RetireOptions.DropGuards
	Letters uint64       `json:"dead_letters"`     // of Streams
	// Unapplied are changes that Bigtable never gets: behind the fence, or not applied before the
	// table was given up.
	Unapplied *status.BehindFence `json:"unapplied,omitempty"`
}

// Nothing reports whether nothing is kept of the table.
func (k *Kept) Nothing() bool {
	return !k.Row && len(k.Streams) == 0 && len(k.Files) == 0 && (k.Guards == nil || k.Guards.Cells == 0)
}

// PlanRetirement finds what is kept of a table, and refuses what may not be retired. It changes
// nothing. q is nil where there is no queue, sink for a table without a target.
func PlanRetirement(
	ctx context.Context, cfg *config.Config, q *queue.Queue, sink *bigtable.Client, rows RowStore, o RetireOptions,
) (*Retirement, error) {
	r := &Retirement{RetireOptions: o, cfg: cfg, queue: q, sink: sink, rows: rows}
	r.Kept = Kept{Table: o.Table, Streams: []queue.Kept{}}
	if err := r.loadRow(ctx); err != nil {
		return nil, err
	}
	if err := r.findRetired(ctx); err != nil {
		return nil, err
	}
	if q != nil {
		all, err := q.Kept(ctx, o.Table)
		if err != nil {
			return nil, failure.With(failure.Unready, "see `replicator check`", err)
		}
		r.Kept.Streams = append(r.Kept.Streams, all...)
	}
	for _, k := range r.Kept.Streams {
		if k.What == "letters" {
			r.Kept.Letters = k.Messages
		}
	}
	if err := r.refuse(ctx); err != nil {
		return nil, err
	}
	var err error
	if r.Kept.Files, err = r.files(ctx); err != nil {
		return nil, err
	}
	if o.DropGuards && r.Kept.Target != "" {
		r.Kept.Guards, err = r.sweep(ctx, false)
	}
	return r, err
}

// loadRow reads the table's row, which names its target.
func (r *Retirement) loadRow(ctx context.Context) error {
	row, err := r.rows.LoadState(ctx, r.cfg.Pipeline, r.Table)
	switch {
	case errors.Is(err, bigtable.ErrNoState):
		r.row = nil
		if at := r.configured(); at >= 0 {
			r.Kept.Target = r.cfg.Tables[at].Target
		}
		return nil
	case err != nil:
		return staterow.Explain(fmt.Errorf("load state of %s: %w", r.Table, err))
	}
	r.row, r.Kept.Row = row, true
	r.Kept.Target = row.Identity.Target[strings.LastIndexByte(row.Identity.Target, '/')+1:]
	if row.Fenced != nil {
		r.Kept.Fence = row.Fenced.ID
	}
	if r.sink == nil {
		return nil
	}
	if name := r.sink.TargetName(r.Kept.Target); name != row.Identity.Target {
		return failure.With(failure.Unready,
			"set bigtable.project and bigtable.instance as they were",
			fmt.Errorf("table %s was replicated to %s, and the configuration leads to %s", r.Table,
				row.Identity.Target, name))
	}
	return nil
}

// findRetired finds the target of a table that is retired already: its row is gone, and the
// target's note is what is left. So guards that were to stay can be deleted later, also when the
// table is not configured any more.
func (r *Retirement) findRetired(ctx context.Context) error {
	if r.row != nil || r.sink == nil {
		return nil
	}
	var targets []string
	from := r.sink.TargetKey("")
	views := []bigtable.View{{Family: tableschema.StateFamily, Versions: 1}}
	err := r.sink.Rows(ctx, tableschema.StateTable, from, from+"\xff", views, func(row *bigtable.Row) error {
		targets = append(targets, string(row.Key[len(from):]))
		return nil
	})
	if err != nil {
		return bigtable.Explain(fmt.Errorf("find the target of %s: %w", r.Table, err))
	}
	for _, target := range targets {
		all, err := r.sink.Retired(ctx, target)
		if err != nil {
			return bigtable.Explain(err)
		}
		if as, ok := all[r.Table]; ok && (r.Kept.Retired == nil || as.At.After(*r.Kept.Retired)) {
			r.Kept.Target, r.Kept.Retired = target, &as.At
		}
	}
	return nil
}

// configured returns the index of the table in the configuration; -1: it is not there, or has
// vanished from DynamoDB.
func (r *Retirement) configured() int {
	return slices.IndexFunc(r.cfg.Tables, func(t config.Table) bool {
		return t.Source == r.Table &&
			t.Gone != config.GoneVanished
	})
}

// Run takes away what is kept. The steps, each of which may be repeated:
//
//	row {fenced} → workers end → log → requests, letters → target {retired} → guards → files → row removed
//
// The row comes last: as long as it is fenced no replicator writes the rows, and without the log no
// undo lets the replicator continue where it was, with guards that are gone.
//
// The target's note comes before the guards, for two reasons. It refuses a later start, which would
// copy the table over the application's rows. And it keeps comparisons of the target's other tables
// from taking cells without guards for foreign ones, which `repair --delete-foreign` deletes.
//
// Rule 12: no step leaves a table without a fence, ready to be started.
func (r *Retirement) Run(ctx context.Context) error {
	if err := r.fenceRow(ctx); err != nil {
		return err
	}
	if err := r.endWorkers(ctx); err != nil {
		return err
	}
	if err := r.checkOwner(ctx); err != nil { // one may have begun before the row was fenced
		return err
	}
	if err := r.checkUnapplied(ctx); err != nil { // more may have been read meanwhile
		return err
	}
	for _, k := range r.Kept.Streams {
		if err := r.queue.Delete(ctx, k); err != nil {
			return failure.With(failure.Unready, repeatHint, err)
		}
		r.Say("Deleted the %s of %s: %s in stream %s.", k.What, r.Table,
			english.Plural(int(k.Messages), "message", ""), k.Stream)
	}
	if err := r.noteRetired(ctx); err != nil {
		return err
	}
	if r.DropGuards && r.Kept.Target != "" {
		if _, err := r.sweep(ctx, true); err != nil {
			return err
		}
	}
	for _, dir := range r.Kept.Files {
		if err := os.RemoveAll(dir); err != nil {
			return failure.With(failure.Unready, repeatHint, err)
		}
		r.Say("Removed the files in %s.", dir)
	}
	return r.removeRow(ctx)
}

// repeatHint is the hint for steps that fail.
const repeatHint = "remove the reason, then the same command: it goes on where it stopped"

// fenceRow fences a table that is not configured any more, so that no replicator starts it
// meanwhile.
func (r *Retirement) fenceRow(ctx context.Context) error {
	for r.row != nil && r.row.Fenced == nil {
		var b [6]byte
		_, _ = rand.Read(b[:]) // never fails
		next := *r.row
		next.Fenced = &bigtable.Fenced{ID: "retire-" + hex.EncodeToString(b[:]), Time: r.Now().UTC()}
		err := r.rows.CompareAndSet(ctx, r.row, &next)
		switch {
		case err == nil:
			r.row = &next
			r.Say("Fenced the row of %s: no replicator writes its rows any more.", r.Table)
		case !errors.Is(err, bigtable.ErrStateChanged):
			return staterow.Explain(fmt.Errorf("fence %s: %w", r.Table, err))
		default:
			if err := r.loadRow(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// noteRetired notes in the target that the table is retired.
func (r *Retirement) noteRetired(ctx context.Context) error {
	if r.row == nil || r.sink == nil {
		return nil
	}
	floor := max(r.row.Floor, change.Version(change.MillisOf(r.Now())+change.Millis(r.row.Lead.Milliseconds())))
	as := bigtable.Retired{At: r.Now().UTC(), Floor: floor}
	if err := r.sink.Retire(ctx, r.cfg.Pipeline, r.Kept.Target, r.Table, as); err != nil {
		return bigtable.Explain(err)
	}
	return nil
}

// removeRow removes the table's row.
func (r *Retirement) removeRow(ctx context.Context) error {
	if r.row == nil {
		return nil
	}
	for {
		err := r.rows.RemoveState(ctx, r.row)
		switch {
		case err == nil:
			r.Say("Removed the row of %s.", r.Table)
			return nil
		case !errors.Is(err, bigtable.ErrStateChanged):
			return staterow.Explain(err)
		}
		if err := r.loadRow(ctx); err != nil {
			return err
		}
		if r.row == nil {
			return nil
		}
		if r.row.Fenced == nil {
			return failure.With(failure.Unready, repeatHint,
				fmt.Errorf("the fence of table %s was taken away meanwhile", r.Table))
		}
	}
}
