package main

import (
	"context"
	"os"

	"golang.org/x/term"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/waiting"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/wire"
)

// showProgress shows what a table waits for, or with an empty name all tables, until the returned function is called.
func (a *app) showProgress(ctx context.Context, clients *wire.Clients, table string) (stop func()) {
	return waiting.Show(ctx, a.errs, clients.Config(), table, a.showsBars())
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
