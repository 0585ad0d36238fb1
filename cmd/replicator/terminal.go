package main

import (
	"context"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/bars"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/observe"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/wire"
	"github.com/tailrace-cdc/replicator/pipeline"
)

// linesEvery is how often a waiting command prints how far the daemon is, where no bar can be drawn.
const linesEvery = time.Minute

// showProgress shows how far the daemon's resync of a table is, until the returned function is called.
func (a *app) showProgress(ctx context.Context, clients *wire.Clients, table string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	drawn, printed, done := bars.New(a.errs), time.Now(), make(chan struct{})
	go func() {
		defer close(done)
		observe.Progress(ctx, clients.Config(), func(s pipeline.Status) {
			switch steps := render.Steps(s, table); {
			case a.showsBars():
				drawn.Show(steps)
			case time.Since(printed) >= linesEvery:
				printed = time.Now()
				render.Lines(a.errs, steps, printed)
			}
		})
	}()
	return func() {
		cancel()
		<-done
		drawn.Close()
	}
}

// showsBars reports whether stderr may show a moving bar: it is a terminal, and neither --json nor --no-color is set.
func (a *app) showsBars() bool {
	return a.terminal() && !a.json && !a.noColor && os.Getenv("NO_COLOR") == ""
}

// redraws reports whether stdout is a terminal that may be redrawn.
func (a *app) redraws() bool {
	f, ok := a.out.(*os.File)
	return ok && !a.noColor && os.Getenv("NO_COLOR") == "" && term.IsTerminal(int(f.Fd()))
}

// terminal reports whether stderr is a terminal.
func (a *app) terminal() bool {
	f, ok := a.errs.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
