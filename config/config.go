package config

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/host"
)

// Config is the whole file. Relative paths in it have been resolved against the file's own
// directory.
type Config struct {
	// Identity of the stored state: it names the log and the rows of tailrace_state. Two
	// configurations with one pipeline name fight for one log; a changed name starts a new life
	// from nothing.
	Pipeline string `yaml:"pipeline" jsonschema:"required"`
	// The DynamoDB side.
	Source Source `yaml:"source"`
	// The Bigtable side: needed as soon as one table has a target.
	Bigtable Bigtable `yaml:"bigtable"`
	// The durable log between DynamoDB and Bigtable: a directory (embedded) or a NATS URL.
	Queue Queue `yaml:"queue" jsonschema:"required"`
	// Memory for data in flight between DynamoDB and the log, and between the log and the sinks.
	Memory Memory `yaml:"memory"`
	// Directory for the sorted runs of verify, heal and recover. They are made of the keys and row
	// contents of a whole table, so they take about as much as it does; deleted when they are no
	// longer needed. Default: queue.dir, or the system's temporary directory where the log is a
	// NATS cluster.
	Scratch string `yaml:"scratch"`
	// Secrets that seal the keys in Bigtable's guards where a mapping declares a key attribute as
	// pii: base64 of 32 bytes each. The first one seals, any of them opens, so a new one is put in
	// front of the old ones.
	PIISecrets []string `yaml:"pii_secrets"`
	// Metrics, health, status page.
	Admin Admin `yaml:"admin"`
	// Traces of frames for an OpenTelemetry collector. Off unless an endpoint is set.
	Tracing Tracing `yaml:"tracing"`
	// Metrics for an OpenTelemetry collector, beside those for Prometheus. Off unless an endpoint
	// is set.
	Metrics Metrics `yaml:"metrics"`
	// How long shutdown after SIGTERM may take to finish pending writes and save the marks. Keep it
	// below the orchestrator's grace period; writes that are cut off are repeated, with the same
	// cells and timestamps.
	ShutdownTimeout Duration `yaml:"shutdown_timeout"`
	// How `replicator shadow` makes reads of the application in Bigtable too.
	Shadow Shadow `yaml:"shadow"`
	// Where archival events go: required by tables with on_ttl_expiry: archive.
	Archive Archive `yaml:"archive"`
	// The tables to replicate: each has its own log, and a halt of one leaves the others running.
	Tables []Table `yaml:"tables" jsonschema:"required,minItems=1"`
	// Selections are the entries of tables that choose several. Load moves them here; Expand adds
	// what they choose to Tables.
	Selections []Table `yaml:"-"`
	// Unfit are the tables that Expand has left out.
	Unfit []Unfit `yaml:"-"`
	// Other periods of the protocol, for tests and demonstrations. Never for production: short
	// periods cost calls and fsyncs.
	Protocol Protocol `yaml:"testing" hidden:"true"`

	// File is the path that was read, for messages.
	File string `yaml:"-"`
}

// Source sets how DynamoDB and DynamoDB Streams are reached. Credentials come from the AWS default
// chain.
type Source struct {
	// AWS region. Empty: $AWS_REGION, then $AWS_DEFAULT_REGION.
	Region string `yaml:"region"`
	// Overrides DynamoDB's endpoint: DynamoDB Local, the sandbox, an interface endpoint.
	Endpoint string `yaml:"endpoint"`
	// Overrides the endpoint of DynamoDB Streams. Empty: the same as endpoint, unless that is one
	// of AWS, whose streams have another: then the region's public one.
	StreamsEndpoint string `yaml:"streams_endpoint"`
	// ARN of a role to assume, for a table in another account.
	AssumeRole string `yaml:"assume_role"`
	// External ID that the trust policy of the role demands.
	ExternalID string `yaml:"external_id"`
	// How often an idle shard is polled, where its table does not set it. Longer costs less and
	// adds lag; DynamoDB allows five reads a second per shard. For ten seconds after a record a
	// shard is polled every 200 ms. At $0.02 for 100,000 GetRecords calls (list price of
	// us-east-1), a month of polls costs $0.53 for a shard that is polled every second, and $2.63
	// every 200 ms.
	IdlePoll Duration `yaml:"idle_poll"`
	// Where reading begins if no mark exists: trim_horizon (all of the last 24 hours), latest, or
	// an RFC 3339 time. Default: five minutes before the first start where a backfill copies the
	// table, else trim_horizon. Changing it later is refused.
	Start Start `yaml:"start"`
}

