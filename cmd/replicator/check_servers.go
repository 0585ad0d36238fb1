package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/embedded"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
)

// checkAround asks the servers. What one of them says does not keep the others from being asked.
func (a *app) checkAround(ctx context.Context, u *checkup, all []*carried, sample int) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	defer u.close()
	u.places()
	u.adminPort(ctx)
	src, err := a.source(ctx, u.cfg)
	if err != nil {
		u.environment("dynamodb", "source", err)
		return
	}
	defer src.Close()
	for _, c := range all {
		u.table(ctx, src, c)
		u.readable(ctx, src, c)
	}
	u.principal(ctx, "dynamodb", src.Principal)
	u.problems = append(u.problems, compile(u.cfg, all)...)
	a.survey(ctx, u, src, all, sample)
	a.checkBigtable(ctx, u, src, all)
	a.checkQueue(ctx, u)
	u.stored(ctx, all)
	u.reads(all)
}

// close ends the connections of the check.
func (u *checkup) close() {
	if u.sink != nil {
		_ = u.sink.Close()
	}
	if u.queue != nil {
		_ = u.queue.Close()
	}
}

// environment notes an error of a server, with the hint that goes with it.
func (u *checkup) environment(code, path string, err error) {
	hint := ""
	var known *exit.Error
	if errors.As(err, &known) {
		hint = known.Hint
	}
	u.around = append(u.around, config.Problem{Severity: "error", Code: code, Path: path, What: err.Error(), Hint: hint})
}

func (u *checkup) places() {
	or := func(name, value, otherwise string) {
		if value == "" {
			value = otherwise
		}
		u.endpoints[name] = value
	}
	s := &u.cfg.Source
	everywhere := cmp.Or(os.Getenv("AWS_ENDPOINT_URL"), "AWS "+s.Region)
	or("dynamodb", s.Endpoint, cmp.Or(os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"), everywhere))
	or("dynamodb_streams", s.StreamsEndpoint, cmp.Or(os.Getenv("AWS_ENDPOINT_URL_DYNAMODB_STREAMS"), everywhere))
	or("bigtable", u.cfg.Bigtable.Endpoint, "Google Cloud")
	or("queue", u.cfg.Queue.Dir, "NATS cluster")
}

// table checks what DynamoDB says about a table.
func (u *checkup) table(ctx context.Context, src *source.Source, c *carried) {
	path := c.path + ".source"
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	info, err := src.Table(asking, c.Source)
	if err != nil {
		u.environment("table", path, exit.Source(err))
		return
	}
	c.info, c.found = info, true
	u.around = append(u.around, c.tableProblems()...)
}

// tableProblems judges what DynamoDB says about a table.
func (c *carried) tableProblems() (problems []config.Problem) {
	info := c.info
	say := func(severity, code, hint, what string, args ...any) {
		problems = append(problems, config.Problem{Severity: severity, Code: code, Path: c.path + ".source", What: fmt.Sprintf(what, args...), Hint: hint})
	}
	switch {
	case !info.Streaming:
		say("error", "no_stream", "aws dynamodb update-table --table-name "+c.Source+
			" --stream-specification StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES", "the stream of %s is not enabled", c.Source)
	case info.View == "KEYS_ONLY" || info.View == "OLD_IMAGE":
		say("error", "view_type", "disable the stream, enable it with NEW_AND_OLD_IMAGES", "the stream of %s does not carry new images (%s)", c.Source, info.View)
	}
	if c.OnTTLExpiry == "archive" && info.TTLAttr == "" && info.TTLError == nil {
		say("warning", "no_ttl", "enable time to live on the table, or remove on_ttl_expiry", "%s has no time to live, so nothing is archived", c.Source)
	}
	if c.OnTTLExpiry != "delete" && info.TTLError != nil {
		say("warning", "ttl_unknown", "grant dynamodb:DescribeTimeToLive", "time to live of %s cannot be asked for: %v", c.Source, info.TTLError)
	}
	// Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/globaltables-CoreConcepts.html
	if len(info.Replicas) > 0 {
		say("warning", "global_table", "run one pipeline, in the region where the application writes and TTL is on; nothing else may write this target",
			"%s is replicated (%s): every region's stream carries all writes, and marks expiries only where TTL deleted the item", c.Source, strings.Join(info.Replicas, ", "))
	}
	if info.Items > 0 {
		say("warning", "backfill", "only changes are carried: items older than the stream's 24 hours come when they change next",
			"%s holds about %s already", c.Source, render.Count(int(info.Items), "item"))
	}
	return problems
}

func (a *app) checkBigtable(ctx context.Context, u *checkup, src *source.Source, all []*carried) {
	sink, err := a.bigtable(ctx, u.cfg, src)
	if err != nil {
		u.environment("bigtable", "bigtable", err)
		return
	}
	u.sink = sink
	u.principal(ctx, "bigtable", sink.Principal)
	u.profile(ctx, sink)
	if slices.ContainsFunc(all, func(c *carried) bool { return c.program == nil }) {
		return // what the tables must look like is not known
	}
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	differences, err := sink.Diff(asking, wantedTables(u.cfg, all))
	if err != nil {
		u.environment("bigtable", "bigtable", exit.Bigtable(err))
		return
	}
	for _, d := range differences {
		u.around = append(u.around, config.Problem{Severity: "error", Code: "schema", Path: "bigtable",
			What: said(d), Hint: "`replicator schema --apply`"})
	}
}

// principal notes who the calls to a server are made as.
func (u *checkup) principal(ctx context.Context, server string, who func(context.Context) (string, error)) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	name, err := who(ctx)
	switch {
	case err == nil:
		u.principals[server] = name
	case errors.Is(err, source.ErrNoIdentities), errors.Is(err, bigtable.ErrNoIdentities):
		u.principals[server] = "anybody: the server knows no identities"
	default:
		u.principals[server] = "unknown"
		u.around = append(u.around, config.Problem{Severity: "warning", Code: "principal", Path: server, What: err.Error(),
			Hint: "are there credentials? see docs/credentials.md"})
	}
}

// profile looks whether the app profile lets every write through.
func (u *checkup) profile(ctx context.Context, sink *bigtable.Client) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	p, err := sink.Profile(ctx)
	if problem, bad := profileProblem(p, err, u.cfg.Bigtable.Instance); bad {
		problem.Path = "bigtable.app_profile"
		u.around = append(u.around, problem)
	}
}

