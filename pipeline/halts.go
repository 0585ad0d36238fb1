package pipeline

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/pipeline/outcome"
)

// clearOwnHalt says that what halted the pipeline itself is over, for a beat of its work came through.
func (in *ingest) clearOwnHalt(ctx context.Context) error {
	in.t.halted.Store(nil)
	if err := in.clearHalt(ctx, outcome.Pipeline); err != nil {
		return err
	}
	in.t.observe(in.w.State())
	return nil
}

// clearHalt says that what halted a sink is over, if it was halted. The other sinks' halts stay.
func (in *ingest) clearHalt(ctx context.Context, sink string) error {
	c := in.w.State().ClearEntry(sink)
	if c == nil {
		return nil
	}
	c.By, c.At = "owner", in.t.now()
	if _, err := in.w.Append(ctx, c, nil); err != nil {
		return fmt.Errorf("append control: %w", err)
	}
	in.t.log.Info("the halt is over", zap.String("sink", sink))
	return nil
}

// clearHalts says that the halts are over whose entry the sink's mark has passed, and those of sinks that are not there
// any more.
func (in *ingest) clearHalts(ctx context.Context) error {
	s := in.w.State()
	for sink, h := range s.AllHalts() {
		if m, ok := s.Marks[sink]; sink == outcome.Pipeline || ok && m.Seq < h.Seq {
			continue
		}
		if err := in.clearHalt(ctx, sink); err != nil {
			return err
		}
	}
	return nil
}
