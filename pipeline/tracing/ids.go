package tracing

import (
	"context"
	"math/rand/v2"

	"encoding/binary"

	"go.opentelemetry.io/otel/trace"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// ids makes the ids of spans: the ids of a frame's first span from the hash of its entry, the other
// ids at random.
type ids struct{}

type hashKey struct{}

// withHash returns a context in which a new trace gets its id from the hash of an entry.
func withHash(h checkpoint.Hash) context.Context {
	return context.WithValue(context.Background(), hashKey{}, h)
}

// NewIDs returns the ids for the entry hash in ctx.
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	h, _ := ctx.Value(hashKey{}).(checkpoint.Hash)
	return trace.TraceID(h), rootOf(h)
}

// NewSpanID returns a random id.
func (ids) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}

// rootOf returns the id of a frame's first span, which is the parent of those in the sinks.
func rootOf(h checkpoint.Hash) trace.SpanID { return trace.SpanID(h[:8]) }
