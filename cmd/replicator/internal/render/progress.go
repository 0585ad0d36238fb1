package render

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// Steps returns how far copies and resyncs are, of one table or of all.
func Steps(s pipeline.Status, table string) (steps []Step) {
	for i := range s.Tables {
		t := &s.Tables[i]
		if table != "" && t.Source != table || t.State == status.StandBy {
			continue
		}
		if c := t.Copy; c != nil {
			steps = append(steps, Step{Name: "copying " + t.Source, Percent: c.Percent, Text: c.Details()})
		}
		if t.ResyncSince != nil {
			steps = append(steps, resyncStep(t))
		}
	}
	return steps
}

// resyncStep returns how far the resync of a whole table is. Its share is the share of the items
// that were compared: how long the repair takes is not known before.
func resyncStep(t *pipeline.TableStatus) Step {
	step := Step{Name: "resyncing " + t.Source, Text: "since " + ClockTime(*t.ResyncSince)}
	if t.State == "recovering" || t.State == "healing" {
		step.Name = t.State + " " + t.Source
	}
	r := t.Resync
	if r == nil {
		return step
	}
	if total := max(r.Items, r.Estimate); total > 0 {
		step.Percent = 100 * float64(r.Items) / float64(total)
	}
	if step.Text = r.Doing; r.Doing != "waiting" {
		step.Text += " · " + r.Differences()
	}
	if r.Why != "" {
		step.Text += " · " + r.Why
	}
	return step
}

// barWidth is the width of a bar that is not drawn by Bars.
const barWidth = 24

// PrintBars writes a line with a bar for each step, for output that is redrawn as a whole.
func PrintBars(out io.Writer, steps []Step) {
	for _, s := range steps {
		full := min(barWidth, int(s.Percent*barWidth/100))
		fmt.Fprintf(out, "%s [%s%s] %3.0f %%  %s\n", s.Name, strings.Repeat("=", full), strings.Repeat("-", barWidth-full),
			s.Percent, s.Text)
	}
	if len(steps) > 0 {
		fmt.Fprintln(out)
	}
}

// Lines writes a plain line for each step, with the time.
func Lines(out io.Writer, steps []Step, now time.Time) {
	for _, s := range steps {
		fmt.Fprintf(out, "%s %s: %.0f %% · %s\n", now.UTC().Format(timeOfDay), s.Name, s.Percent, s.Text)
	}
}

// Waiting writes what a table waits for, or with an empty name all tables: copies and resyncs, else
// why they are not ready. status is nil where no daemon answers at admin.
func Waiting(out io.Writer, status *pipeline.Status, table, admin string, now time.Time) {
	say := func(text string) { fmt.Fprintf(out, "%s waits: %s\n", now.UTC().Format(timeOfDay), text) }
	if status == nil {
		say("no replicator answers at " + admin + " (admin.listen); `replicator status` shows whether one runs elsewhere")
		return
	}
	if steps := Steps(*status, table); len(steps) > 0 {
		Lines(out, steps, now)
		return
	}
	reasons := reasonsOf(status, table)
	for _, reason := range reasons {
		say(reason)
	}
	if len(reasons) == 0 {
		say("until each shard was read, and what it brought was applied")
	}
}

// reasonsOf returns what a table waits for, or with an empty name all tables. A dead letter is no
// such reason: a wait ends because of it, or the caller has accepted it.
func reasonsOf(s *pipeline.Status, table string) []string {
	var tables []pipeline.TableStatus
	for i := range s.Tables {
		if t := s.Tables[i]; table == "" || t.Source == table {
			t.Explain(slices.DeleteFunc(slices.Clone(t.Why), func(r status.Reason) bool {
				return r.Code == status.WhyLetters
			})...)
			tables = append(tables, t)
		}
	}
	return slices.Concat(s.Failing, pipeline.Summarize(s.Pipeline, tables).Reasons)
}
