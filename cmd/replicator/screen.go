package main

import (
	"os"
	"time"

	"golang.org/x/term"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/pipeline"
)

// screen reports whether a person watches stdout and allows to draw on it.
func (a *app) screen() bool {
	f, ok := a.out.(*os.File)
	return ok && !a.noColor && os.Getenv("NO_COLOR") == "" && term.IsTerminal(int(f.Fd()))
}

func (a *app) printStatus(s pipeline.Status) error {
	if a.json {
		return a.printJSON(s)
	}
	a.printed = true
	return render.Status(a.out, s, time.Local)
}
