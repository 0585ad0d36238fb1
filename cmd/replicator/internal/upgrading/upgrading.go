// Package upgrading shows which format the logs of a pipeline have, and raises it once no older replicator is needed.
package upgrading

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/rollout"
	"github.com/tailrace-cdc/replicator/pipeline/staterow"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/presence"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
)

// listen is how long the command listens for replicators, which speak every two seconds.
const listen = 3 * time.Second

// heard returns the replicators of the pipeline that are heard. One with the embedded server is alone, and says
// nothing.
func heard(ctx context.Context, q *queue.Queue) (all []rollout.Member, err error) {
	group := q.Group(presence.Options{})
	if group == nil {
		return nil, nil
	}
	members, err := group.Listen(ctx, listen)
	for i := range members {
		all = append(all, rollout.Member{Owner: members[i].Member, Build: members[i].Build, Reads: members[i].Reads})
	}
	return all, err
}

// options are the flags of the command.
type options struct{ finalize, yes, force bool }

// command is `replicator upgrade`.
type command struct {
	*cli.App
	options
}

// Command returns the command `replicator upgrade`.
func Command(app *cli.App) *cobra.Command {
	a := &command{App: app}
	cmd := &cobra.Command{
		Use:   "upgrade [--finalize]",
		Short: "Show which format the logs have; raise it when no older replicator is needed",
		Long: `upgrade shows the newest format of this program, the format in which the logs of the pipeline are written,
that of each log, and who could not read the newest one. It writes nothing.

A new version goes on in the format of the older one, so that the older one can be started again at any moment. With
--finalize the logs are raised to the newest format: each owner raises its own within a minute, without a restart, and
older versions refuse them from then on. There is no way back. The same happens by itself after 24 hours in which every
replicator that is heard reads the newest format.

Exit 1: a replicator could not read the newest format, or none was heard and --yes is missing; nothing was changed
then. --force raises the format although a replicator could not read it: that one ends.`,
		Args: app.Args(cobra.NoArgs),
		RunE: app.Body(func(ctx context.Context, _ []string) error { return a.run(ctx) }),
	}
	f := cmd.Flags()
	f.BoolVar(&a.finalize, "finalize", false, "raise the logs to the newest format of this program")
	f.BoolVar(&a.yes, "yes", false, "do it without asking")
	f.BoolVar(&a.force, "force", false, "also when a replicator could not read the newest format")
	return cmd
}

// FlagError names this command to those who still use `run --upgrade`.
func FlagError(app *cli.App) func(*cobra.Command, error) error {
	return func(cmd *cobra.Command, err error) error {
		app.Path = cmd.CommandPath()
		if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) && unknown.GetSpecifiedName() == "upgrade" {
			return failure.Usagef("`replicator upgrade --finalize`, once no older replicator is needed",
				"--upgrade is gone: logs go on in their format until they are raised")
		}
		return err
	}
}

// report is what the command prints.
type report struct {
	Schema   int          `json:"schema"`
	Pipeline string       `json:"pipeline"`
	Version  string       `json:"version"` // of this program
	Newest   int          `json:"newest"`  // its newest format
	Format   int          `json:"format"`  // of the pipeline
	Row      *rollout.Row `json:"row"`     // null: no replicator has run yet, or the row was lost
	Logs     []log        `json:"logs"`
	Members  int          `json:"members"` // replicators that are heard
	Older    []string     `json:"older"`   // who could not read the newest format
	// Finalized says that the pipeline has the newest format of this program.
	Finalized bool `json:"finalized"`
}

// log is the log of a table.
type log struct {
	rollout.Claim
	Format int `json:"format"`
}

// run shows the formats, and raises them if that is asked for.
func (a *command) run(ctx context.Context) error {
	if (a.yes || a.force) && !a.finalize {
		return failure.Usagef("`replicator upgrade --finalize`, or without them",
			"--yes and --force belong to --finalize")
	}
	cfg, err := a.File()
	if err != nil {
		return err
	}
	clients := a.Clients(cfg)
	defer clients.Close()
	q, err := clients.Queue(ctx)
	if err != nil {
		return err
	}
	store, err := storeOf(ctx, cfg, clients)
	if err != nil {
		return err
	}
	r, err := a.look(ctx, cfg, q, store)
	if err != nil {
		return err
	}
	if a.finalize && !r.Finalized {
		if err := a.raise(ctx, store, r); err != nil {
			return err
		}
	}
	if a.JSON {
		return a.PrintJSON(r)
	}
	a.print(r)
	return nil
}

// storeOf returns where the format of the pipeline is kept.
func storeOf(ctx context.Context, cfg *config.Config, clients *clients.Clients) (rollout.Store, error) {
	if cfg.Replicates() {
		sink, err := clients.Bigtable(ctx)
		return rollout.InBigtable(sink), err
	}
	b, err := clients.Bucket(ctx, bucket.Options{})
	return rollout.InBucket(b, func(context.Context) error { return nil }), err
}

