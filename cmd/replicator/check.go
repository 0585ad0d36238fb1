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

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

// checkOptions are the flags of check.
type checkOptions struct {
	offline, strict bool
	sample          int
}

func (a *app) checkCommand() *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Find everything that is wrong with configuration, mappings and surroundings; write nothing",
		Long: `check reads the configuration and the mappings, then asks DynamoDB, Bigtable and the queue what a run would need of
them, and tries the mappings on a sample of items. All problems are said at once. It never writes.

Exit 2 when configuration or mapping are wrong, 3 when the surroundings are; --strict turns warnings into exit 2.`,
		Args: a.args(cobra.NoArgs),
		RunE: a.body(func(ctx context.Context, _ []string) error { return a.check(ctx, o) }),
	}
	f := cmd.Flags()
	f.BoolVar(&o.offline, "offline", false, "only what needs no connection")
	f.BoolVar(&o.strict, "strict", false, "warnings count as errors")
	f.IntVar(&o.sample, "sample", 0, "try the mapping on so many items of each table (reads them: costs capacity)")
	return cmd
}

// checkup collects what check finds.
type checkup struct {
	cfg        *config.Config
	problems   []config.Problem // of configuration and mappings
	around     []config.Problem // of the surroundings
	endpoints  map[string]string
	principals map[string]string
	cost       map[string]any
}

// askTimeout is what a server gets to answer one question of check: the clients' own patience is made for daemons.
const askTimeout = 5 * time.Second

// checkReport is what check --json prints.
type checkReport struct {
	Schema     int               `json:"schema"`
	OK         bool              `json:"ok"`
	Problems   []config.Problem  `json:"problems"`
	Principals map[string]string `json:"principals"`
	Endpoints  map[string]string `json:"endpoints"`
	Cost       map[string]any    `json:"cost"`
}

func (a *app) check(ctx context.Context, o checkOptions) error {
	cfg, problems, err := config.Load(a.configPath)
	if err != nil {
		return &ExitError{Code: exitUsage, Err: err, Hint: configHint}
	}
	u := &checkup{cfg: cfg, problems: problems, endpoints: map[string]string{}, principals: map[string]string{}, cost: map[string]any{}}
	all, found := parseMappings(cfg.Tables)
	u.problems = append(u.problems, found...)
	if !o.offline && !config.Refused(u.problems) {
		a.checkAround(ctx, u, all, o.sample)
	}
	return a.report(u, o.strict)
}

// checkAround asks the servers. What one of them says does not keep the others from being asked.
func (a *app) checkAround(ctx context.Context, u *checkup, all []*carried, sample int) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	u.places()
	src, err := a.source(ctx, u.cfg)
	if err != nil {
		u.surrounding("dynamodb", "source", err)
		return
	}
	defer src.Close()
	for _, c := range all {
		u.table(ctx, src, c)
	}
	u.problems = append(u.problems, compile(u.cfg, all)...)
	if sample > 0 {
		for _, c := range all {
			u.sample(ctx, src, c, sample)
		}
	}
	a.checkBigtable(ctx, u, src, all)
	a.checkQueue(ctx, u)
	u.reads(all)
}