// Queue sets where the log is kept: exactly one of Dir and URL is set.
type Queue struct {
	// Directory of the embedded JetStream server; one process at a time holds it.
	Dir string `yaml:"dir"`
	// External NATS servers, comma separated.
	URL string `yaml:"url"`
	// NATS credentials file, for url. It is read again at each connection, so it may be renewed.
	Creds string `yaml:"creds"`
	// JetStream domain of the log, where the servers of url are not in it: behind a leaf node.
	Domain string `yaml:"domain"`
	// TLS for url. A URL that begins with tls:// needs none of it if the system trusts the servers'
	// authority.
	TLS TLS `yaml:"tls"`
	// Copies of each log in the external cluster. With fewer than 3, the loss of one server loses
	// changes that were not yet applied. Default: 3 in a cluster, 1 on a single server.
	Replicas int `yaml:"replicas" jsonschema:"enum=1,enum=3,enum=5"`
	// Limit of each table's log. Above 80 % reading pauses, with dir also while the volume is
	// nearly full; the last 10 % are reserved for entries that let the log be trimmed. DynamoDB
	// keeps 24 hours, so size it for the longest outage of Bigtable that you want to ride out
	// without a gap.
	MaxBytes Size `yaml:"max_bytes"`
	// How long entries stay in the log after they were applied, for a replay. Shortened when space
	// is short.
	ReplayWindow Duration `yaml:"replay_window"`
}

// TLS names PEM files: the authority to trust, and the client certificate.
type TLS struct {
	// Certificate of the servers' authority, if the system does not trust it.
	CA string `yaml:"ca"`
	// Client certificate, if the servers demand one.
	Cert string `yaml:"cert"`
	// Key of cert.
	Key string `yaml:"key"`
}

// Memory bounds the bytes in flight. Reaching a bound pauses reading; nothing is dropped.
type Memory struct {
	// All feeds together.
	Total Size `yaml:"total"`
	// One feed. A page of DynamoDB Streams can exceed 4 MiB.
	PerFeed Size `yaml:"per_feed"`
	// Pages of a backfill that wait until the stream has caught up with them, all tables together;
	// beside total. The copy rate is about this much, compressed, in every five to ten seconds.
	Copy Size `yaml:"copy"`
}

// Admin is the HTTP server for metrics and health.
type Admin struct {
	// host:port. It has no authentication: keep it on loopback or inside the pod's network. Port 0:
	// any free one.
	Listen string `yaml:"listen"`
	// Further names by which requests may reach it, without ports: of a reverse proxy, or
	// NAME.NAMESPACE of a Kubernetes service. Requests to other names are refused (DNS rebinding).
	// It always answers to addresses, to the machine's host name, to names without a dot, and to
	// names that end in .localhost, .svc, .local or .internal.
	Hosts []string `yaml:"hosts"`
}

// Tracing sets where traces of frames go: from the reads of their pages to the calls that made
// their changes durable.
type Tracing struct {
	// URL of an OpenTelemetry collector that takes OTLP over HTTP, such as http://127.0.0.1:4318.
	// Empty: nothing is traced. Headers, certificates and the like: the variables
	// OTEL_EXPORTER_OTLP_… of the OpenTelemetry specification.
	Endpoint string `yaml:"endpoint"`
	// Share of the frames that are traced, above 0 and up to 1.
	Share float64 `yaml:"share"`
}

// Metrics sets where metrics are sent, where no Prometheus asks for them.
type Metrics struct {
	// URL of an OpenTelemetry collector that takes OTLP over HTTP, such as http://127.0.0.1:4318.
	// Empty: they are sent nowhere. Headers, certificates and the like: the variables
	// OTEL_EXPORTER_OTLP_… of the OpenTelemetry specification.
	Endpoint string `yaml:"endpoint"`
	// Time between two sendings.
	Every Duration `yaml:"every"`
}

