package tracing

import (
	"context"
	"slices"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// process returns the tracer of a process, and where its spans are.
func process(t *testing.T, share float64) (*Tracer, *tracetest.InMemoryExporter) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	p := sdktrace.NewTracerProvider(append(Options(share), sdktrace.WithSyncer(spans))...)
	t.Cleanup(func() {
		if err := p.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return New(p), spans
}

// frameAt returns a frame that took three seconds from the read of its page to its storage.
func frameAt(h checkpoint.Hash) *Frame {
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	return &Frame{
		Table: "Orders", At: checkpoint.Mark{Seq: 7, Hash: h}, Records: 2, Bytes: 100,
		Sent: at.Add(2 * time.Second), Stored: at.Add(3 * time.Second),
		Reads: []Read{{Shard: "s", Asked: at, Answered: at.Add(time.Second), Records: 2, Bytes: 300}},
	}
}

// TestFrameIsOneTraceInAllProcesses: one process stores a frame, and two apply it, the second after
// the first has died.
func TestFrameIsOneTraceInAllProcesses(t *testing.T) {
	f := frameAt(checkpoint.Hash{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	stores, stored := process(t, 1)
	stores.Stored(f)
	spans := stored.GetSpans()
	for range 2 {
		applies, applied := process(t, 1)
		applies.Apply("Orders", "bigtable", f.At, 2).End()
		spans = append(spans, applied.GetSpans()...)
	}
	root := spans[slices.IndexFunc(spans, func(s tracetest.SpanStub) bool { return s.Name == "frame" })]
	names := map[string]int{}
	for _, s := range spans {
		names[s.Name]++
		if s.SpanContext.TraceID() != trace.TraceID(f.At.Hash) {
			t.Errorf("%s is in trace %s, not in that of the entry's hash %s", s.Name, s.SpanContext.TraceID(), f.At.Hash)
		}
		if s.Name != "frame" && s.Parent.SpanID() != root.SpanContext.SpanID() {
			t.Errorf("the parent of %s is %s, not the frame %s", s.Name, s.Parent.SpanID(), root.SpanContext.SpanID())
		}
	}
	if names["frame"] != 1 || names["GetRecords"] != 1 || names["append"] != 1 || names["apply bigtable"] != 2 {
		t.Errorf("spans %v", names)
	}
	if !root.StartTime.Equal(f.Reads[0].Asked) || !root.EndTime.Equal(f.Stored) {
		t.Errorf("the frame took from %s to %s, want from %s to %s", root.StartTime, root.EndTime, f.Reads[0].Asked, f.Stored)
	}
}

// TestProcessesTakeTheSameFrames: whatever share of the frames is traced, a frame that is has its
// whole trace.
func TestProcessesTakeTheSameFrames(t *testing.T) {
	stores, stored := process(t, 0.3)
	applies, _ := process(t, 0.3)
	taken, frames := 0, 1000
	for i := range frames {
		h := checkpoint.Hash{byte(i), byte(i >> 8), 1, 1, 1, 1, 1, 1, byte(i * 151), byte(i * 31), byte(i), byte(i >> 3)}
		stored.Reset()
		stores.Stored(frameAt(h))
		span := applies.Apply("Orders", "bigtable", checkpoint.Mark{Hash: h}, 1)
		if (len(stored.GetSpans()) > 0) != (span != nil) {
			t.Fatalf("frame %x: %d spans where it was stored, and where it is applied %v", h, len(stored.GetSpans()), span)
		}
		if span != nil {
			span.End()
			taken++
		}
	}
	if taken == 0 || taken == frames {
		t.Errorf("%d of %d frames are traced", taken, frames)
	}
}

func TestNothingIsTracedWithoutATracer(t *testing.T) {
	var off *Tracer
	off.Stored(frameAt(checkpoint.Hash{1}))
	if span := off.Apply("Orders", "bigtable", checkpoint.Mark{}, 1); span != nil {
		t.Errorf("span %v", span)
	}
	if ctx := t.Context(); Within(ctx, nil) != ctx {
		t.Error("the context of a call has changed")
	}
}
