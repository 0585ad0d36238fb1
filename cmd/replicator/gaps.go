package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/catalog"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/queue"
)

// gapsCommand returns the command `replicator gaps`.
func (a *app) gapsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gaps",
		Short: "List what was lost before it was read, and waive the difference",
		Long: `A gap is a range of a table's stream that DynamoDB dropped before it was read. Items that changed in it are
older in Bigtable than in DynamoDB, and items that were deleted in it are still there, until they change again. ` +
			"`resume`" + ` reads
on after a gap but repairs none of that: the table differs, and is not ready, until clear waives the difference for
each sink.`,
		Args: a.args(cobra.NoArgs),
	}
	cmd.AddCommand(a.gapsListCommand(), a.gapsClearCommand())
	return cmd
}

// gapLine is a gap as it is printed.
type gapLine struct {
	Schema int               `json:"schema"`
	ID     string            `json:"id"`
	Table  string            `json:"table"`
	Stream string            `json:"stream"`
	Shard  string            `json:"shard"` // empty: between two streams
	Since  *time.Time        `json:"since"`
	Until  *time.Time        `json:"until"`
	Reason string            `json:"reason"`
	Found  *time.Time        `json:"found"`
	State  string            `json:"state"` // open: nothing after it is read; accepted
	Sinks  map[string]string `json:"sinks"` // differs or waived
}

// gapLineOf returns a gap of a table as it is printed.
func gapLineOf(table string, s *checkpoint.State, g *checkpoint.Gap) gapLine {
	line := gapLine{
		Schema: schema, ID: g.ID(), Table: table, Stream: g.Feed.Stream, Shard: g.Feed.Shard,
		Since: timeOrNil(s.GapStart(g)), Until: timeOrNil(g.Until), Reason: g.Reason, Found: timeOrNil(g.Found),
		State: "open", Sinks: map[string]string{},
	}
	if g.Accepted {
		line.State = "accepted"
	}
	for _, sink := range s.AffectedSinks(g) {
		line.Sinks[sink] = "differs"
		if _, waived := g.Waived[sink]; waived {
			line.Sinks[sink] = "waived"
		}
	}
	return line
}

// gapLog is a table's log with its state.
type gapLog struct {
	table string
	log   *queue.Log
	state *checkpoint.State
}

// gapLogs folds the logs of the tables that have one; close when done.
func (a *app) gapLogs(ctx context.Context, table string) (logs []gapLog, done func(), err error) {
	cfg, err := a.config()
	if err != nil {
		return nil, nil, err
	}
	tables, err := catalog.Select(cfg, table)
	if err != nil {
		return nil, nil, err
	}
	clients := a.clients(cfg)
	q, err := clients.Queue(ctx)
	if err != nil {
		return nil, nil, err
	}
	done = func() { _ = clients.Close() }
	for _, t := range tables {
		l := gapLog{table: t.Source}
		if l.log, err = q.Log(ctx, t.Source); errors.Is(err, queue.ErrNoLog) {
			continue
		}
		if err == nil {
			l.state, err = l.log.Fold(ctx)
		}
		if err != nil {
			done()
			return nil, nil, exit.Environment(fmt.Errorf("read log of %s: %w", t.Source, err), "see `replicator check`")
		}
		logs = append(logs, l)
	}
	return logs, done, nil
}

// gapsListCommand returns the command `replicator gaps list`.
func (a *app) gapsListCommand() *cobra.Command {
	var table string
	cmd := &cobra.Command{
		Use: "list", Short: "List the gaps, oldest first, accepted and waived ones too", Args: a.args(cobra.NoArgs),
		RunE: a.body(func(ctx context.Context, _ []string) error {
			logs, done, err := a.gapLogs(ctx, table)
			if err != nil {
				return err
			}
			defer done()
			var lines []gapLine
			for _, l := range logs {
				for i := range l.state.Gaps {
					lines = append(lines, gapLineOf(l.table, l.state, &l.state.Gaps[i]))
				}
			}
			a.printed = true // an empty list is an answer
			if a.json {
				for _, line := range lines {
					if err := a.printJSON(line); err != nil {
						return err
					}
				}
				return nil
			}
			return a.printGaps(lines)
		}),
	}
	cmd.Flags().StringVar(&table, "table", "", "only this source table")
	return cmd
}

// printGaps prints the gaps as a table.
func (a *app) printGaps(lines []gapLine) error {
	if len(lines) == 0 {
		a.print("No gaps.")
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tTABLE\tSHARD\tSINCE\tUNTIL\tSTATE\tSINKS\tREASON")
	for _, l := range lines {
		var sinks []string
		for sink, word := range l.Sinks {
			sinks = append(sinks, sink+" "+word)
		}
		slices.Sort(sinks)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.ID, l.Table, l.Shard, localTime(l.Since), localTime(l.Until),
			l.State, strings.Join(sinks, ", "), l.Reason)
	}
	return w.Flush()
}