// profileProblem judges an app profile, or the error in its place: writes must go to one cluster, and conditionally.
func profileProblem(p bigtable.Profile, err error, instance string) (config.Problem, bool) {
	say := func(severity, code, hint, what string, arg any) (config.Problem, bool) {
		return config.Problem{Severity: severity, Code: code, What: fmt.Sprintf(what, arg), Hint: hint}, true
	}
	update := fmt.Sprintf("gcloud bigtable app-profiles update %s --instance=%s --route-to=CLUSTER --transactional-writes", p.Name, instance)
	switch {
	case errors.Is(err, bigtable.ErrNoProfiles):
		return config.Problem{}, false
	case err != nil && bigtable.Classify(err) == failure.Denied:
		return say("warning", "profile_unknown", "grant bigtable.appProfiles.get (roles/bigtable.viewer) to verify its routing", "the app profile cannot be read: %v", err)
	case err != nil && bigtable.Classify(err) == failure.Missing:
		return say("error", "profile", "gcloud bigtable app-profiles create NAME --instance="+instance+" --route-to=CLUSTER --transactional-writes",
			"the instance has no such app profile: %v", err)
	case err != nil: // the comparison of the schema says what is wrong with the server
		return config.Problem{}, false
	case !p.SingleCluster:
		return say("error", "profile", update, "app profile %s routes to several clusters: conditional writes need one", p.Name)
	case !p.Transactional:
		return say("error", "profile", update, "app profile %s does not allow single-row transactions: every write would be refused", p.Name)
	default:
		return config.Problem{}, false
	}
}

func (a *app) checkQueue(ctx context.Context, u *checkup) {
	if dir := u.cfg.Queue.Dir; dir != "" {
		if err := embedded.Writable(dir); err != nil {
			u.fault("queue_dir", "queue.dir", "choose a directory that this user may write to", "the log cannot be kept: %v", err)
			u.noLogs = true
			return
		}
		if _, err := os.Stat(dir); err != nil { // the first run makes it; check does not
			if d, err := queue.DiskOf(queueOptions(u.cfg)); err == nil {
				u.around = append(u.around, diskProblems(d, dir)...)
			}
			return
		}
	}
	q, err := a.client(ctx, u.cfg)
	if err != nil {
		u.environment("queue", "queue", err)
		u.noLogs = true
		return
	}
	u.queue = q
	u.server(ctx)
	u.capacity(ctx, q)
	for _, note := range q.Notes() {
		u.around = append(u.around, config.Problem{Severity: "warning", Code: "queue_unverified", Path: "queue", What: note,
			Hint: "see the NATS section of docs/operations.md"})
	}
}

// reads estimates what an idle table costs: one GetRecords per open shard and idle_poll.
func (u *checkup) reads(all []*carried) {
	perShard := int(time.Hour / time.Duration(u.cfg.Source.IdlePoll))
	u.cost["idle_reads_per_shard_and_hour"] = perShard
	var items, bytes int64
	for _, c := range all {
		items, bytes = items+c.info.Items, bytes+c.info.Bytes
	}
	u.cost["items"], u.cost["bytes"] = items, bytes
}
