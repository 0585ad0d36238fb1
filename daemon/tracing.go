package daemon

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
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
	u, err := url.Parse(cfg.Tracing.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("read tracing.endpoint: %w", err)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces" // https://opentelemetry.io/docs/specs/otlp/#otlphttp-request
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(u.String()))
	if err != nil {
		return nil, fmt.Errorf("open tracing: %w", err)
	}
	log = log.Named("tracing")
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("spans are lost", zap.Error(err)) }))
	// Names of https://opentelemetry.io/docs/specs/semconv/resource/
	is := resource.NewSchemaless(attribute.String("service.name", "tailrace"),
		attribute.String("service.version", build.Version), attribute.String("service.instance.id", owner),
		attribute.String("service.namespace", cfg.Pipeline))
	provider := sdktrace.NewTracerProvider(append(tracing.Options(cfg.Tracing.Share),
		sdktrace.WithBatcher(exporter), sdktrace.WithResource(is))...)
	return &Traces{tracer: tracing.New(provider), provider: provider, log: log}, nil
}
