package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
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
			return nil, environmentError(fmt.Errorf("open queue: %w", err), "is queue.dir right, and has `replicator run` been started once?")
		}
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	q, err := queue.OpenClient(ctx, queueOptions(cfg), a.logger(zapcore.WarnLevel).Named("queue"))
	if err != nil {
		return nil, queueError(err, cfg)
	}
	return q, nil
}

// openTimeout is what a command gives a queue to answer; a large embedded store needs time to open.
const openTimeout = time.Minute

// queueError gives an error of opening the queue its exit code and hint.
func queueError(err error, cfg *config.Config) error {
	switch {
	case errors.Is(err, queue.ErrLocked):
		return environmentError(err, "the process with that pid has "+cfg.Queue.Dir+" open: end it, or give this one a directory of its own")
	case errors.Is(err, queue.ErrNoSpace):
		return environmentError(err, "make room on the volume of "+cfg.Queue.Dir+", or enlarge it; then start again: see TailraceDiskLow in docs/operations.md")
	case errors.Is(err, fs.ErrPermission):
		return environmentError(err, "run it as the user that owns "+cfg.Queue.Dir)
	case errors.Is(err, queue.ErrDenied):
		return environmentError(err, "compare the user, password or token in queue.url, or the file of queue.creds, with the server's")
	case cfg.Queue.Dir != "":
		return environmentError(err, "the embedded queue in "+cfg.Queue.Dir+" did not start: see docs/operations.md")
	case errors.Is(err, queue.ErrUnreachable):
		return environmentError(err, "is queue.url right, is the server up, and does it let this machine in (TLS: queue.tls)?")
	default:
		return environmentError(err, "the server of queue.url answers, but cannot keep logs: the message names the setting")
	}
}

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
			return nil, environmentError(fmt.Errorf("find running daemon: %w", err), "start `replicator run`")
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
		return nil, sourceError(err)
	}
	return src, nil
}

// sourceError gives an error of DynamoDB its exit code and hint.
func sourceError(err error) error {
	hint := source.Hint(err)
	if hint == "" {
		hint = "are region, endpoint and credentials right? `aws sts get-caller-identity` shows who you are"
	}
	return environmentError(err, hint)
}

// bigtableError gives an error of Bigtable its exit code and hint.
func bigtableError(err error) error {
	hint := "are bigtable.project and bigtable.instance right, and is the service reachable from here?"
	switch bigtable.Classify(err) {
	case failure.Denied:
		hint = "the account needs roles/bigtable.user, and roles/bigtable.admin for schema --apply: see docs/credentials.md"
	case failure.Missing:
		hint = "`replicator schema --apply` makes the tables and families"
	}
	if strings.Contains(err.Error(), "could not find default credentials") { // the library has no type for it
		hint = "gcloud auth application-default login, or the credentials of a service account: see docs/credentials.md; for the sandbox: eval \"$(replicator sandbox env)\""
	}
	return environmentError(err, hint)
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
	return nil, usageError(fmt.Sprintf("the configuration has %v", names), "no table %q in %s", name, cfg.File)
}
