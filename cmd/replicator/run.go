package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/daemon"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/preflight"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// runOptions are the flags of run.
type runOptions struct {
	drain, dry, adopt, trial bool
	accept                   []string
	rehearsal                dryOptions
}

// bind declares the flags.
func (o *runOptions) bind(f *pflag.FlagSet) {
	f.BoolVar(&o.drain, "drain-and-exit", false, "stop when everything that was written before the start "+
		"is in Bigtable; exit code 4 when gaps or dead letters stand before that")
	f.StringSliceVar(&o.accept, "accept", nil, "with --drain-and-exit: obstacles that do not count: gaps, letters")
	f.BoolVar(&o.dry, "dry-run", false,
		"read the streams and apply the mappings, write nothing, and say what a run would do and cost")
	f.DurationVar(&o.rehearsal.Duration, "duration", 0, "with --dry-run: how long; without it until Ctrl-C")
	f.StringVar(&o.rehearsal.From, "from", fromLatest, "with --dry-run: latest or trim_horizon")
	f.BoolVar(&o.adopt, "adopt", false,
		"take targets that another pipeline has written: only at a first start, and only when that pipeline is stopped")
	f.BoolVar(&o.trial, "trial", false, "also where a power cut could lose what the log holds: for the demo")
	_ = f.MarkHidden("trial") // the flag exists
}

// options returns what the flags say of the daemon.
func (o *runOptions) options() daemon.Options {
	return daemon.Options{Version: buildVersion(), Adopt: o.adopt}
}

// runCommand returns the command `replicator run`.
func (a *app) runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Replicate the tables until stopped",
		Long: `run is the daemon. The first SIGTERM or Ctrl-C finishes the work in progress within shutdown_timeout and saves
the marks; the second one ends it at once. Ending it in any way, at any moment, loses nothing.

Exit 2: the configuration is wrong. Exit 3: something that it needs is missing or belongs to something else; a service
that does not answer later is tried again. Exit 4, with --drain-and-exit: gaps or dead letters stand before its end.`,
		Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error { return a.run(ctx, o) }),
	}
	o.bind(cmd.Flags())
	cmd.MarkFlagsMutuallyExclusive("drain-and-exit", "dry-run")
	cmd.MarkFlagsMutuallyExclusive("adopt", "dry-run")
	cmd.SetFlagErrorFunc(a.upgradeFlagError())
	return cmd
}

// run reads and checks the configuration, and runs the daemon until ctx ends.
func (a *app) run(ctx context.Context, f runOptions) (err error) {
	if f.dry {
		return runDry(ctx, a.App, f.rehearsal)
	}
	if f.rehearsal != (dryOptions{From: fromLatest}) {
		return failure.Usagef("`replicator run --dry-run`, or without them", "--duration and --from belong to --dry-run")
	}
	accept, err := acceptOf(f.accept, f.drain, "--drain-and-exit")
	if err != nil {
		return err
	}
	cfg, err := a.File()
	if err != nil {
		return err
	}
	problems := catalog.Mappings(cfg)
	if !f.trial {
		problems = append(problems, preflight.NotDurable(cfg)...)
	}
	if problem.AnyError(problems) {
		return a.Refused(problems)
	}
	tables, _ := catalog.Parse(cfg)
	o := f.options()
	if a.ShowsBars() {
		a.Bars = render.NewBars(a.Errs)
		defer a.Bars.Close()
		o.Show = func(s *pipeline.Status) { a.Bars.Show(render.Steps(*s, "")) }
	}
	if a.Terminal() {
		o.Announce = a.announceCopies
	}
	o.Log = a.Logger(zapcore.InfoLevel)
	defer a.LibraryLogs()()
	defer a.Signals.Note(func(name string, again bool) { logSignal(o.Log, name, again) })()
	d, err := daemon.New(ctx, cfg, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	problems, err = d.Open(ctx, tables)
	if err != nil {
		return err
	}
	if problem.AnyError(problems) {
		return a.Refused(problems)
	}
	return d.Run(ctx, accept)
}

// logSignal logs which signal ends the replicator.
func logSignal(log *zap.Logger, name string, again bool) {
	if again {
		log.Warn("replicator is ended at once by a second signal: it does not wait for what it still writes, "+
			"which is applied again after the next start, as the same cells", zap.String("signal", name))
		return
	}
	log.Info("replicator is ended by a signal", zap.String("signal", name))
}

// announceDelay is how long run waits on a terminal before it begins to copy tables.
const announceDelay = 10 * time.Second

// announceCopies prints on a terminal what the copies take that are about to begin, and which
// tables are not copied, and waits: a copy costs money, and Ctrl-C leaves everything as it was.
func (a *app) announceCopies(
	ctx context.Context, cfg *config.Config, tables *catalog.Catalog, sink *bigtable.Client,
) error {
	copies, problems := preflight.FirstStarts(ctx, cfg, tables, sink)
	for _, p := range problems {
		fmt.Fprintln(a.Errs, p.String())
	}
	if len(copies) == 0 {
		return nil
	}
	for _, text := range copies {
		fmt.Fprintln(a.Errs, text)
	}
	fmt.Fprintf(a.Errs, "%s\nThe copies begin in %s, beside the stream; Ctrl-C stops, nothing was written yet.\n",
		preflight.PriceNote(), announceDelay)
	return failure.Pause(ctx, announceDelay)
}