// look reads the row and the logs. It refuses a pipeline that this build cannot read.
func (a *command) look(ctx context.Context, cfg *config.Config, q *queue.Queue, store rollout.Store) (*report, error) {
	r := &report{
		Schema: cli.Schema, Pipeline: cfg.Pipeline, Version: a.Version, Newest: checkpoint.Format,
		Logs: []log{}, Older: []string{},
	}
	var err error
	if r.Row, err = store.Load(ctx, cfg.Pipeline); err != nil {
		return nil, staterow.Explain(err)
	}
	if refused := r.Row.Check(cfg.Pipeline); refused != nil {
		return nil, failure.With(failure.Unready, refused.Hint, refused)
	}
	if r.Row != nil {
		r.Format = r.Row.Log
	}
	tables, err := q.Tables(ctx)
	if err != nil {
		return nil, err
	}
	lowest := 0
	var claims []rollout.Claim
	for _, table := range tables {
		one, err := look(ctx, q, table)
		if err != nil {
			return nil, err
		}
		if one.Format == 0 {
			continue // nobody has claimed it yet, or it was retired meanwhile
		}
		r.Logs = append(r.Logs, one)
		claims = append(claims, one.Claim)
		if lowest == 0 || one.Format < lowest {
			lowest = one.Format
		}
	}
	if r.Row == nil {
		if r.Format = lowest; lowest == 0 {
			r.Format = checkpoint.Format
		}
	}
	r.Finalized = r.Format == checkpoint.Format && r.Row != nil
	members, err := heard(ctx, q)
	if err != nil {
		return nil, err
	}
	r.Members = len(members)
	if d := (*rollout.Disagreement)(nil); errors.As(rollout.Agreed(members, claims, checkpoint.Format), &d) {
		r.Older = append(r.Older, d.Older...)
	}
	return r, nil
}

// look reads a log.
func look(ctx context.Context, q *queue.Queue, table string) (log, error) {
	l, err := q.Log(ctx, table)
	if errors.Is(err, queue.ErrNoLog) {
		return log{}, nil
	}
	if err != nil {
		return log{}, err
	}
	s, err := l.Fold(ctx)
	if newer := (*checkpoint.NewerFormatError)(nil); errors.As(err, &newer) {
		return log{},
			failure.With(failure.Unready, "use the newer program", fmt.Errorf("read log of %s: %w", table, err))
	}
	if err != nil {
		return log{}, err
	}
	one := log{Claim: rollout.Claim{Table: table, Owner: s.Owner, Reads: s.Reads}, Format: s.Format}
	if s.Released {
		one.Owner, one.Reads = "", 0
	}
	return one, nil
}

// raise raises the row if everyone reads the newest format, or the caller says so.
func (a *command) raise(ctx context.Context, store rollout.Store, r *report) error {
	switch {
	case len(r.Older) > 0 && !a.force:
		return refuse("upgrade them first; --force raises the format although they end then", r.Older)
	case a.yes || a.force || r.Members > 0:
	default:
		fmt.Fprintf(a.Errs, "Format %d → %d. From then on older versions refuse the logs; there is no way back.\n",
			r.Format, checkpoint.Format)
		if !a.Confirmed() {
			return refuse("stop every older replicator and stand-by of the pipeline, then repeat it with --yes",
				[]string{"it was not confirmed that no older replicator runs"})
		}
	}
	row, err := rollout.Raise(ctx, store, r.Pipeline, rollout.Row{
		Log: checkpoint.Format, Build: a.Version, By: rollout.ByFinalize, Since: time.Now(),
	})
	if err != nil {
		return err
	}
	r.Row, r.Format, r.Finalized = row, row.Log, true
	return nil
}

func refuse(hint string, reasons []string) error {
	return failure.With(failure.None, hint, errors.New("nothing was changed: "+strings.Join(reasons, "; ")))
}

// print prints a report for people.
func (a *command) print(r *report) {
	a.Print("Pipeline %s has format %d, this program (%s) reads and writes up to %d.", r.Pipeline, r.Format,
		strings.Trim(r.Version, "()"), r.Newest)
	behind := 0
	if len(r.Logs) > 0 {
		w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "TABLE\tFORMAT\tOWNER\tREADS UP TO")
		for _, l := range r.Logs {
			owner, reads := l.Owner, fmt.Sprint(l.Reads)
			if l.Owner == "" {
				owner, reads = "(released)", ""
			}
			if l.Format < r.Format {
				behind++
			}
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", l.Table, l.Format, owner, reads)
		}
		_ = w.Flush()
	}
	for _, line := range r.Older {
		a.Print("%s", line)
	}
	switch {
	case behind > 0:
		a.Print("The owners of %d logs raise them within a minute.", behind)
	case r.Finalized:
		a.Print("Nothing is left to finalize.")
	default:
		a.Print("An older version can still be started again. `replicator upgrade --finalize` ends that.")
	}
}
