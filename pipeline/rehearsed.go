package pipeline

import (
	"context"
	"encoding/json"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// hearRehearsals notes what commands tell of rehearsed cutovers, until ctx ends. Without it the
// status has none: nothing depends on it.
func (p *Pipeline) hearRehearsals(ctx context.Context) {
	err := p.queue.Rehearsals(ctx, p.o.Name, func(data []byte) {
		var r status.Rehearsed
		if err := json.Unmarshal(data, &r); err != nil || r.Target == "" {
			p.log.Warn("what was told of a rehearsal cannot be read", zap.Error(err))
			return
		}
		p.rehearsals.Note(r)
		p.log.Info("a cutover was rehearsed", zap.String("target", r.Target), zap.Float64("write_stop_s", r.WriteStop),
			zap.Strings("refusals", r.Refusals))
	})
	if err != nil {
		p.log.Warn("rehearsals of cutovers will not be shown", zap.Error(err))
	}
}
