package daemon

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/pipeline/tracing"
)

// Traces are the traces of a daemon. A nil one is of a configuration without tracing.
type Traces struct {
	tracer   *tracing.Tracer
	provider *sdktrace.TracerProvider
	log      *zap.Logger
}

// Tracer returns what makes the traces of frames; nil where there is no tracing.
func (t *Traces) Tracer() *tracing.Tracer {
	if t == nil {
		return nil
	}
	return t.tracer
}

// tracingTimeout is how long the collector has to take the last spans.
const tracingTimeout = 2 * time.Second

// End sends the last spans.
func (t *Traces) End() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), tracingTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.log.Warn("spans are lost", zap.Error(err))
	}
}

// Tracing opens the tracing of the configuration; nil where that has none. A collector that does
// not answer loses spans and holds up nothing.
func Tracing(ctx context.Context, cfg *config.Config, build Build, owner string, log *zap.Logger) (*Traces, error) {
	if cfg.Tracing.Endpoint == "" {
		return nil, nil
	}
	to, err := otlpURL(cfg.Tracing.Endpoint, "/v1/traces")
	if err != nil {
		return nil, fmt.Errorf("read tracing.endpoint: %w", err)
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(to))
	if err != nil {
		return nil, fmt.Errorf("open tracing: %w", err)
	}
	log = log.Named("tracing")
	provider := sdktrace.NewTracerProvider(append(tracing.Options(cfg.Tracing.Share),
		sdktrace.WithBatcher(exporter), sdktrace.WithResource(identity(cfg, build, owner)))...)
	return &Traces{tracer: tracing.New(provider), provider: provider, log: log}, nil
}
