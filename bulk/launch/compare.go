package launch

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/bulk/comparison"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/verify/distributed"
)

// Comparison is one launch of a job that compares.
type Comparison struct {
	*Launch
	At comparison.Place
}

// Run runs the job, shows its progress, and returns the exit code: which ranges have findings
// afterwards. The error of the engine is printed, and decides nothing.
func (c *Comparison) Run(ctx context.Context, job func(context.Context, *distributed.Plan) error) (int, error) {
	folder, plan, err := c.At.Plan(ctx)
	if err != nil {
		return Closed, err
	}
	defer func() { _ = folder.Close() }() // what was written is durable
	stored, err := folder.Stored(ctx, plan)
	if err != nil {
		return Closed, err
	}
	c.print("comparison %s of %s: %d files, %d of %d ranges are compared already",
		plan.ID, plan.Target, plan.Files(), len(stored), plan.Ranges())
	if len(stored) == plan.Ranges() {
		return All, nil
	}
	showing, ended := context.WithCancel(ctx)
	var g errgroup.Group
	g.Go(func() error { c.show(showing, folder, plan); return nil })
	began := time.Now()
	failed := job(ctx, plan)
	ended()
	_ = g.Wait() // it returns no error
	if failed != nil {
		c.print("the engine reports: %s", failed)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if stored, err = folder.Stored(last, plan); err != nil {
		return NotAll, err
	}
	c.print("%d of %d ranges in %s", len(stored), plan.Ranges(), time.Since(began).Round(time.Second))
	if len(stored) < plan.Ranges() {
		return NotAll, fmt.Errorf("%d of %d ranges have no findings: launch again", plan.Ranges()-len(stored), plan.Ranges())
	}
	c.print("every range is compared: `replicator verify --workers` settles what was found")
	return All, nil
}

// DryRun checks what the job needs, as far as this process can, and prints what it would do.
func (c *Comparison) DryRun(ctx context.Context) error {
	opened, err := comparison.Open(ctx, c.At)
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }() // nothing was written
	return opened.Describe(ctx, c.print)
}

// show prints how many ranges have findings, until ctx ends.
func (c *Comparison) show(ctx context.Context, folder *distributed.Folder, plan *distributed.Plan) {
	for failure.Pause(ctx, c.Line) == nil {
		stored, err := folder.Stored(ctx, plan)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			c.print("list ranges: %s", err)
		default:
			c.print("%d of %d ranges", len(stored), plan.Ranges())
		}
	}
}
