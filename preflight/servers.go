package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/host"
	"github.com/tailrace-cdc/replicator/pipeline/settings"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/embedded"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
	"github.com/tailrace-cdc/replicator/source"
)

// endpoints reports the address of each server: from the configuration, from the environment, or
// the cloud service.
func (c *check) endpoints() {
	s := &c.cfg.Source
	aws := cmp.Or(os.Getenv("AWS_ENDPOINT_URL"), "AWS "+s.Region)
	c.Endpoints["dynamodb"] = cmp.Or(s.Endpoint, os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"), aws)
	c.Endpoints["dynamodb_streams"] = cmp.Or(s.StreamsEndpoint, os.Getenv("AWS_ENDPOINT_URL_DYNAMODB_STREAMS"), aws)
	c.Endpoints["bigtable"] = bigtableEndpoint(&c.cfg.Bigtable)
	c.Endpoints["queue"] = cmp.Or(c.cfg.Queue.Dir, "NATS cluster")
	for server, endpoint := range c.Endpoints {
		c.Endpoints[server] = host.WithoutUser(endpoint)
	}
}

// bigtableEndpoint returns where rows are written. What has https:// is spoken to with TLS.
func bigtableEndpoint(b *config.Bigtable) string {
	if b.Endpoint == "" {
		return cmp.Or(os.Getenv("BIGTABLE_EMULATOR_HOST"), "Google Cloud")
	}
	if addr, secure, err := host.GRPC(b.Endpoint, b.TLS); err == nil && secure {
		return "https://" + addr
	}
	return b.Endpoint
}

// adminPort checks that the admin server's port is free, or taken by the daemon of this
// configuration.
func (c *check) adminPort(ctx context.Context) {
	ln, err := clients.ListenAdmin(ctx, c.cfg)
	switch {
	case err == nil:
		_ = ln.Close()
	case control.Daemon(ctx, c.cfg) == nil:
		c.failed("admin_port", "admin.listen", err)
	}
}

// describe reads the description of a table from DynamoDB and checks it.
func (c *check) describe(ctx context.Context, t *catalog.Table) {
	ctx, cancel := context.WithTimeout(ctx, clients.AskTimeout)
	defer cancel()
	if err := t.Describe(ctx, c.src); err != nil {
		c.failed("table", t.Path+".source", source.Explain(err))
		return
	}
	c.add(tableProblems(t)...)
}

// bulkLoads names the tables that items are loaded into from S3 now. Whether such loads write
// records into the stream is in no document that was found.
func (c *check) bulkLoads(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, clients.AskTimeout)
	defer cancel()
	loads, err := c.src.BulkLoads(ctx)
	if err != nil {
		hint := "allow dynamodb:ListBulkOperations and dynamodb:DescribeBulkOperation"
		if source.Unauthenticated(err) || source.Classify(err) != failure.Denied {
			hint = cmp.Or(source.Hint(err), "repeat the check once DynamoDB answers")
		}
		c.add(warnf("bulk_unknown", "source", hint,
			"whether bulk loads (StartBulkPutItems) write to the tables now is not known: %s", err.Error()))
		return
	}
	for _, t := range c.catalog.Tables {
		for i := range loads {
			if t.Described && loads[i].Loads(&t.Info) {
				c.add(warnf("bulk_load", t.Path+".source", "once it has ended: `replicator verify --table "+t.Source+
					"`, and `replicator repair --table "+t.Source+"` if that finds differences",
					"%s loads items into %s since %s, and it is not known whether its writes are in the stream", loads[i].ARN,
					t.Source, loads[i].Since.UTC().Format(time.RFC3339)))
			}
		}
	}
}

// StreamProblems returns what is wrong with the stream of a table, at a path of the configuration.
func StreamProblems(table string, info *source.TableInfo, path string) []problem.Problem {
	switch {
	case !info.Streaming:
		return []problem.Problem{errorf("no_stream", path, "aws dynamodb update-table --table-name "+table+
			" --stream-specification StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES",
			"the stream of %s is not enabled", table)}
	case info.View == "KEYS_ONLY" || info.View == "OLD_IMAGE":
		return []problem.Problem{errorf("view_type", path, "disable the stream, enable it with NEW_AND_OLD_IMAGES",
			"the stream of %s does not carry new images (%s)", table, info.View)}
	}
	return nil
}

