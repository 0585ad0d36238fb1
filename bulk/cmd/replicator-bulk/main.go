// Command replicator-bulk copies an export of a DynamoDB table into Bigtable on Apache Beam, under
// an order of the daemon, and compares exports with a target. See docs/bulk.md.
//
// It is launcher and worker: an engine starts its processes with the flags of Beam, and beam.Init
// does not return in them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/core/runtime/exec/optimized"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/gcs"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/local"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/dataflow"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/flink"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/spark"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/universal"

	"github.com/tailrace-cdc/replicator/bulk/comparison"
	"github.com/tailrace-cdc/replicator/bulk/launch"
	"github.com/tailrace-cdc/replicator/bulk/worker"
	"github.com/tailrace-cdc/replicator/failure"
)

var version string // of the release

// engines are the runners of Beam that --runner accepts.
var engines = []string{"prism", "flink", "spark", "dataflow", "universal"}

const usage = `replicator-bulk copy --pipeline P --table T --bigtable PROJECT/INSTANCE [--runner ENGINE] [-- FLAGS]
replicator-bulk verify --comparison URL [--runner ENGINE] [-- FLAGS]

FLAGS are flags of Beam and of the engine.

copy copies an export of a table under the order that the daemon has opened for it.
verify compares exports with their target; "replicator verify --workers" makes the plan, prints the command, and settles
what is found. Both are in docs/bulk.md.
Exit codes: 0 every file is copied, or every range compared; 1 some are not; 2 usage; 3 there is no open order, or no
plan.

`

func main() {
	if len(os.Args) > 1 && isWorker(os.Args[1]) {
		flag.Parse()
		beam.Init() // does not return in a worker
		os.Exit(launch.Usage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// isWorker reports whether the first argument is a flag of Beam: an engine starts its workers so.
func isWorker(first string) bool {
	return strings.HasPrefix(first, "-") && !slices.Contains([]string{"-h", "-help", "--help", "--version"}, first)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 1 && args[0] == "--version" {
		_, _ = fmt.Fprintln(stdout, "replicator-bulk", version)
		return launch.All
	}
	if len(args) == 0 || args[0] != "copy" && args[0] != "verify" {
		_, _ = fmt.Fprint(stderr, usage)
		return launch.Usage
	}
	c, err := parse(args[0], args[1:], stderr)
	if errors.Is(err, flag.ErrHelp) {
		return launch.All
	}
	if err != nil {
		return explain(stderr, launch.Usage, err)
	}
	run := c.copy
	if args[0] == "verify" {
		run = c.verify
	}
	code, err := run(ctx, stdout, stderr)
	return explain(stderr, code, err)
}

// explain prints an error with what to do, and returns the exit code.
func explain(stderr io.Writer, code int, err error) int {
	if err == nil {
		return code
	}
	_, _ = fmt.Fprintln(stderr, "replicator-bulk:", err)
	if _, hint := failure.Of(err); hint != "" {
		_, _ = fmt.Fprintln(stderr, "  ", hint)
	}
	return code
}

// command is what the command line asks for.
type command struct {
	place  worker.Place
	at     comparison.Place // of verify
	runner string
	dryRun bool
}

// workerBinary names this program for the workers. Without a name the SDK compiles the module anew,
// which is not there.
func (c *command) workerBinary() error {
	if c.runner == engines[0] || *jobopts.WorkerBinary != "" {
		return nil
	}
	if runtime.GOOS != "linux" {
		return errors.New("workers run on Linux: name the program of a Linux release, -- --worker_binary=PATH")
	}
	path, err := os.Executable()
	*jobopts.WorkerBinary = path
	return err
}
