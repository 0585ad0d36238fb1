package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// Tracer makes the spans of frames. A nil Tracer makes none, which costs nothing.
type Tracer struct{ tracer trace.Tracer }

// scope names the origin of the spans.
const scope = "github.com/tailrace-cdc/replicator"

// New returns a tracer that sends its spans to the provider, which was made with Options.
func New(p trace.TracerProvider) *Tracer { return &Tracer{p.Tracer(scope)} }

// Options returns the options of a provider for New: it takes a share of the frames, from 0 to 1,
// and gives them the ids by which all processes know them.
//
// Whether a frame is taken depends on its trace id alone: so the process that has stored it and the
// one that applies it take the same ones.
func Options(share float64) []sdktrace.TracerProviderOption {
	return []sdktrace.TracerProviderOption{
		sdktrace.WithSampler(sdktrace.TraceIDRatioBased(share)), sdktrace.WithIDGenerator(ids{}),
	}
}

// Frame is a frame that was stored in the log of a table.
type Frame struct {
	Table        string          // in DynamoDB
	At           checkpoint.Mark // of the frame's entry
	Records      int
	Bytes        int // of the frame
	Sent, Stored time.Time
	Reads        []Read
}

// Read is a GetRecords call with a page that is in a frame.
type Read struct {
	Shard           string
	Asked, Answered time.Time
	Records, Bytes  int
}

// Stored makes the spans of a frame up to its storage.
func (t *Tracer) Stored(f *Frame) {
	if t == nil {
		return
	}
	began := f.Sent
	for i := range f.Reads {
		if f.Reads[i].Asked.Before(began) {
			began = f.Reads[i].Asked
		}
	}
	ctx, frame := t.tracer.Start(withHash(f.At.Hash), "frame", trace.WithTimestamp(began), trace.WithAttributes(
		attribute.String("tailrace.table", f.Table), attribute.Int64("tailrace.entry", int64(f.At.Seq)),
		attribute.Int("tailrace.records", f.Records), attribute.Int("tailrace.bytes", f.Bytes)))
	if !frame.IsRecording() {
		return
	}
	for i := range f.Reads {
		r := &f.Reads[i]
		_, read := t.tracer.Start(ctx, "GetRecords", trace.WithTimestamp(r.Asked), trace.WithSpanKind(trace.SpanKindClient),
			trace.WithAttributes(attribute.String("tailrace.shard", r.Shard), attribute.Int("tailrace.records", r.Records),
				attribute.Int("tailrace.bytes", r.Bytes)))
		read.End(trace.WithTimestamp(r.Answered))
	}
	_, stored := t.tracer.Start(ctx, "append", trace.WithTimestamp(f.Sent), trace.WithSpanKind(trace.SpanKindProducer))
	stored.End(trace.WithTimestamp(f.Stored))
	frame.End(trace.WithTimestamp(f.Stored))
}

// Apply begins the span of a frame in a sink; the caller ends it when all changes of the frame are
// durable there. It returns nil for frames that are not traced.
func (t *Tracer) Apply(table, sink string, at checkpoint.Mark, changes int) trace.Span {
	if t == nil {
		return nil
	}
	stored := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(at.Hash), SpanID: rootOf(at.Hash), Remote: true,
	})
	_, span := t.tracer.Start(trace.ContextWithRemoteSpanContext(context.Background(), stored), "apply "+sink,
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attribute.String("tailrace.table", table),
			attribute.Int64("tailrace.entry", int64(at.Seq)), attribute.Int("tailrace.records", changes)))
	if !span.IsRecording() {
		return nil
	}
	return span
}

// Within returns a context in which calls become children of a span; ctx itself where that is nil.
func Within(ctx context.Context, span trace.Span) context.Context {
	if span == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, span)
}
