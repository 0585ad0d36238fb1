package wire

import (
	"time"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
)

// budgetShare divides memory.total: pages that are not yet in the log may take 1/budgetShare, and entries that the
// sinks are applying may take as much; the rest is for the frames and writes made from them.
const budgetShare = 6

// Budget returns how many bytes of pages may be in memory on one side of the log, all tables together.
func Budget(cfg *config.Config) int64 { return int64(cfg.Memory.Total) / budgetShare }

// QueueOptions returns the options of package queue.
func QueueOptions(cfg *config.Config) queue.Options {
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
		IdlePoll: time.Duration(s.IdlePoll), MemoryTotal: Budget(cfg), MemoryPerFeed: int64(cfg.Memory.PerFeed),
		Tables: len(cfg.Tables),
	}
}

func bigtableOptions(cfg *config.Config) bigtable.Options {
	b := &cfg.Bigtable
	return bigtable.Options{
		Project: b.Project, Instance: b.Instance, AppProfile: b.AppProfile, Endpoint: b.Endpoint,
		Timeout: time.Duration(b.Timeout), Tombstones: time.Duration(b.Tombstones),
	}
}

// LateAfter returns how far behind a table may be before it counts as late. It includes two idle polls, since an idle
// shard is read that rarely.
func LateAfter(cfg *config.Config) time.Duration {
	return pipeline.DefaultLate + 2*time.Duration(cfg.Source.IdlePoll)
}
