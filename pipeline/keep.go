package pipeline

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// keepQueue looks after the queue's store until the returned function is called. That is longer than ctx: a drain
// stores marks too.
func (p *Pipeline) keepQueue(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var g errgroup.Group
	g.Go(func() error { return p.queue.Run(ctx) })
	return func() {
		cancel()
		_ = g.Wait() // nil: Keep only ends with its context
	}
}