// surrounding notes an error of a server, with the hint that goes with it.
func (u *checkup) surrounding(code, path string, err error) {
	hint := ""
	var exit *ExitError
	if errors.As(err, &exit) {
		hint = exit.Hint
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
		u.surrounding("table", path, sourceError(err))
		return
	}
	c.info, c.found = info, true
	say := func(severity, code, hint, what string, args ...any) {
		u.around = append(u.around, config.Problem{Severity: severity, Code: code, Path: path, What: fmt.Sprintf(what, args...), Hint: hint})
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
	if info.Items > 0 {
		say("warning", "backfill", "only changes are carried: items older than the stream's 24 hours come when they change next",
			"%s holds about %d items already", c.Source, info.Items)
	}
}

// sample projects items and counts what the mapping refuses.
func (u *checkup) sample(ctx context.Context, src *source.Source, c *carried, limit int) {
	if c.program == nil {
		return
	}
	var d change.Decoder
	seen, hashed := 0, 0
	refused := map[string]int{}
	for page, err := range src.Scan(ctx, c.Source, 0, 1) {
		if err != nil {
			u.surrounding("sample", c.path+".source", sourceError(fmt.Errorf("scan %s: %w", c.Source, err)))
			return
		}
		for _, raw := range page.Items {
			if seen++; seen > limit {
				break
			}
			img, err := d.Image(raw)
			if err == nil {
				_, err = c.program.Project(img)
			}
			var refusal *transform.Refusal
			if errors.As(err, &refusal) {
				refused[refusal.Code]++
			}
			if key := img.Get(c.info.Schema.Partition.Name); key != nil && strings.Contains(key.S, "#") {
				hashed++
			}
			d.Reset()
		}
		if seen >= limit {
			seen = limit
			break
		}
	}
	u.sampled(c, seen, hashed, refused)
}

func (u *checkup) sampled(c *carried, seen, hashed int, refused map[string]int) {
	warn := func(code, hint, what string, args ...any) {
		u.problems = append(u.problems, config.Problem{Severity: "warning", Code: code, Path: c.path + ".mapping", What: fmt.Sprintf(what, args...), Hint: hint})
	}
	for code, n := range refused {
		warn("sample_refused", "`replicator explain --item` shows one step by step", "the mapping refuses %d of %d sampled items: %s", n, seen, code)
	}
	if c.mapping == nil && hashed > 0 {
		warn("hash_in_key", "write a mapping with segment: strict or ordered if readers build keys by hand",
			"%d %% of sampled partition keys contain '#': it is written as %%23", hashed*100/seen)
	}
}

func (a *app) checkBigtable(ctx context.Context, u *checkup, src *source.Source, all []*carried) {
	if slices.ContainsFunc(all, func(c *carried) bool { return c.program == nil }) {
		return // what the tables must look like is not known
	}
	sink, err := a.bigtable(ctx, u.cfg, src)
	if err != nil {
		u.surrounding("bigtable", "bigtable", err)
		return
	}
	defer sink.Close()
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	differences, err := sink.Diff(asking, wantedTables(u.cfg, all))
	if err != nil {
		u.surrounding("bigtable", "bigtable", bigtableError(err))
		return
	}
	for _, d := range differences {
		name := d.Table
		if d.Family != "" {
			name += ":" + d.Family
		}
		u.around = append(u.around, config.Problem{Severity: "error", Code: "schema", Path: "bigtable",
			What: fmt.Sprintf("%s: has %s, needs %s", name, d.Have, d.Want), Hint: "`replicator schema --apply`"})
	}
}

func (a *app) checkQueue(ctx context.Context, u *checkup) {
	if dir := u.cfg.Queue.Dir; dir != "" {
		if _, err := os.Stat(dir); err != nil {
			return // the first run makes it; check does not
		}
	}
	q, err := a.client(ctx, u.cfg)
	if err != nil {
		u.surrounding("queue", "queue", err)
		return
	}
	defer q.Close()
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

// report prints the findings and returns the exit code: the configuration's errors win over those around it.
func (a *app) report(u *checkup, strict bool) error {
	all := append(append([]config.Problem{}, u.problems...), u.around...)
	faults := 0
	for _, p := range all {
		if p.Severity == "error" {
			faults++
		}
	}
	warnings := len(all) - faults
	ok := faults == 0 && (!strict || warnings == 0)
	if a.json {
		if err := a.printJSON(checkReport{schema, ok, all, u.principals, u.endpoints, u.cost}); err != nil {
			return err
		}
	} else {
		a.problems(a.out, all)
		a.print("%s: %s, %s", a.configPath, count(faults, "error"), count(warnings, "warning"))
	}
	switch {
	case ok:
		return nil
	case config.Refused(u.problems) || !config.Refused(u.around):
		return silent(exitUsage)
	default:
		return silent(exitSurroundings)
	}
}
