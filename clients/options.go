package clients

import (
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/price"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/heartbeat"
)

// Budget returns how many bytes of pages may be in memory on one side of the log, all tables
// together.
func Budget(cfg *config.Config) int64 { return cfg.Memory.Pages() }

// CallMemory returns how many bytes the calls of the sinks may take, all tables together. By
// default that is enough for bigtable.max_in_flight calls of one table, and a quarter more in
// preparation.
func CallMemory(cfg *config.Config) int64 { return int64(cfg.Memory.Total) / 2 }

// sharingTables is how many parts of the memory for pages are kept for tables that are found later:
// each makes the others' smaller, and a table without one shares the common half.
const sharingTables = 8

// sharing returns how many tables the memory for pages is divided for.
func sharing(cfg *config.Config) int {
	n := len(cfg.Tables)
	found := slices.ContainsFunc(cfg.Tables, func(t config.Table) bool { return t.Found })
	if cfg.Selecting() && !found { // a daemon: its clients are made before the tables are found
		n += sharingTables
	}
	return n
}

// Start returns where the first start of a table begins to read.
func Start(cfg *config.Config) pipeline.Start {
	s := cfg.Source.Start
	return pipeline.Start{Horizon: s.Horizon, Latest: s.Latest, At: s.At}
}

// HeartbeatKeys returns the keys of the heartbeats of a table, which are left out of what is read.
func HeartbeatKeys(h config.Heartbeat) heartbeat.Keys {
	return heartbeat.Keys{Prefix: h.Prefix, List: h.Keys}
}

// QueueOptions returns the options of package queue.
func QueueOptions(cfg *config.Config) queue.Options {
	window := time.Duration(cfg.Queue.ReplayWindow)
	if window == 0 {
		window = -1 // nothing is kept; zero would be the package's default
	}
	archive := int64(0) // the stream of a table's archive is made with its first event
	if cfg.Archive.Enabled() {
		archive = int64(cfg.Archive.MaxBytes)
	}
	return queue.Options{
		Pipeline: cfg.Pipeline, Dir: cfg.Queue.Dir, URL: cfg.Queue.URL, Creds: cfg.Queue.Creds, Replicas: cfg.Queue.Replicas,
		Domain: cfg.Queue.Domain,
		CA:     cfg.Queue.TLS.CA, Cert: cfg.Queue.TLS.Cert, Key: cfg.Queue.TLS.Key,
		MaxBytes: int64(cfg.Queue.MaxBytes), Logs: len(cfg.Tables), ReplayWindow: window,
		ArchiveMaxBytes: archive, BlocksMaxBytes: config.BlockMemory,
	}
}

func sourceOptions(cfg *config.Config) source.Options {
	s := &cfg.Source
	heartbeats, arns, polls := map[string]heartbeat.Keys{}, map[string]string{}, map[string]time.Duration{}
	for _, t := range cfg.Tables {
		if t.ARN != "" {
			arns[t.Source] = t.ARN
		}
		heartbeats[t.Source], polls[t.Source] = HeartbeatKeys(t.Heartbeat), cfg.Poll(&t)
	}
	trust := time.Duration(cfg.Protocol.DateTrust)
	if trust < time.Millisecond {
		trust = -1
	}
	return source.Options{
		Heartbeats: heartbeats, DateTrust: trust,
		Region: s.Region, Endpoint: s.Endpoint, StreamsEndpoint: s.StreamsEndpoint, AssumeRole: s.AssumeRole,
		ExternalID: s.ExternalID, ARNs: arns,
		IdlePoll: time.Duration(s.IdlePoll), IdlePolls: polls,
		MemoryTotal: Budget(cfg), MemoryPerFeed: int64(cfg.Memory.PerFeed),
		Tables: sharing(cfg),
	}
}

func bigtableOptions(cfg *config.Config) (bigtable.Options, error) {
	b := &cfg.Bigtable
	seal, err := bigtable.NewSealer(cfg.PIISecrets)
	if err != nil {
		return bigtable.Options{}, failure.Usagef("openssl rand -base64 32", "read pii_secrets: %w", err)
	}
	return bigtable.Options{
		Seal: seal, Pipeline: cfg.Pipeline, Project: b.Project, Instance: b.Instance, AppProfile: b.AppProfile,
		CopyProfile: b.CopyProfile, Endpoint: b.Endpoint, AdminEndpoint: b.AdminEndpoint, TLS: b.TLS, CA: b.CA,
		Universe: b.UniverseDomain, Timeout: time.Duration(b.Timeout),
		Tombstones: time.Duration(b.Tombstones), Concurrency: b.MaxInFlight,
	}, nil
}

// LateAfter returns how far behind a table may be before it counts as late. It includes two idle
// polls, since an idle shard is read that rarely.
func LateAfter(cfg *config.Config, t *config.Table) time.Duration {
	return status.DefaultLate + 2*cfg.Poll(t)
}

// IdleCost returns what reading so many shards of a table costs while nothing changes.
func IdleCost(cfg *config.Config, t *config.Table, shards int) price.Idle {
	beats := time.Duration(0)
	if t.Heartbeat.Write {
		beats = time.Duration(t.Heartbeat.Every)
	}
	return price.IdleOf(shards, cfg.Poll(t), source.IdleReads(cfg.Poll(t), beats))
}

// GoneReason returns why a table that its selection no longer chooses is not ready; false if it is
// still chosen.
func GoneReason(t *config.Table) (r status.Reason, gone bool) {
	r.Code, gone = map[config.Gone]status.ReasonCode{
		config.GoneVanished: status.WhyVanished, config.GoneTags: status.WhyUntagged, config.GoneOthers: status.WhyChosenElse,
	}[t.Gone]
	r.Text = t.GoneReason()
	return r, gone
}