// statusHints are what to do about a table that DynamoDB does not serve as usual, by its status. Of
// ACTIVE and UPDATING there is nothing to say.
//
// Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TableDescription.html
var statusHints = map[string]string{
	"CREATING": "repeat the check once the table is ACTIVE",
	"DELETING": "take the table out of the configuration, or wait until it is made again",
	"INACCESSIBLE_ENCRYPTION_CREDENTIALS": "let DynamoDB use the table's KMS key again: after seven days it archives " +
		"the table, and nothing can be read meanwhile",
	"ARCHIVING": "restore the table from the backup that DynamoDB makes of it, and let DynamoDB use its KMS key",
	"ARCHIVED":  "restore the table from the backup that DynamoDB has made of it, and let DynamoDB use its KMS key",
	"REPLICATION_NOT_AUTHORIZED": "let the replica's account replicate again, in the policies of both tables: writes " +
		"of other regions do not arrive here, so they are not replicated either",
}

// statusProblems shows the status of a table that is not served as usual.
func statusProblems(info *source.TableInfo, path string) []problem.Problem {
	switch info.Status {
	case "", "ACTIVE", "UPDATING":
		return nil
	}
	hint := cmp.Or(statusHints[info.Status], "look it up: `aws dynamodb describe-table --table-name "+info.Name+"`")
	return []problem.Problem{warnf("table_status", path, hint, "DynamoDB reports %s as %s", info.Name, info.Status)}
}

// tableProblems checks the description of a table.
func tableProblems(t *catalog.Table) (problems []problem.Problem) {
	info, path := &t.Info, t.Path+".source"
	add := func(p problem.Problem) { problems = append(problems, p) }
	problems = append(problems, StreamProblems(t.Source, info, path)...)
	problems = append(problems, statusProblems(info, path)...)
	if t.OnTTLExpiry == "archive" && info.TTLAttr == "" && info.TTLError == nil {
		add(warnf("no_ttl", path, "enable time to live on the table; or set its on_ttl_expiry to delete or keep",
			"%s has no time to live, so nothing is archived", t.Source))
	}
	if t.OnTTLExpiry != "delete" && info.TTLError != nil {
		add(warnf("ttl_unknown", path, "grant dynamodb:DescribeTimeToLive",
			"time to live of %s cannot be read: %v", t.Source, info.TTLError))
	}
	// Source:
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/globaltables-CoreConcepts.html
	if len(info.Replicas) > 0 {
		add(warnf("global_table", path,
			"run one pipeline, in the region where the application writes and TTL is on; nothing else may write this target",
			"%s is replicated (%s): every region's stream carries all writes, "+
				"and marks expiries only where TTL deleted the item",
			t.Source, strings.Join(info.Replicas, ", ")))
	}
	if info.Items > 0 && t.Backfill.From == "none" && !t.ArchivedOnly() {
		add(warnf(codeBackfill, path, "backfill: scan copies them: see docs/backfill.md",
			"with backfill: none, the about %s that %s holds arrive when they change next",
			english.Plural(int(info.Items), "item", ""), t.Source))
	}
	return problems
}

// readable tries each call that reading a stream needs: describing a table may be allowed where
// reading is not.
func (c *check) readable(ctx context.Context, t *catalog.Table) {
	if !t.Described || t.Info.StreamARN == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, clients.AskTimeout)
	defer cancel()
	if err := c.src.MayRead(ctx, t.Info.StreamARN); err != nil {
		c.failed("stream", t.Path+".source", source.Explain(err))
	}
}

// recovery checks whether a table that is to be copied has point-in-time recovery, which an export
// needs. It stays unknown without the permission to read it.
func (c *check) recovery(ctx context.Context, r *TableReport) {
	if r.Copy == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, clients.AskTimeout)
	defer cancel()
	p, err := c.src.PointInTime(ctx, r.Source)
	switch {
	case err != nil:
	case p.Enabled:
		r.Copy.Recovery = "on"
	default:
		r.Copy.Recovery = "off"
	}
}

// principal reports the identity of the calls to a server.
func (c *check) principal(ctx context.Context, server string, ask func(context.Context) (string, error)) {
	ctx, cancel := context.WithTimeout(ctx, clients.AskTimeout)
	defer cancel()
	name, err := ask(ctx)
	switch {
	case err == nil:
		c.Principals[server] = name
	case errors.Is(err, source.ErrNoIdentities):
		c.Principals[server] = "anonymous: the server has no identities"
	case errors.Is(err, bigtable.ErrNoIdentities):
		c.Principals[server] = "anonymous: an emulator in plain text, without credentials"
	default:
		c.Principals[server] = "unknown"
		c.add(warnf("principal", server, "are there credentials? see docs/credentials.md", "%s", err.Error()))
	}
}

