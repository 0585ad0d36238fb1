package ingest

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/source"
)

// HeartbeatCode names the warning in logs and in docs/operations.md.
const HeartbeatCode = "heartbeat"

// heartbeatWriters bounds the writes under way.
const heartbeatWriters = 4

// Run writes heartbeats with put, every so often and whenever other shards are open, until ctx
// ends; nil then. Writes that fail are tried again with the next ones: without heartbeats the
// shards are read all the same.
func (p *HeartbeatPlanner) Run(
	ctx context.Context, every time.Duration, log *zap.Logger, put func(ctx context.Context, key string) error,
) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	fails := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-p.changed:
		}
		err := p.write(ctx, put)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !fails:
			log.Warn("heartbeats cannot be written: that idle shards are idle is assumed", zap.String("code", HeartbeatCode),
				zap.Error(err), zap.String("hint", source.Hint(err)))
		case err == nil && fails:
			log.Info("heartbeats are written again")
		}
		fails = err != nil
	}
}

// write writes what is due, and returns the first error.
func (p *HeartbeatPlanner) write(ctx context.Context, put func(ctx context.Context, key string) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(heartbeatWriters)
	for _, key := range p.due() {
		g.Go(func() error {
			err := put(ctx, key)
			if errors.Is(err, source.ErrNotHeartbeat) {
				p.skip(key)
				return nil
			}
			return err
		})
	}
	return g.Wait()
}
