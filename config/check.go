package config

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/host"
)

var (
	pipelineName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,47}$`)
	dynamoTable  = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`)
	bigtableName = regexp.MustCompile(`^[_A-Za-z0-9][-_.A-Za-z0-9]{0,49}$`)
	hostName     = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_-]+)*\.?$`)
	natsSubject  = regexp.MustCompile(`^[^\s.*>]+(\.[^\s.*>]+)*$`)
)

// minLogSize is the smallest log that holds any record: a frame takes at most a sixteenth of the
// log, and a record with two images of 400 KB, in base64 or escaped, takes several MiB.
const minLogSize Size = 64 << 20

// placeholder begins the names that `init` writes where the author has to fill in one. No project,
// instance or bucket may have it: they are written in small letters.
const placeholder = "MY-"

// stateTable is the Bigtable table that holds pipeline identities and version reservations; no
// mapping may write it.
const stateTable = "tailrace_state"

// check reports values that the decoder took but that are not possible, alone or together.
func (r *report) check(c *Config) {
	r.name("pipeline", c.Pipeline, pipelineName, "up to 48 letters, digits, - and _, beginning with a letter or digit")
	r.source(&c.Source)
	if r.needsBigtable(c) {
		r.bigtable(&c.Bigtable)
	}
	r.queue(&c.Queue)
	r.memory(&c.Memory)
	r.admin(&c.Admin)
	r.tracing(&c.Tracing)
	r.endpoint("metrics.endpoint", c.Metrics.Endpoint)
	r.positive("metrics.every", c.Metrics.Every)
	r.positive("shutdown_timeout", c.ShutdownTimeout)
	r.shadow(&c.Shadow)
	r.archive(&c.Archive)
	r.tables(c)
	r.protocol(&c.Protocol)
}

// source checks region, endpoints, role, poll interval and start.
func (r *report) source(s *Source) {
	if s.Region == "" && !r.reported("source.region") {
		r.fault("missing", "source.region",
			"for example eu-west-1; $AWS_REGION is used if the file names none; any word will do for the sandbox",
			"source.region is required")
	}
	r.endpoint("source.endpoint", s.Endpoint)
	if s.StreamsEndpoint != s.Endpoint {
		r.endpoint("source.streams_endpoint", s.StreamsEndpoint)
	}
	if host.AWS(s.Endpoint) && (s.StreamsEndpoint == "" || s.StreamsEndpoint == s.Endpoint) {
		r.warn("one_endpoint", "source.endpoint",
			"set source.streams_endpoint too, for example https://streams.dynamodb.REGION.amazonaws.com",
			"on AWS the streams have another endpoint than the tables; without one they are read from the region's public one")
	}
	if s.AssumeRole != "" && !strings.HasPrefix(s.AssumeRole, "arn:") {
		r.fault("bad_value", "source.assume_role", "arn:aws:iam::123456789012:role/NAME", "%q is not the ARN of a role",
			s.AssumeRole)
	}
	if s.ExternalID != "" && s.AssumeRole == "" {
		r.fault("conflict", "source.external_id", "remove it, or set source.assume_role",
			"source.external_id is for source.assume_role only")
	}
	r.positive("source.idle_poll", s.IdlePoll)
	if s.Start.At.After(time.Now().Add(time.Minute)) {
		r.fault("bad_value", "source.start", "a time in the past, or latest", "the start %s is in the future", s.Start)
	}
}

// queue checks that the log has one place, with options that go with it, and a size that works.
func (r *report) queue(q *Queue) {
	switch {
	case q.Dir != "" && q.URL != "":
		r.fault("conflict", "queue", "keep dir for the embedded log, or url for a NATS cluster",
			"queue.dir and queue.url exclude each other")
	case q.Dir == "" && q.URL == "" && !r.reported("queue"):
		r.fault("missing", "queue", "queue: {dir: ./tailrace-data}", "the log needs a place: queue.dir or queue.url")
	}
	if q.URL == "" && q.Creds != "" {
		r.fault("conflict", "queue.creds", "remove it, or set queue.url", "queue.creds is for queue.url only")
	}
	if q.URL == "" && q.Domain != "" {
		r.fault("conflict", "queue.domain", "remove it, or set queue.url", "queue.domain is for queue.url only")
	}
	if strings.ContainsAny(q.Domain, ".*> \t") {
		r.fault("bad_value", "queue.domain", "as `domain` in the jetstream block of the servers' configuration",
			"%q is no name of a domain", q.Domain)
	}
	if q.URL == "" && q.TLS != (TLS{}) {
		r.fault("conflict", "queue.tls", "remove it, or set queue.url", "queue.tls is for queue.url only")
	}
	if (q.TLS.Cert == "") != (q.TLS.Key == "") {
		r.fault("missing", "queue.tls", "set both queue.tls.cert and queue.tls.key",
			"a client certificate and its key go together")
	}
	if q.URL == "" && q.Replicas > 1 {
		r.fault("conflict", "queue.replicas", "remove it, or set queue.url",
			"the embedded log has one copy; %d need a NATS cluster", q.Replicas)
	}
	if !slices.Contains([]int{0, 1, 3, 5}, q.Replicas) {
		r.fault("bad_value", "queue.replicas", "1, 3 or 5", "%d copies are not possible", q.Replicas)
	}
	for server := range strings.SplitSeq(q.URL, ",") {
		if u, err := url.Parse(strings.TrimSpace(server)); q.URL != "" && (err != nil || u.Host == "") {
			r.fault("bad_value", "queue.url", "nats://host:4222, several joined by commas", "the URL of a server cannot be read")
		}
	}
	r.atLeast("queue.max_bytes", q.MaxBytes, minLogSize, 1<<30,
		"a busy table writes that much in minutes, and then reading pauses")
	if q.ReplayWindow < 0 {
		r.fault("bad_value", "queue.replay_window", "0s keeps nothing", "a negative window has no meaning")
	}
}

// memory checks that a feed can hold a page, and the total a feed.
func (r *report) memory(m *Memory) {
	r.atLeast("memory.per_feed", m.PerFeed, 4<<20, 4<<20, "a page of DynamoDB Streams can be that large")
	r.atLeast("memory.copy", m.Copy, 4<<20, 16<<20, "a backfill is only as fast as the pages that it may hold")
	if m.Total < m.PerFeed && !r.reported("memory.total") {
		r.fault("bad_value", "memory.total", "several times memory.per_feed",
			"memory.total %s is less than memory.per_feed %s", m.Total, m.PerFeed)
	}
}

// admin checks the address of the admin server, and that its names are names alone.
func (r *report) admin(a *Admin) {
	r.listen("admin.listen", a.Listen)
	for i, name := range a.Hosts {
		if path := fmt.Sprintf("admin.hosts[%d]", i); !hostName.MatchString(name) && !r.reported(path) {
			r.fault("bad_value", path, "for example metrics.example.com, without scheme and port", "%q is no host name", name)
		}
	}
}

// tables checks each table, and that no source is listed twice.
func (r *report) tables(c *Config) {
	if len(c.Tables) == 0 && !r.reported("tables") {
		r.fault("missing", "tables", "- {source: Products, target: products}", "at least one table is required")
	}
	seen := map[string]int{}
	for i, t := range c.Tables {
		path := tablePath(i)
		r.names(path, &t, c)
		r.tableArchive(path, &t, &c.Archive)
		if what := t.directoryTooLong(&c.Archive); what != "" && !t.selects() {
			r.fault("bad_value", path+".source", directoryHint, "%s", what)
		}
		if j, dup := seen[t.Source]; dup && t.Source != "" && !t.selects() {
			r.fault("duplicate", path+".source", "one entry per source table; one mapping can write many kinds of rows",
				"%q is already the source of tables[%d]", t.Source, j)
		}
		if !t.selects() {
			seen[t.Source] = i
		}
		if t.Target == stateTable {
			r.fault("reserved", path+".target", "choose another name", "%s holds the state of the pipelines", stateTable)
		}
		if _, ok := t.Keys.Schema(); t.Keys != nil && !ok {
			r.fault("bad_value", path+".keys", "partition key, then sort key, with their types: [pk:S, sk:N]",
				"%q is not a primary key", []string(t.Keys))
		}
		r.oneOf(path+".on_reject", t.OnReject, "letter", "halt")
		r.oneOf(path+".on_gap", t.OnGap, "wait", "heal")
		r.backfill(path+".backfill", &t.Backfill, c.Source.Start)
		r.heartbeat(path+".heartbeat", &t.Heartbeat)
		r.idlePoll(path+".idle_poll", t.IdlePoll)
		r.oneOf(path+".on_ttl_expiry", t.OnTTLExpiry, "delete", "keep", "archive")
		if t.OnTTLExpiry == "archive" && !c.Archive.Enabled() && !r.reported(path+".archive") {
			r.fault("missing", path+".on_ttl_expiry", "archive: {file: ./archive}",
				"archival events need a place: archive.url, archive.file or archive.subject")
		}
	}
}

// names checks the names of one table, or what a selection has in their place.
func (r *report) names(path string, t *Table, c *Config) {
	if t.selects() {
		r.selection(path, t, c)
		return
	}
	if len(t.Except) > 0 {
		r.fault("conflict", path+".except", "remove it, or write a pattern or tag", "%s is one table, and no selection",
			t.Source)
	}
	if !r.arn(path+".source", t, c) {
		r.name(path+".source", t.Source, dynamoTable, "the name of a DynamoDB table: 3 to 255 letters, digits, _ . -; or tag")
	}
	if !t.ArchivedOnly() {
		r.name(path+".target", t.Target, bigtableName, "the name of a Bigtable table: up to 50 letters, digits, _ . -")
	}
}

// heartbeat checks that the keys of heartbeats are set in one way, and how often they are written.
func (r *report) heartbeat(path string, h *Heartbeat) {
	if !r.Written(path) || r.reported(path) {
		return
	}
	if (h.Prefix == "") == (len(h.Keys) == 0) {
		r.fault("bad_value", path, `heartbeat: {prefix: "_tailrace#"}, or keys where the partition key is a number or binary`,
			"heartbeats have either a prefix or a list of keys")
	}
	if h.Every < Duration(time.Second) && !r.reported(path+".every") {
		r.fault("bad_value", path+".every", "10s is the default", "heartbeats come at most once a second, not every %s",
			h.Every)
	}
}

// Bounds of idle_poll of a table. DynamoDB serves five reads of a shard a second, and an iterator
// is good for 15 minutes.
const (
	leastPoll = Duration(200 * time.Millisecond)
	mostPoll  = Duration(time.Minute)
)

// idlePoll checks how often the idle shards of one table are polled.
func (r *report) idlePoll(path string, d Duration) {
	if r.Written(path) && (d < leastPoll || d > mostPoll) && !r.reported(path) {
		r.fault("bad_value", path, "200ms to 60s; left out: as source.idle_poll", "%s is not in 200ms to 60s", d)
	}
}

// tracing checks where traces go, and how many.
func (r *report) tracing(t *Tracing) {
	r.endpoint("tracing.endpoint", t.Endpoint)
	if !(t.Share > 0 && t.Share <= 1) && !r.reported("tracing.share") {
		r.fault("bad_value", "tracing.share",
			"for example 0.01, one frame in a hundred; no tracing: leave tracing.endpoint out",
			"%v is not above 0 and up to 1", t.Share)
	}
}