// Table is one table to replicate, or a selection: all tables that a pattern, tags or both choose,
// now and while running.
type Table struct {
	// DynamoDB table, or a pattern of names: * stands for any characters, ? for one. The ARN of a
	// table in another account, whose policy permits the reads: commands name it by its last part.
	// Without it tag chooses.
	Source string `yaml:"source"`
	// Tags that a table must have, all of them with these values. With it the entry is a selection.
	Tag map[string]string `yaml:"tag"`
	// Names and patterns of tables that a selection leaves out, such as tables that were retired.
	Except []string `yaml:"except"`
	// Bigtable table; for a selection a name with {table} in it, which stands for the name of the
	// source. Absent, with archive in its place: what is deleted from the table is archived, and
	// that is all.
	Target string `yaml:"target"`
	// Primary key, partition key first, each with its type: [pk:S, sk:N]. Only needed without a
	// connection to DynamoDB: with it, check --offline and explain compile the mapping. It must be
	// the table's own key.
	Keys Keys `yaml:"keys"`
	// Mapping: a file (relative to this one) or written inline. Absent: an item becomes a row,
	// family d.
	Mapping Mapping `yaml:"mapping"`
	// What to do with a change that Bigtable or the mapping rejects for good: letter stores it as a
	// dead letter and continues, halt stops this table.
	OnReject string `yaml:"on_reject" jsonschema:"enum=letter,enum=halt"`
	// What a deletion by DynamoDB's time to live does: delete the item's cells, keep them, or
	// delete them and archive. Default: delete; archive where archive is written here.
	OnTTLExpiry string `yaml:"on_ttl_expiry" jsonschema:"enum=delete,enum=keep,enum=archive"`
	// Archives what is deleted from the table: {} uses the settings of the archive key next to
	// tables. Without a target nothing else is done with the table.
	Archive TableArchive `yaml:"archive"`
	// How the items reach Bigtable that the table held before the stream was read: scan, export or
	// none, or a block. Only the first start of a pipeline looks at from, url, bucket and prefix;
	// later starts go on with what it decided. Default: a new pipeline scans, one that was started
	// before this key existed copies nothing.
	Backfill Backfill `yaml:"backfill"`
	// What to do after a gap: wait for `replicator repair --gaps`, or heal it by reading the whole
	// table at once.
	OnGap string `yaml:"on_gap" jsonschema:"enum=wait,enum=heal"`
	// Compare the table with Bigtable all the time, beside the stream. Default: not.
	Verify Verify `yaml:"verify"`
	// Items that the replicator writes into the table, so that their records prove how far idle
	// shards are read. They are in no row. Absent: there are none, and that an idle shard is idle
	// is assumed from empty reads.
	Heartbeat Heartbeat `yaml:"heartbeat"`
	// How often an idle shard of the table is polled, 200ms to 60s, in place of source.idle_poll. A
	// month of polls costs $0.53 a shard with 1s, $0.05 with 10s, $0.01 with 60s; the first change
	// after a pause of ten seconds comes up to this much later, and a table counts as late twice as
	// much later. Heartbeats are records: a shard that gets one every ten seconds is never idle.
	IdlePoll Duration `yaml:"idle_poll"`
	// Leave out the aws:rep:* attributes that legacy global tables write into items.
	StripGlobal bool `yaml:"strip_global_table_attributes"`

	// ARN is set where source is one; Source is then the name in it.
	ARN string `yaml:"-"`
	// Path is the entry of the table in the file: tables[2]. The tables of a selection share it.
	Path string `yaml:"-"`
	// Found means that a selection has chosen the table.
	Found bool `yaml:"-"`
	// Gone is why the table's selection does not choose it any more although its log exists; empty:
	// it does.
	Gone Gone `yaml:"-"`
}

// Verify sets how much of the table's read capacity the continuous comparison may take.
type Verify struct {
	// Read capacity units per second: a number, or a share of a provisioned table's capacity as in
	// 5%. It takes about as many all the time. Without it nothing is compared.
	ReadUnits Units `yaml:"read_units"`
}

// Heartbeat selects which items of a table are heartbeats: exactly one of Prefix and Keys is set.
type Heartbeat struct {
	// Begin of the partition keys of heartbeats, where these are strings: "_tailrace#". An item
	// under it that the replicator has not written is never overwritten, and is replicated like any
	// other.
	Prefix string `yaml:"prefix"`
	// Partition keys of heartbeats, where these are numbers or binary (in base64): several for each
	// shard.
	Keys []string `yaml:"keys"`
	// How often each open shard gets one. Each costs a write unit.
	Every Duration `yaml:"every"`
	// Whether heartbeats are written. false only leaves out those that are there, as after opting
	// out.
	Write bool `yaml:"write"`
}

// TableArchive sets what of a table is archived, and how, where that differs from the setting for
// all tables.
type TableArchive struct {
	// As archive.classes.
	Classes []string `yaml:"classes"`
	// As archive.roll.
	Roll Duration `yaml:"roll"`
	// As archive.columns, in place of those.
	Columns map[string]Column `yaml:"columns"`
}

