package daemon

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/config"
)

// Pushed are the metrics that a daemon sends to a collector: those that Prometheus would read. A
// nil one is of a configuration without it.
type Pushed struct {
	provider *metric.MeterProvider
	log      *zap.Logger
}

// PushMetrics begins to send metrics where the configuration says; nil where that says nowhere. A
// collector that does not answer loses points and holds up nothing.
func PushMetrics(
	ctx context.Context, cfg *config.Config, build Build, owner string, from prometheus.Gatherer, log *zap.Logger,
) (*Pushed, error) {
	if cfg.Metrics.Endpoint == "" {
		return nil, nil
	}
	to, err := otlpURL(cfg.Metrics.Endpoint, "/v1/metrics")
	if err != nil {
		return nil, fmt.Errorf("read metrics.endpoint: %w", err)
	}
	exporter, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(to))
	if err != nil {
		return nil, fmt.Errorf("open metrics: %w", err)
	}
	reader := metric.NewPeriodicReader(exporter, metric.WithInterval(time.Duration(cfg.Metrics.Every)),
		metric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(from))))
	provider := metric.NewMeterProvider(metric.WithReader(reader), metric.WithResource(identity(cfg, build, owner)))
	return &Pushed{provider, log.Named("metrics")}, nil
}

// End sends the newest values.
func (p *Pushed) End() {
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), tracingTimeout)
	defer cancel()
	if err := p.provider.Shutdown(ctx); err != nil {
		p.log.Warn("the last values of the metrics are lost", zap.Error(err))
	}
}

// otlpURL returns the URL of a signal at a collector: its default path where the configuration has
// none.
//
// Source: https://opentelemetry.io/docs/specs/otlp/#otlphttp-request
func otlpURL(endpoint, signal string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", err
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = signal
	}
	return u.String(), nil
}

// identity names a daemon to a collector.
//
// Source: https://opentelemetry.io/docs/specs/semconv/resource/
func identity(cfg *config.Config, build Build, owner string) *resource.Resource {
	return resource.NewSchemaless(attribute.String("service.name", "tailrace"),
		attribute.String("service.version", build.Version), attribute.String("service.instance.id", owner),
		attribute.String("service.namespace", cfg.Pipeline))
}
