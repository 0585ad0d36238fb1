// Command replicator carries the changes of DynamoDB tables into Bigtable.
//
//	        DynamoDB Streams                      one process, one pipeline, any number of tables
//	               │ raw pages
//	┌──────────────▼──────────────────────────────────────────────────────────────────────────────┐
//	│ source   shard graph, iterators, pace        config   one strict file                       │
//	│    │ versions, frames                                                                       │
//	│ queue    one log per table: JetStream, ◄──── marks, beats, pause, resume                    │
//	│    │     embedded or outside; one writer     checkpoint   state = fold(log)                 │
//	│    │ read in order from the sink's mark                                                     │
//	│ pipeline lanes by item key ──► transform     the mapping, compiled                          │
//	│    │ writes                    │ events, refusals                                           │
//	│ sink/bigtable              sink/archive      dead letters          admin   metrics, health  │
//	└────┼───────────────────────────┼───────────────────────────────────────────┼────────────────┘
//	     ▼ CheckAndMutateRow         ▼ one file a day, a subject                  ▼ :9464
//	 Bigtable                     archive                                     Prometheus, probes
//
// Each subcommand has a file of its own here. Those that look at a running daemon (status, queue, dlq, pause, resume)
// read and write its log: there is no other interface, so they work against a stopped daemon as well.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// The first signal drains and saves; restoring the default makes the second one exit at once.
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, restore)
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	a := &app{out: stdout, errs: stderr}
	root := a.root()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return a.verdict(root.ExecuteContext(ctx))
}
