package ask

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/bars"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/observe"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
)

const (
	showPeriod = time.Second     // between two looks at the progress
	linePeriod = 5 * time.Second // between two lines about it
)

// Progress is how far a command is.
type Progress struct {
	Done, Asked int64  // items
	All         bool   // everything that the command asks for is in Asked
	Why         string // what the owner waits for, if that takes longer than usual
}

// count is Progress while it changes.
type count struct {
	asked, done atomic.Int64
	all         atomic.Bool
}

// show calls a.Progress until the returned function is called.
func (a *Asker) show(ctx context.Context, n *count) (stop func()) {
	if a.Progress == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for failure.Pause(ctx, showPeriod) == nil {
			p := &Progress{Done: n.done.Load(), Asked: n.asked.Load(), All: n.all.Load()}
			if a.Why != nil {
				p.Why = a.Why(ctx)
			}
			a.Progress(p)
		}
	}()
	return func() {
		cancel()
		<-ended
		a.Progress(nil)
	}
}

// Text returns the progress in words.
func (p *Progress) Text() string {
	text := fmt.Sprintf("%d of %s done", p.Done, render.Count(int(p.Asked), "item"))
	if !p.All {
		text += ", more are being asked for"
	}
	if p.Why != "" {
		text += "; " + p.Why
	}
	return text
}

// Report returns a Progress that writes a line every few seconds.
func Report(w io.Writer, table string) func(*Progress) {
	last := time.Now()
	return func(p *Progress) {
		if p != nil && time.Since(last) >= linePeriod {
			last = time.Now()
			fmt.Fprintf(w, "%s: %s\n", table, p.Text())
		}
	}
}

// Draw returns a Progress that draws a bar on a terminal.
func Draw(terminal io.Writer, table string) func(*Progress) {
	drawn := bars.New(terminal)
	return func(p *Progress) {
		if p == nil {
			drawn.Close()
			return
		}
		step := bars.Step{Name: "resyncing items of " + table, Text: p.Text()}
		if p.Asked > 0 {
			step.Percent = 100 * float64(p.Done) / float64(p.Asked)
		}
		drawn.Show([]bars.Step{step})
	}
}

// WhyOf returns a Why that asks the daemon of a configuration.
func WhyOf(cfg *config.Config, table string) func(context.Context) string {
	return func(ctx context.Context) string {
		status := observe.Daemon(ctx, cfg)
		if status == nil {
			return ""
		}
		for i := range status.Tables {
			if t := &status.Tables[i]; t.Source == table && t.Requests != nil {
				return t.Requests.Why
			}
		}
		return ""
	}
}
