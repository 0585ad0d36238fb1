package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/control"
)

// linePeriod is the time between two lines about the progress of a command.
const linePeriod = 5 * time.Second

// progressText returns how far a command is.
func progressText(p *control.RequestProgress) string {
	text := fmt.Sprintf("%d of %s done", p.Done, render.Count(int(p.Asked), "item"))
	if !p.All {
		text += ", more are being asked for"
	}
	if p.Why != "" {
		text += "; " + p.Why
	}
	return text
}

// reportProgress returns a Progress that writes a line every few seconds.
func reportProgress(w io.Writer, table string) func(*control.RequestProgress) {
	last := time.Now()
	return func(p *control.RequestProgress) {
		if p != nil && time.Since(last) >= linePeriod {
			last = time.Now()
			fmt.Fprintf(w, "%s: %s\n", table, progressText(p))
		}
	}
}

// drawProgress returns a Progress that draws a bar on a terminal.
func drawProgress(terminal io.Writer, table string) func(*control.RequestProgress) {
	drawn := render.NewBars(terminal)
	return func(p *control.RequestProgress) {
		if p == nil {
			drawn.Close()
			return
		}
		step := render.Step{Name: "resyncing items of " + table, Text: progressText(p)}
		if p.Asked > 0 {
			step.Percent = 100 * float64(p.Done) / float64(p.Asked)
		}
		drawn.Show([]render.Step{step})
	}
}

// reportAway returns an Away that writes a line each time.
func reportAway(w io.Writer, table string) func(why error) {
	return func(why error) {
		if why != nil {
			fmt.Fprintf(w, "%s: what was asked for waits until a replicator owns the table again: %v\n", table, why)
			return
		}
		fmt.Fprintf(w, "%s: a replicator owns the table again\n", table)
	}
}
