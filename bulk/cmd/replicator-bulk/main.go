// Command replicator-bulk copies an export of a DynamoDB table into Bigtable on Apache Beam, under
// an order of the daemon. See docs/bulk.md.
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
	"golang.org/x/term"

	"github.com/tailrace-cdc/replicator/bulk/launch"
	"github.com/tailrace-cdc/replicator/bulk/pipe"
	"github.com/tailrace-cdc/replicator/bulk/worker"
	"github.com/tailrace-cdc/replicator/failure"
)

var version string // of the release

// engines are the runners of Beam that are tried.
var engines = []string{"prism", "flink", "spark", "dataflow", "universal"}

const usage = `replicator-bulk copy --pipeline P --table T --bigtable PROJECT/INSTANCE [--runner ENGINE] [-- FLAGS]

FLAGS are flags of Beam and of the engine.

Copies an export of a table under the order that the daemon has opened for it (docs/bulk.md).
Exit codes: 0 every file is copied, 1 some are not, 2 usage, 3 there is no open order.

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
	if len(args) == 0 || args[0] != "copy" {
		_, _ = fmt.Fprint(stderr, usage)
		return launch.Usage
	}
	c, err := parse(args[1:], stderr)
	if errors.Is(err, flag.ErrHelp) {
		return launch.All
	}
	if err != nil {
		return report(stderr, launch.Usage, err)
	}
	code, err := c.copy(ctx, stdout, stderr)
	return report(stderr, code, err)
}

// report prints an error with what to do, and returns the exit code.
func report(stderr io.Writer, code int, err error) int {
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
	runner string
	dryRun bool
}

// parse reads the command line. What follows -- are flags of Beam, which has 66 of its own, of one
// name space: ours are read apart from them.
func parse(args []string, stderr io.Writer) (*command, error) {
	c := &command{}
	var instance string
	own := flag.NewFlagSet("replicator-bulk copy", flag.ContinueOnError)
	own.SetOutput(stderr)
	own.Usage = func() {
		_, _ = fmt.Fprint(stderr, usage)
		own.PrintDefaults()
	}
	own.StringVar(&c.place.Pipeline, "pipeline", "", "`name` of the pipeline")
	own.StringVar(&c.place.Table, "table", "", "`name` of the source table")
	own.StringVar(&instance, "bigtable", "", "`PROJECT/INSTANCE` of the target")
	own.StringVar(&c.place.Profile, "app-profile", "", "app `profile` with which the order is found; the order names the profile for writes")
	own.StringVar(&c.runner, "runner", engines[0], "`engine`: "+strings.Join(engines, ", "))
	own.BoolVar(&c.dryRun, "dry-run", false, "check order, mapping and export, and print what would be copied")
	own.StringVar(&c.place.Export, "export", "", "`URL` of a copy of the export, as workers reach it: gs://bucket/prefix")
	own.StringVar(&c.place.AWSRegion, "aws-region", "", "`region` of s3:// URLs that name none")
	own.StringVar(&c.place.Scratch, "scratch", "", "`folder` in which a worker keeps the file that it reads")
	emulator, s3 := os.Getenv("BIGTABLE_EMULATOR_HOST"), os.Getenv("AWS_ENDPOINT_URL_S3")
	own.StringVar(&c.place.Endpoint, "bigtable-endpoint", emulator, "`host:port` of an emulator")
	own.StringVar(&c.place.S3Endpoint, "s3-endpoint", s3, "`URL` of another server of S3")
	if err := own.Parse(args); err != nil {
		return nil, err
	}
	project, name, ok := strings.Cut(instance, "/")
	c.place.Project, c.place.Instance = project, name
	switch {
	case c.place.Pipeline == "" || c.place.Table == "":
		return nil, errors.New("--pipeline and --table are missing: `replicator status` prints the whole command")
	case !ok || project == "" || name == "":
		return nil, errors.New("--bigtable must be PROJECT/INSTANCE")
	case !slices.Contains(engines, c.runner):
		return nil, fmt.Errorf("--runner must be one of %s", strings.Join(engines, ", "))
	}
	if err := flag.CommandLine.Parse(own.Args()); err != nil {
		return nil, err
	}
	if flag.NArg() > 0 {
		return nil, fmt.Errorf("flags of Beam follow --, and %q is none", flag.Arg(0))
	}
	return c, c.workerBinary()
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

// copy waits for the order and runs the job.
func (c *command) copy(ctx context.Context, stdout, stderr io.Writer) (int, error) {
	beam.Init()
	l := launch.New(c.place, stderr, term.IsTerminal(int(os.Stderr.Fd())))
	find := l.Await
	if c.dryRun {
		l.Out, find = stdout, l.Look
	}
	order, err := find(ctx)
	var closed *launch.ClosedError
	switch {
	case errors.As(err, &closed) && closed.Done:
		_, _ = fmt.Fprintln(stdout, closed.Why)
		return launch.All, nil
	case err != nil:
		return launch.Closed, err
	case c.dryRun:
		if err := l.Plan(ctx, order); err != nil {
			return launch.Closed, err
		}
		return launch.All, nil
	}
	code, err := l.Run(ctx, order, c.engine)
	if ctx.Err() != nil {
		err = errors.Join(err, errors.New("interrupted: workers of an engine outside this process may go on; "+
			"`replicator copy takeback` ends them within two minutes"))
	}
	return code, err
}

// engine runs the job on the engine.
func (c *command) engine(ctx context.Context, p worker.Place, files int) error {
	pipeline, scope := beam.NewPipelineWithRoot()
	pipe.Copy(scope, p, files)
	_, err := beam.Run(ctx, c.runner, pipeline)
	return err
}
