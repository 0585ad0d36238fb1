package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/tailrace-cdc/replicator/clients"
)

// ShowProgress shows what a table waits for, or with an empty name all tables, until the returned
// function is called.
func (a *App) ShowProgress(ctx context.Context, clients *clients.Clients, table string) (stop func()) {
	return showWaiting(ctx, a.Errs, clients.Config(), table, a.ShowsBars())
}

// ShowsBars reports whether stderr may show a moving bar: it is a terminal, and neither --json nor
// --no-color is set.
func (a *App) ShowsBars() bool {
	return a.Terminal() && !a.JSON && !a.NoColor && os.Getenv("NO_COLOR") == ""
}

// Redraws reports whether stdout is a terminal that may be redrawn.
func (a *App) Redraws() bool {
	f, ok := a.Out.(*os.File)
	return ok && !a.NoColor && os.Getenv("NO_COLOR") == "" && term.IsTerminal(int(f.Fd()))
}

// Terminal reports whether stderr is a terminal.
func (a *App) Terminal() bool {
	f, ok := a.Errs.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Confirmed prompts on a terminal; without one nothing is confirmed.
func (a *App) Confirmed() bool {
	if !a.Terminal() || !term.IsTerminal(int(os.Stdin.Fd())) {
		return false
	}
	fmt.Fprint(a.Errs, "Go on? Type yes: ")
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	return strings.TrimSpace(line) == "yes"
}
