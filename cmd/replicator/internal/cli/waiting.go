package cli

import (
	"context"
	"io"
	"time"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
)

const (
	askEvery   = time.Second     // how often the daemon is asked
	firstLine  = 5 * time.Second // until the first line
	linesEvery = time.Minute     // between two lines
)

// showWaiting shows what a table waits for, or with an empty name all tables, until the returned
// function is called: a bar for each copy and resync if asBars, and lines from time to time.
func showWaiting(ctx context.Context, out io.Writer, cfg *config.Config, table string, asBars bool) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	drawn, next, done := render.NewBars(out), time.Now().Add(firstLine), make(chan struct{})
	go func() {
		defer close(done)
		for failure.Pause(ctx, askEvery) == nil {
			status := control.Daemon(ctx, cfg)
			if status != nil && asBars {
				if steps := render.Steps(*status, table); len(steps) > 0 {
					drawn.Show(steps)
					continue
				}
			}
			if now := time.Now(); now.After(next) {
				next = now.Add(linesEvery)
				render.Waiting(out, status, table, cfg.Admin.Listen, now)
			}
		}
	}()
	return func() {
		cancel()
		<-done
		drawn.Close()
	}
}