// bigtable reports the identity of the calls to Bigtable, and compares app profile and schema with
// what the sink needs.
func (c *check) bigtable(ctx context.Context) {
	if len(c.cfg.Replicated().Tables) == 0 {
		return
	}
	sink, err := c.clients.Bigtable(ctx)
	if err != nil {
		c.failed("bigtable", "bigtable", err)
		return
	}
	c.sink = sink
	c.principal(ctx, "bigtable", sink.Principal)
	c.profile(ctx)
	ctx, cancel := context.WithTimeout(ctx, clients.AskTimeout)
	defer cancel()
	differences, err := sink.Diff(ctx, c.catalog.BigtableTables())
	if bigtable.Classify(err) == failure.Denied {
		c.add(warnf("schema_unknown", "bigtable", "grant bigtable.tables.get (roles/bigtable.viewer)",
			"the tables and their GC rules cannot be read, here or while it runs: %v", err))
		return
	}
	if err != nil {
		c.failed("bigtable", "bigtable", bigtable.Explain(err))
		return
	}
	for _, what := range schemaFindings(differences) {
		c.add(errorf("schema", "bigtable", "`replicator schema --apply -c "+c.cfg.File+"`", "%s", what))
	}
}

// schemaFindings returns what to report about the schema: first all that is missing, which one
// command makes, then each setting that differs.
func schemaFindings(differences []tableschema.Difference) (all []string) {
	var missing []string
	for _, d := range differences {
		if d.Have == "missing" {
			missing = append(missing, settings.DifferenceText(d))
		} else {
			all = append(all, settings.DifferenceText(d))
		}
	}
	if len(missing) > 0 {
		all = slices.Insert(all, 0, strings.Join(missing, "; "))
	}
	return all
}

// profile checks that the app profiles allow every write, and route to one cluster.
func (c *check) profile(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, clients.AskTimeout)
	defer cancel()
	p, err := c.sink.Profile(ctx)
	c.writesTo = p.Cluster
	found, _ := settings.Profile(p, c.sink.Instance(), err) // comparing the schema reports what is wrong with the server
	c.add(profileProblems("bigtable.app_profile", found)...)
	found, _ = settings.ReadCopyProfile(ctx, c.sink)
	c.add(profileProblems("bigtable.copy_profile", found)...)
}

// CheckTarget returns an error of the environment, with what to do, if a target lacks something
// that the mappings of its tables need.
func CheckTarget(ctx context.Context, sink *bigtable.Client, tables *catalog.Catalog, target string) error {
	ctx, cancel := context.WithTimeout(ctx, clients.AskTimeout)
	defer cancel()
	others := func(t tableschema.Table) bool { return t.Name != target }
	differences, err := sink.Diff(ctx, slices.DeleteFunc(tables.BigtableTables(), others))
	if err != nil {
		return bigtable.Explain(err)
	}
	var lacks []string
	for _, d := range differences {
		lacks = append(lacks, settings.DifferenceText(d))
	}
	if len(lacks) == 0 {
		return nil
	}
	return failure.With(failure.Unready,
		"`replicator schema --apply`, then the same command again",
		fmt.Errorf("the target is not as the mapping needs it, nothing was accepted: %s",
			strings.Join(lacks, "; ")))
}

// profileProblems returns what run finds wrong with an app profile.
func profileProblems(path string, found protocol.Premises) (problems []problem.Problem) {
	for i := range found {
		if found[i].Unread != "" {
			problems = append(problems, warnf("profile_unknown", path,
				"grant bigtable.appProfiles.get (roles/bigtable.viewer) to verify its routing",
				"the app profile cannot be read: %s", found[i].Unread))
			continue
		}
		problems = append(problems, errorf("profile", path, found[i].Mend, "%s", found[i].State()))
	}
	return problems
}

// logs checks the queue: its directory and volume, or its servers, and the room that the logs need
// there.
func (c *check) logs(ctx context.Context) {
	if dir := c.cfg.Queue.Dir; dir != "" {
		if err := embedded.Writable(dir); err != nil {
			c.add(errorf("queue_dir", "queue.dir", "choose a directory that this user may write to",
				"the log cannot be kept: %v", err))
			c.queueFails = true
			return
		}
		if _, err := os.Stat(dir); err != nil { // the first run makes it; check does not
			if d, err := queue.DiskOf(clients.QueueOptions(c.cfg)); err == nil {
				c.add(diskProblems(d, queue.NeedsOf(clients.QueueOptions(c.cfg), c.sources()), dir)...)
			}
			return
		}
	}
	q, err := c.clients.Queue(ctx)
	if err != nil {
		c.failed("queue", "queue", err)
		c.queueFails = true
		return
	}
	c.queue = q
	c.natsServer(ctx)
	c.room(ctx)
	for _, note := range q.Notes() {
		c.add(warnf("queue_unverified", "queue", "see the NATS section of docs/operations.md", "%s", note))
	}
}
