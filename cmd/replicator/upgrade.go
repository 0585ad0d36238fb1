package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/rollout"
)

// upgradeFlags are the flags of `replicator upgrade`.
type upgradeFlags struct{ finalize, yes, force bool }

// upgradeCommand returns the command `replicator upgrade`.
func (a *app) upgradeCommand() *cobra.Command {
	var o upgradeFlags
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
		Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error { return a.upgrade(ctx, o) }),
	}
	f := cmd.Flags()
	f.BoolVar(&o.finalize, "finalize", false, "raise the logs to the newest format of this program")
	f.BoolVar(&o.yes, "yes", false, "do it without asking")
	f.BoolVar(&o.force, "force", false, "also when a replicator could not read the newest format")
	return cmd
}

// upgradeFlagError names the command that replaces `run --upgrade`.
func (a *app) upgradeFlagError() func(*cobra.Command, error) error {
	return func(cmd *cobra.Command, err error) error {
		a.Path = cmd.CommandPath()
		if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) && unknown.GetSpecifiedName() == "upgrade" {
			return failure.Usagef("`replicator upgrade --finalize`, once no older replicator is needed",
				"--upgrade is gone: logs go on in their format until they are raised")
		}
		return err
	}
}

// upgrade shows the formats, and raises them if that is asked for.
func (a *app) upgrade(ctx context.Context, o upgradeFlags) error {
	if (o.yes || o.force) && !o.finalize {
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
	store, err := control.FormatStore(ctx, cfg, clients)
	if err != nil {
		return err
	}
	r, err := control.Formats(ctx, cfg, q, store)
	if err != nil {
		return err
	}
	r.Schema, r.Version = schema, a.Version
	if o.finalize && !r.Finalized {
		if err := a.raiseFormat(ctx, store, r, o); err != nil {
			return err
		}
	}
	if a.JSON {
		return a.PrintJSON(r)
	}
	a.printFormats(r)
	return nil
}

// raiseFormat raises the row if every replicator reads the newest format, or the caller insists.
func (a *app) raiseFormat(
	ctx context.Context, store rollout.Store, r *control.LogFormats, o upgradeFlags,
) error {
	switch {
	case len(r.Older) > 0 && !o.force:
		return refuseUpgrade("upgrade them first; --force raises the format although they end then", r.Older)
	case o.yes || o.force || r.Members > 0:
	default:
		fmt.Fprintf(a.Errs, "Format %d → %d. From then on older versions refuse the logs; there is no way back.\n",
			r.Format, checkpoint.Format)
		if !a.Confirmed() {
			return refuseUpgrade("stop every older replicator and stand-by of the pipeline, then repeat it with --yes",
				[]string{"it was not confirmed that no older replicator runs"})
		}
	}
	return r.Raise(ctx, store, a.Version)
}

func refuseUpgrade(hint string, reasons []string) error {
	return failure.With(failure.None, hint, errors.New("nothing was changed: "+strings.Join(reasons, "; ")))
}

// printFormats prints the formats for people.
func (a *app) printFormats(r *control.LogFormats) {
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
