package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
)

func main() {
	// The first signal drains and saves; restoring the default makes the second one exit at once.
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, restore)
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	a := &app{&cli.App{Out: stdout, Errs: stderr, Version: buildVersion()}}
	root := a.root()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	a.JSON = a.JSON || !a.Accepted && cli.WantsJSON(args) // cobra stops at the first mistake
	return a.Verdict(ctx, err)
}