// Poll returns how often an idle shard of a table is polled.
func (c *Config) Poll(t *Table) time.Duration {
	return time.Duration(cmp.Or(t.IdlePoll, c.Source.IdlePoll))
}

// ArchivedOnly reports whether the table has no target: what is deleted from it is archived, and
// that is all.
func (t *Table) ArchivedOnly() bool { return t.Target == "" }

// Replicated returns a copy of the configuration that has only the tables with a target.
func (c *Config) Replicated() *Config {
	some := *c
	some.Tables = nil
	for _, t := range c.Tables {
		if !t.ArchivedOnly() {
			some.Tables = append(some.Tables, t)
		}
	}
	return &some
}

// Replicates reports whether a table or a selection has a target.
func (c *Config) Replicates() bool {
	replicated := func(t Table) bool { return !t.ArchivedOnly() }
	return slices.ContainsFunc(c.Tables, replicated) || slices.ContainsFunc(c.Selections, replicated)
}

// Default returns the values of the keys that the file leaves out, except for the keys of tables.
func Default() Config {
	return Config{
		Source: Source{
			Region:   firstEnv("AWS_REGION", "AWS_DEFAULT_REGION"),
			IdlePoll: Duration(time.Second),
		},
		Bigtable: Bigtable{
			Timeout: Duration(10 * time.Second), MaxInFlight: 2048,
			Tombstones: Duration(7 * 24 * time.Hour),
		},
		Queue: Queue{
			MaxBytes:     20 << 30,
			ReplayWindow: Duration(time.Hour),
		},
		Memory:          Memory{Total: 96 << 20, PerFeed: 8 << 20, Copy: 128 << 20},
		Admin:           Admin{Listen: "127.0.0.1:9464"},
		Tracing:         Tracing{Share: 0.01},
		Metrics:         Metrics{Every: Duration(time.Minute)},
		ShutdownTimeout: Duration(25 * time.Second),
		Shadow:          Shadow{Share: 1, SettleUnits: 50, Memory: 32 << 20},
		Archive: Archive{
			Classes:  []string{"ttl"},
			Roll:     Duration(time.Hour),
			OnStall:  "hold",
			MaxBytes: 20 << 30,
		},
		Protocol: defaultProtocol(),
	}
}

// settle fills in the defaults that depend on other keys, and the defaults of tables; written
// reports whether the file has a path.
func (c *Config) settle(written func(path string) bool) {
	c.Archive.settle()
	for i := range c.Tables {
		t := &c.Tables[i]
		t.settleARN()
		t.OnReject = cmp.Or(t.OnReject, "letter")
		t.settleArchive(written, tablePath(i))
		t.OnTTLExpiry = cmp.Or(t.OnTTLExpiry, "delete")
		t.OnGap = cmp.Or(t.OnGap, "wait")
		if !written(fmt.Sprintf("tables[%d].strip_global_table_attributes", i)) {
			t.StripGlobal = true
		}
		if h := fmt.Sprintf("tables[%d].heartbeat", i); written(h) {
			t.Heartbeat.Every = cmp.Or(t.Heartbeat.Every, Duration(10*time.Second))
			t.Heartbeat.Write = t.Heartbeat.Write || !written(h+".write")
		}
	}
	if c.Source.StreamsEndpoint == "" && !host.AWS(c.Source.Endpoint) {
		c.Source.StreamsEndpoint = c.Source.Endpoint
	}
	if c.Scratch == "" {
		c.Scratch = cmp.Or(c.Queue.Dir, os.TempDir())
	}
	if c.Protocol.Beat == 0 {
		c.Protocol.Beat = c.Protocol.ClaimTTL / 3
	}
	if c.Queue.Dir != "" && c.Queue.Replicas == 0 {
		c.Queue.Replicas = 1
	}
}

// settle fills in the defaults of an archive that depend on its other keys.
func (a *Archive) settle() {
	switch {
	case a.URL != "":
		a.Format = cmp.Or(a.Format, archiveParquet)
	case a.File != "":
		a.Format = cmp.Or(a.Format, archiveJSON)
	}
	settleColumns(a.Columns)
}

func settleColumns(all map[string]Column) {
	for name, c := range all {
		c.Path = cmp.Or(c.Path, name)
		all[name] = c
	}
}

// firstEnv returns the value of the first variable that is not empty.
func firstEnv(names ...string) string {
	for _, n := range names {
		if v := os.Getenv(n); v != "" {
			return v
		}
	}
	return ""
}

// tablePath returns the path of a table in the file.
func tablePath(i int) string { return fmt.Sprintf("tables[%d]", i) }
