package pipeline

import (
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zaptest"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
)

// TestMarkBeyondWhatTheWriterKnowsIsDoubt: a sink reads the log by itself, and sees a control entry of somebody else
// before the writer's next append is refused for it. That is no broken log.
func TestMarkBeyondWhatTheWriterKnowsIsDoubt(t *testing.T) {
	ctx := t.Context()
	q, err := queue.Open(ctx, queue.Options{Pipeline: "p", Dir: t.TempDir(), MaxBytes: 1 << 30}, zaptest.NewLogger(t), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	l, err := q.CreateLog(ctx, "Orders", "token")
	if err != nil {
		t.Fatal(err)
	}
	w, err := l.Claim(ctx, queue.ClaimOptions{Owner: "me"})
	if err != nil {
		t.Fatal(err)
	}
	known := w.State().Seq
	foreign, err := l.Control(ctx, &checkpoint.Control{Clear: true, By: "somebody"})
	if err != nil || foreign <= known {
		t.Fatalf("control at %d behind %d: %v", foreign, known, err)
	}
	a := &applier{sink: sinkBigtable}
	p := newPrefix(checkpoint.Mark{})
	handedOut(p, known, 1).done(1)
	handedOut(p, foreign, 0)
	a.prefix.Store(p)
	err = (&ingest{w: w, sinks: []*applier{a}}).marks(ctx)
	corrupt := (*checkpoint.CorruptError)(nil)
	if !errors.Is(err, queue.ErrDoubt) || !doubtful(err) || errors.As(err, &corrupt) {
		t.Errorf("error %v, want doubt", err)
	}
	if err := w.Recover(ctx); err != nil || w.State().Seq != foreign {
		t.Errorf("after the doubt the writer knows %d, want %d: %v", w.State().Seq, foreign, err)
	}
}
