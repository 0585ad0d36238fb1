package main

import (
	"context"
	"io"
	"os"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
)

func main() {
	signals := &cli.Signals{}
	a := newApp(os.Stdout, os.Stderr)
	a.Signals = signals
	os.Exit(a.execute(signals.Context(context.Background()), os.Args[1:]))
}

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return newApp(stdout, stderr).execute(ctx, args)
}

func newApp(stdout, stderr io.Writer) *app {
	return &app{&cli.App{Out: stdout, Errs: stderr, Version: buildVersion()}}
}

func (a *app) execute(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetOut(a.Out)
	root.SetErr(a.Errs)
	err := root.ExecuteContext(ctx)
	a.JSON = a.JSON || !a.Accepted && cli.WantsJSON(args) // cobra stops at the first mistake
	return a.Verdict(ctx, err)
}
