package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
)

// gapsCommand returns the command `replicator gaps`.
func (a *app) gapsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gaps",
		Short: "List what was lost before it was read, heal it, or waive the difference",
		Long: `A gap is a range of a table's stream that DynamoDB dropped before it was read. Items that changed in it are
older in Bigtable than in DynamoDB, and items that were deleted in it are still there, until they change again. ` +
			"`resume`" + ` reads
on after a gap but repairs none of that: the table differs, and is not ready, until
` + "`repair --gaps`" + ` has made the rows true again or ` + "`gaps clear`" + ` has waived the
difference for each sink.`,
		Args: a.NoArgs(),
	}
	cmd.AddCommand(a.gapsListCommand(), a.gapsHealCommand(), a.gapsClearCommand())
	return cmd
}

// gapsListCommand returns the command `replicator gaps list`.
func (a *app) gapsListCommand() *cobra.Command {
	var table string
	cmd := &cobra.Command{
		Use: "list", Short: "List the gaps, oldest first, accepted, healed and waived ones too", Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error {
			logs, clients, err := a.TableLogs(ctx, table)
			if err != nil {
				return err
			}
			defer clients.Close()
			var gaps []render.Gap
			for _, l := range logs {
				for i := range l.State.Gaps {
					gaps = append(gaps, gapOf(l, &l.State.Gaps[i]))
				}
			}
			a.Printed = true // an empty list is an answer
			if a.JSON {
				for _, g := range gaps {
					if err := a.PrintJSON(g); err != nil {
						return err
					}
				}
				return nil
			}
			if len(gaps) == 0 {
				a.Print("No gaps.")
				return nil
			}
			return render.Gaps(a.Out, gaps)
		}),
	}
	cmd.Flags().StringVar(&table, "table", "", "only this source table")
	return cmd
}

// gapsHealCommand returns the command `replicator gaps heal`.
func (a *app) gapsHealCommand() *cobra.Command {
	var h healing
	cmd := &cobra.Command{
		Use:   "heal [--table NAME] [--wait] [--sink archive --from-export URL|ARN...] [ID...]",
		Short: "Make the rows true again that gaps left wrong, by comparing the whole table",
		Long: "heal is the same as `replicator repair --gaps [ID...] --no-wait`, with --wait the same without " +
			`--no-wait. The next
minor version has repair alone, and heal for archives. The gaps are healed when every difference was repaired and found
equal afterwards; until then gaps list shows them as healing. Only the rows are healed: what an archive lacks stays
named until it is healed, too, or gaps clear waives it.

With --from-export it is the archive that is healed, of gaps that are accepted: what had expired by the time at which an
incremental export shows it deleted, and what the stream did not give, is archived as class healed. The exports must
have the view type NEW_AND_OLD_IMAGES, and their windows, of at most 24 hours each, must touch and span the gaps with a
minute to spare. Items that were created and deleted within one window are not in it, and are not brought back.`,
		RunE: a.Body(func(ctx context.Context, ids []string) error {
			ofArchive, err := h.ofArchive()
			if err != nil {
				return err
			}
			if ofArchive {
				return a.healArchive(ctx, &h, ids)
			}
			p, err := (&selection{table: h.table, gaps: true, ids: ids, noWait: !h.wait}).planAlias()
			if err != nil {
				return err
			}
			return a.repair(ctx, p, false)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&h.table, "table", "", "only this source table")
	f.StringVar(&h.sink, "sink", "", "bigtable, the default, or archive")
	f.StringArrayVar(&h.exports, "from-export", nil, "incremental export, by URL or ARN; may be given several times")
	f.BoolVar(&h.wait, "wait", false, "return when the gaps are healed")
	return cmd
}

// gapsClearCommand returns the command `replicator gaps clear`.
func (a *app) gapsClearCommand() *cobra.Command {
	var sink string
	var yes bool
	cmd := &cobra.Command{
		Use:   "clear ID... --sink SINK --yes",
		Short: "Waive what a sink lacks because of gaps: the table may be ready without it",
		Args:  a.SomeArgs("ID"),
		RunE: a.Body(func(ctx context.Context, ids []string) error {
			logs, clients, err := a.TableLogs(ctx, "")
			if err != nil {
				return err
			}
			defer clients.Close()
			for _, id := range ids { // all are checked before the first is waived
				if err := checkClear(logs, id, sink, yes); err != nil {
					return err
				}
			}
			for _, id := range ids {
				if err := a.clearGap(ctx, logs, id, sink); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	f := cmd.Flags()
	f.StringVar(&sink, "sink", "", "bigtable or archive")
	f.BoolVar(&yes, "yes", false, "waive it; without --yes, clear only prints what it would waive")
	cli.Must(cmd.MarkFlagRequired("sink"))
	return cmd
}

// checkClear returns why a gap cannot be waived for a sink, or what waiving it would mean if that is not confirmed.
func checkClear(logs []*control.Log, id, sink string, yes bool) error {
	l, g := findGap(logs, id)
	if g == nil {
		return noGap(id)
	}
	switch affected := l.State.AffectedSinks(g); {
	case !slices.Contains(affected, sink):
		return failure.Usagef("it affects: "+strings.Join(affected, ", "), "sink %q lacks nothing because of gap %s",
			sink, id)
	case !g.Accepted:
		return failure.With(failure.Unready,
			"first `replicator repair --gaps "+id+"`, or `replicator resume --table "+l.Table+"`",
			fmt.Errorf("gap %s of %s is open: nothing after it is read", id, l.Table))
	case !yes:
		return failure.Usagef("repeat it with --yes to accept that",
			"clear would waive gap %s of %s for %s: %s", id, l.Table, sink, render.Lacking(l.State, g, sink))
	}
	return nil
}

// clearGap waives what a sink lacks because of a gap, through the table's log.
func (a *app) clearGap(ctx context.Context, logs []*control.Log, id, sink string) error {
	l, _ := findGap(logs, id)
	control := checkpoint.Control{Waive: &checkpoint.Waive{Gap: id, Sink: sink}}
	if _, err := l.Append(ctx, "clear gap "+id, control); err != nil {
		return err
	}
	g := l.State.GapByID(id)
	if g == nil {
		return fmt.Errorf("gap %s of %s is not in the log any more", id, l.Table)
	}
	if a.JSON {
		return a.PrintJSON(gapOf(l, g))
	}
	a.Print("Gap %s of %s is waived for %s.", id, l.Table, sink)
	if left := l.State.DifferingSinks(g); len(left) > 0 {
		a.Print("It is not yet waived for %s: the table is not ready until it is.", strings.Join(left, ", "))
	}
	return nil
}
