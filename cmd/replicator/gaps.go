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
on after a gap but repairs none of that: the table differs, and is not ready, until heal has made the rows true again or
clear has waived the difference for each sink.`,
		Args: a.Args(cobra.NoArgs),
	}
	cmd.AddCommand(a.gapsListCommand(), a.gapsHealCommand(), a.gapsClearCommand())
	return cmd
}

// gapsListCommand returns the command `replicator gaps list`.
func (a *app) gapsListCommand() *cobra.Command {
	var table string
	cmd := &cobra.Command{
		Use: "list", Short: "List the gaps, oldest first, accepted, healed and waived ones too", Args: a.Args(cobra.NoArgs),
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

// gapOf returns a gap as it is printed.
func gapOf(l *control.Log, g *checkpoint.Gap) render.Gap {
	line := render.GapOf(l.Table, l.State, g)
	line.Schema = schema
	return line
}

// gapsHealCommand returns the command `replicator gaps heal`.
func (a *app) gapsHealCommand() *cobra.Command {
	var h healing
	cmd := &cobra.Command{
		Use:   "heal [--table NAME] [--sink archive --from-export URL|ARN...] [ID...]",
		Short: "Make the rows true again that gaps left wrong, by comparing the whole table",
		Long: `heal accepts the gaps, so that reading goes on after them, and asks the replicator that owns the table to
compare all of it with Bigtable and to write again what differs. That reads the whole table once, within the read
budget of its backfill block, and writes only the rows that differ. Without ids, it heals every gap of which Bigtable
differs.

The gaps are healed when every difference was repaired and found equal afterwards; until then gaps list shows them as
healing. Only the rows are healed: what an archive lacks stays named until it is healed, too, or gaps clear waives it.

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
			return a.healGaps(ctx, h.table, ids, h.wait)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&h.table, "table", "", "only this source table")
	f.StringVar(&h.sink, "sink", "", "bigtable, the default, or archive")
	f.StringArrayVar(&h.exports, "from-export", nil, "incremental export, by URL or ARN; may be given several times")
	f.BoolVar(&h.wait, "wait", false, "return when the gaps are healed")
	return cmd
}

// healGaps orders a resync of each table whose gaps are to be healed, and waits for its end if asked to.
func (a *app) healGaps(ctx context.Context, table string, ids []string, wait bool) error {
	logs, clients, err := a.TableLogs(ctx, table)
	if err != nil {
		return err
	}
	defer clients.Close()
	for _, id := range ids {
		if _, g := findGap(logs, id); g == nil {
			return noGap(id)
		}
	}
	ordered := map[string]string{} // order by table
	for _, l := range logs {
		gaps, healing := gapsToHeal(l.State, ids)
		if len(gaps) == 0 {
			continue
		}
		if ordered[l.Table] = healing; healing == "" {
			if ordered[l.Table], err = l.Resync(ctx, "heal gaps", gaps); err != nil {
				return err
			}
		}
		for _, id := range gaps {
			if err := a.printHealing(l, id, wait); err != nil {
				return err
			}
		}
	}
	if len(ordered) == 0 {
		if a.JSON {
			return a.PrintJSON(map[string]any{"schema": schema, "healing": []string{}})
		}
		a.Print("No gaps to heal.")
	}
	if !wait {
		return nil
	}
	for _, l := range logs {
		if id := ordered[l.Table]; id != "" {
			if err := a.awaitResync(ctx, clients, l.Table, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// gapsToHeal returns the ids of the gaps of which Bigtable differs; of the given ones if there are
// any. healing is the pending resync if it heals all of them: another order would begin it again.
func gapsToHeal(s *checkpoint.State, ids []string) (gaps []string, healing string) {
	wanted := func(g *checkpoint.Gap) bool { return len(ids) == 0 || slices.Contains(ids, g.ID()) }
	for _, g := range s.DifferingGaps() {
		if wanted(g) {
			gaps = append(gaps, g.ID())
		}
	}
	if s.Resync != nil && !slices.ContainsFunc(s.GapsToHeal(), wanted) {
		healing = s.Resync.ID
	}
	return gaps, healing
}

// printHealing prints a gap that is being healed. With --wait the result follows, and is the only object of --json.
func (a *app) printHealing(l *control.Log, id string, wait bool) error {
	if a.JSON && !wait {
		return a.PrintJSON(gapOf(l, l.State.GapByID(id)))
	}
	if !a.JSON {
		a.Print("Gap %s of %s is being healed.", id, l.Table)
	}
	return nil
}

// gapsClearCommand returns the command `replicator gaps clear`.
func (a *app) gapsClearCommand() *cobra.Command {
	var sink string
	var yes bool
	cmd := &cobra.Command{
		Use:   "clear ID... --sink SINK --yes",
		Short: "Waive what a sink lacks because of gaps: the table may be ready without it",
		Args:  a.Args(cobra.MinimumNArgs(1)),
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
			"first `replicator gaps heal "+id+"`, or `replicator resume --table "+l.Table+"`",
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

// findGap returns the gap with an id, and the log that records it; nil if there is none.
func findGap(logs []*control.Log, id string) (*control.Log, *checkpoint.Gap) {
	for _, l := range logs {
		if g := l.State.GapByID(id); g != nil {
			return l, g
		}
	}
	return nil, nil
}

// noGap returns the error of an id that no gap has.
func noGap(id string) error {
	return failure.With(failure.None, "`replicator gaps list` shows them", fmt.Errorf("no gap %q", id))
}
