package ingest

import (
	"context"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
)

// clearOwnHalt ends a halt of the pipeline itself, because a beat of its work was stored.
//
// Rule 13: a halt for what the row in Bigtable held is not over while Bigtable does not answer. The
// table is read on without the row, and only the row can show that the cause is gone.
func (w *writer) clearOwnHalt(ctx context.Context) error {
	known := w.o.Row.Agrees()
	w.o.Beating(known)
	if h := w.log.State().AllHalts()[outcome.Pipeline]; h == nil || known || !outcome.ByRow(h.Code) {
		if err := w.clearHalt(ctx, outcome.Pipeline); err != nil {
			return err
		}
	}
	w.observe()
	return nil
}

// clearHalt stores that the halt of a sink is over, if it was halted. The halts of other sinks
// stay.
func (w *writer) clearHalt(ctx context.Context, sink string) error {
	c := w.log.State().ClearEntry(sink)
	if c == nil {
		return nil
	}
	c.By, c.At = "owner", w.o.now()
	if _, err := w.log.Append(ctx, c, nil); err != nil {
		return fmt.Errorf("append control: %w", err)
	}
	w.o.Logger.Info("the halt is over", zap.String("sink", sink))
	return nil
}

// clearsItself reports whether a sink has no mark in the log and ends its halts by itself: one
// behind the archive's own stream, while there is an archive.
func clearsItself(s *checkpoint.State, sink string) bool {
	of, _, behind := strings.Cut(sink, ".")
	_, marked := s.Marks[of]
	return behind && marked
}

// clearPassedHalts ends the halts that the sink's mark has passed, and the halts of sinks that do
// not exist any more.
func (w *writer) clearPassedHalts(ctx context.Context) error {
	s := w.log.State()
	for sink, h := range s.AllHalts() {
		if m, ok := s.Marks[sink]; sink == outcome.Pipeline || ok && m.Seq < h.Seq || clearsItself(s, sink) {
			continue
		}
		if err := w.clearHalt(ctx, sink); err != nil {
			return err
		}
	}
	return nil
}
