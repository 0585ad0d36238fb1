package bigtable

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/status"
)

// beginSpan begins the span of an attempt of CheckAndMutateRow on a table, if ctx has a span that
// is recorded, and returns the function that ends it. A span has the names of OpenTelemetry's
// conventions for database clients, and the code of an error alone: its text may quote keys.
//
// Source: https://opentelemetry.io/docs/specs/semconv/database/database-spans/
func beginSpan(ctx context.Context, table string) (context.Context, func(error)) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, func(error) {}
	}
	const call = "CheckAndMutateRow"
	tracer := parent.TracerProvider().Tracer("github.com/tailrace-cdc/replicator/sink/bigtable")
	ctx, span := tracer.Start(ctx, call, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("db.system.name", "gcp.bigtable"), attribute.String("db.operation.name", call),
		attribute.String("db.collection.name", table)))
	return ctx, func(err error) {
		if err != nil {
			code := status.Code(err).String()
			span.SetAttributes(attribute.String("error.type", code))
			span.SetStatus(codes.Error, code)
		}
		span.End()
	}
}
