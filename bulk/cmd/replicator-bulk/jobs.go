package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"golang.org/x/term"

	"github.com/tailrace-cdc/replicator/bulk/launch"
	"github.com/tailrace-cdc/replicator/bulk/pipe"
	"github.com/tailrace-cdc/replicator/bulk/worker"
	"github.com/tailrace-cdc/replicator/verify/distributed"
)

// verify runs the job that compares.
func (c *command) verify(ctx context.Context, stdout, stderr io.Writer) (int, error) {
	beam.Init()
	l := &launch.Comparison{Launch: launch.New(c.place, stderr, term.IsTerminal(int(os.Stderr.Fd()))), At: c.at}
	if c.dryRun {
		l.Out = stdout
		if err := l.DryRun(ctx); err != nil {
			return launch.Closed, err
		}
		return launch.All, nil
	}
	return l.Run(ctx, func(ctx context.Context, plan *distributed.Plan) error {
		pipeline, scope := beam.NewPipelineWithRoot()
		pipe.Compare(scope, c.at, plan)
		_, err := beam.Run(ctx, c.runner, pipeline)
		return err
	})
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
