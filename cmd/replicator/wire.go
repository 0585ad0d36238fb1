package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
)

// queueOptions says what the configuration says, in the words of package queue.
func queueOptions(cfg *config.Config) queue.Options {
	window := time.Duration(cfg.Queue.ReplayWindow)
	if window == 0 {
		window = -1 // nothing is kept; zero would be the package's default
	}
	return queue.Options{
		Pipeline: cfg.Pipeline, Dir: cfg.Queue.Dir, URL: cfg.Queue.URL, Creds: cfg.Queue.Creds, Replicas: cfg.Queue.Replicas,
		CA: cfg.Queue.TLS.CA, Cert: cfg.Queue.TLS.Cert, Key: cfg.Queue.TLS.Key,
		MaxBytes: int64(cfg.Queue.MaxBytes), Logs: len(cfg.Tables), ReplayWindow: window,
	}
}

func sourceOptions(cfg *config.Config) source.Options {
	s := &cfg.Source
	return source.Options{
		Region: s.Region, Endpoint: s.Endpoint, StreamsEndpoint: s.StreamsEndpoint, AssumeRole: s.AssumeRole,
		IdlePoll: time.Duration(s.IdlePoll), MemoryTotal: int64(cfg.Memory.Total) / 6, MemoryPerFeed: int64(cfg.Memory.PerFeed),
		Tables: len(cfg.Tables),
	}
}

// bigtableOptions takes the source's clock, on which the sink's tombstone gate rests.
func bigtableOptions(cfg *config.Config, src *source.Source) bigtable.Options {
	b := &cfg.Bigtable
	return bigtable.Options{
		Project: b.Project, Instance: b.Instance, AppProfile: b.AppProfile, Endpoint: b.Endpoint,
		Timeout: time.Duration(b.Timeout), Tombstones: time.Duration(b.Tombstones),
		Now: func() time.Time { return serviceTime(src) },
	}
}

// serviceTime is DynamoDB's clock where it has been heard, else ours.
func serviceTime(src *source.Source) time.Time {
	if src != nil {
		if ms, ok := src.Now(); ok {
			return time.UnixMilli(ms)
		}
	}
	return time.Now()
}

// client opens the logs as a command does: beside a running daemon, or by itself when none runs.
func (a *app) client(ctx context.Context, cfg *config.Config) (*queue.Queue, error) {
	if dir := cfg.Queue.Dir; dir != "" {
		if _, err := os.Stat(dir); err != nil {
			return nil, exit.Environment(fmt.Errorf("open queue: %w", err), "is queue.dir right, and has `replicator run` been started once?")
		}
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	q, err := queue.OpenClient(ctx, queueOptions(cfg), a.logger(zapcore.WarnLevel).Named("queue"))
	if err != nil {
		return nil, exit.Queue(err, cfg)
	}
	return q, nil
}

// openTimeout is what a command gives a queue to answer; a large embedded store needs time to open.
const openTimeout = time.Minute

// daemon waits for a running daemon and connects to its queue. It never opens the store by itself: a daemon that is
// about to start would find it locked.
func (a *app) daemon(ctx context.Context, cfg *config.Config) (*queue.Queue, error) {
	if cfg.Queue.URL != "" {
		return a.client(ctx, cfg)
	}
	tick := time.NewTicker(statusPeriod)
	defer tick.Stop()
	for {
		q, err := a.beside(ctx, cfg)
		if err == nil {
			return q, nil
		}
		select {
		case <-ctx.Done():
			return nil, exit.Environment(fmt.Errorf("find running daemon: %w", err), "start `replicator run`")
		case <-tick.C:
		}
	}
}

// beside connects to the embedded server of the daemon that runs now.
func (a *app) beside(ctx context.Context, cfg *config.Config) (*queue.Queue, error) {
	address, err := natsURL(cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	o := queueOptions(cfg)
	o.Dir, o.URL = "", address
	return queue.Open(ctx, o, a.logger(zapcore.ErrorLevel).Named("queue"), prometheus.NewRegistry())
}

func (a *app) source(ctx context.Context, cfg *config.Config) (*source.Source, error) {
	o := sourceOptions(cfg)
	o.Attempts = 3 // somebody waits: a server that is away is to be said at once
	src, err := source.Open(ctx, o, a.logger(zapcore.WarnLevel).Named("source"), nil)
	if err != nil {
		return nil, exit.Source(err)
	}
	return src, nil
}

// selected returns the configured tables, or the one that was named.
func selected(cfg *config.Config, name string) ([]config.Table, error) {
	if name == "" {
		return cfg.Tables, nil
	}
	var names []string
	for _, t := range cfg.Tables {
		if t.Source == name {
			return []config.Table{t}, nil
		}
		names = append(names, t.Source)
	}
	return nil, exit.Usage(fmt.Sprintf("the configuration has %v", names), "no table %q in %s", name, cfg.File)
}