// gapsClearCommand returns the command `replicator gaps clear`.
func (a *app) gapsClearCommand() *cobra.Command {
	var sink string
	var yes bool
	cmd := &cobra.Command{
		Use:   "clear ID --sink SINK --yes",
		Short: "Waive what a sink lacks because of a gap: the table may be ready without it",
		Args:  a.args(cobra.ExactArgs(1)),
		RunE:  a.body(func(ctx context.Context, args []string) error { return a.clearGap(ctx, args[0], sink, yes) }),
	}
	f := cmd.Flags()
	f.StringVar(&sink, "sink", "", "bigtable or archive")
	f.BoolVar(&yes, "yes", false, "waive it; without --yes, clear only prints what it would waive")
	must(cmd.MarkFlagRequired("sink"))
	return cmd
}

// clearGap waives what a sink lacks because of a gap, through the table's log.
func (a *app) clearGap(ctx context.Context, id, sink string, yes bool) error {
	logs, done, err := a.gapLogs(ctx, "")
	if err != nil {
		return err
	}
	defer done()
	l, g := findGap(logs, id)
	if g == nil {
		return &exit.Error{Code: exit.CodeRuntime, Err: fmt.Errorf("no gap %q", id),
			Hint: "`replicator gaps list` shows them"}
	}
	switch affected := l.state.AffectedSinks(g); {
	case !slices.Contains(affected, sink):
		return exit.Usage("it affects: "+strings.Join(affected, ", "), "sink %q lacks nothing because of gap %s", sink, id)
	case !g.Accepted:
		return exit.Environment(fmt.Errorf("gap %s of %s is open: nothing after it is read", id, l.table),
			"first `replicator resume --table "+l.table+"`")
	case !yes:
		return exit.Usage("repeat it with --yes to accept that",
			"clear would waive gap %s of %s for %s: %s", id, l.table, sink, lackingText(l.state, g, sink))
	}
	control := checkpoint.Control{
		Waive: &checkpoint.Waive{Gap: id, Sink: sink}, By: whoami(), At: change.MillisOf(time.Now()),
	}
	if _, err := l.log.AppendControl(ctx, &control); err != nil {
		if old := (*checkpoint.FormatError)(nil); errors.As(err, &old) {
			return exit.Environment(fmt.Errorf("clear gap %s of %s: %w", id, l.table, err), "nothing was changed")
		}
		return fmt.Errorf("clear gap %s of %s: %w", id, l.table, err)
	}
	_ = l.log.RequestBeat() // so that the owner reads the entry now, not at its next beat
	if l.state, err = l.log.Fold(ctx); err != nil {
		return fmt.Errorf("read log of %s: %w", l.table, err)
	}
	if g = l.state.GapByID(id); g == nil {
		return fmt.Errorf("gap %s of %s is not in the log any more", id, l.table)
	}
	if a.json {
		return a.printJSON(gapLineOf(l.table, l.state, g))
	}
	a.print("Gap %s of %s is waived for %s.", id, l.table, sink)
	if left := l.state.DifferingSinks(g); len(left) > 0 {
		a.print("It is not yet waived for %s: the table is not ready until it is.", strings.Join(left, ", "))
	}
	return nil
}

// findGap returns the gap with an id, and the log that records it; nil if there is none.
func findGap(logs []gapLog, id string) (*gapLog, *checkpoint.Gap) {
	for i := range logs {
		if g := logs[i].state.GapByID(id); g != nil {
			return &logs[i], g
		}
	}
	return nil, nil
}

// lackingText says what is wrong in a sink because of a gap.
func lackingText(s *checkpoint.State, g *checkpoint.Gap, sink string) string {
	span := "between " + localTime(timeOrNil(s.GapStart(g))) + " and " + localTime(timeOrNil(g.Until))
	if sink == "archive" {
		return "items that expired " + span + " are not in the archive and will not be"
	}
	return "items that changed " + span + " and not since are older than in DynamoDB, " +
		"items that were deleted then are still there"
}

// acceptedText explains what accepted gaps mean for the table's rows; "" if no sink differs.
func acceptedText(s *checkpoint.State) string {
	n := 0
	for i := range s.Gaps {
		if len(s.DifferingSinks(&s.Gaps[i])) > 0 {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(`Because of %s rows differ since %s: items that changed in a gap and not since are older than in
DynamoDB, and items that were deleted in a gap stay in Bigtable. Reading goes on; the table is not ready until
%s waives that for each sink.`,
		render.Count(n, "gap"), localTime(timeOrNil(s.DiffersSince())), "`replicator gaps clear`")
}
