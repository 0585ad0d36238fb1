package pipeline

import (
	"context"
	"encoding/json"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// followRehearsals keeps the rehearsals of cutovers that commands publish, until ctx ends. They are
// for the status alone.
func (p *Pipeline) followRehearsals(ctx context.Context) {
	err := p.queue.Rehearsals(ctx, p.o.Name, func(data []byte) {
		var r status.Rehearsed
		err := json.Unmarshal(data, &r)
		if err == nil {
			err = p.rehearsals.Note(r, time.Now())
		}
		if err != nil {
			p.log.Warn("a message about a rehearsed cutover cannot be used", zap.Error(err))
			return
		}
		p.log.Info("a cutover was rehearsed", zap.String("target", r.Target), zap.Float64("write_stop_s", r.WriteStop),
			zap.Strings("refusals", r.Refusals))
	})
	if err != nil {
		p.log.Warn("rehearsals of cutovers will not be shown", zap.Error(err))
	}
}
