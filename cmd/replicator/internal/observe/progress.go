package observe

import (
	"context"
	"time"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
)

// progressPeriod is how often the daemon is asked how far it is.
const progressPeriod = time.Second

// Progress calls show with the daemon's status every second until ctx ends. While no daemon answers, it is not called.
func Progress(ctx context.Context, cfg *config.Config, show func(pipeline.Status)) {
	for failure.Pause(ctx, progressPeriod) == nil {
		if status := Daemon(ctx, cfg); status != nil {
			show(*status)
		}
	}
}
