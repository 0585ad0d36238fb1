package daemon

import (
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/pipeline"
)

// logService logs that a service fails, once it has for longer than a retry takes, and that it is back.
func (d *Daemon) logService(c pipeline.ServiceChange) {
	if c.Back {
		d.log.Info("a service is back", zap.String("service", c.Service), zap.Duration("after", c.After))
		return
	}
	d.log.Warn("a service fails", zap.String("service", c.Service), zap.Duration("for", c.After), zap.Error(c.Err))
}
