package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/problem"
)

const smallest = `
pipeline: shop
source: {region: eu-west-1}
bigtable: {project: acme, instance: main}
queue: {dir: ./tailrace-data}
tables:
- {source: Products, target: products}
`

func parse(t *testing.T, text string) (*Config, []problem.Problem) {
	t.Helper()
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "BIGTABLE_EMULATOR_HOST"} {
		t.Setenv(name, "")
	}
	return Parse([]byte(text), "/etc/tailrace/tailrace.yaml")
}

func TestSmallestConfigurationWorks(t *testing.T) {
	got, problems := parse(t, smallest)
	if len(problems) > 0 {
		t.Fatalf("problems: %v", problems)
	}
	want := Default()
	want.File = "/etc/tailrace/tailrace.yaml"
	want.Pipeline = "shop"
	want.Source.Region = "eu-west-1"
	want.Bigtable.Project, want.Bigtable.Instance = "acme", "main"
	want.Queue.Dir, want.Queue.Replicas = "/etc/tailrace/tailrace-data", 1
	want.Scratch = "/etc/tailrace/tailrace-data"
	want.Protocol.Beat = Duration(5 * time.Second)
	want.Tables = []Table{{Source: "Products", Target: "products", OnReject: "letter", OnTTLExpiry: "delete",
		OnGap: "wait", StripGlobal: true, Path: "tables[0]"}}
	if d := cmp.Diff(&want, got); d != "" {
		t.Error(d)
	}
}

// TestStreamsHaveAnotherEndpointOnAWS: an endpoint of AWS is never that of the streams, and a file
// that names no other is warned of.
func TestStreamsHaveAnotherEndpointOnAWS(t *testing.T) {
	for _, c := range []struct{ endpoints, want, code string }{
		{`endpoint: "http://127.0.0.1:8000"`, "http://127.0.0.1:8000", ""},
		{`endpoint: "https://dynamodb.eu-west-1.amazonaws.com"`, "", "one_endpoint"},
		{`endpoint: "https://vpce-1.dynamodb.eu-west-1.vpce.amazonaws.com"`, "", "one_endpoint"},
		{`endpoint: "https://dynamodb.eu-west-1.api.aws"`, "", "one_endpoint"},
		{`endpoint: "https://a.api.aws", streams_endpoint: "https://a.api.aws"`, "https://a.api.aws", "one_endpoint"},
		{`endpoint: "https://a.api.aws", streams_endpoint: "https://b.api.aws"`, "https://b.api.aws", ""},
		{`streams_endpoint: "https://b.amazonaws.com"`, "https://b.amazonaws.com", ""},
	} {
		cfg, problems := parse(t, strings.Replace(smallest, "region: eu-west-1", "region: eu-west-1, "+c.endpoints, 1))
		code := ""
		for _, p := range problems {
			code += p.Code
		}
		if cfg.Source.StreamsEndpoint != c.want || code != c.code {
			t.Errorf("%s: streams at %q, problems %q; want %q, %q",
				c.endpoints, cfg.Source.StreamsEndpoint, code, c.want, c.code)
		}
	}
}

func TestEveryKeyIsRead(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "mappings", "orders.yaml"), "families: {}\n")
	text := `
pipeline: shop
source:   {region: eu-west-1, endpoint: "http://127.0.0.1:8000", streams_endpoint: "http://127.0.0.1:8001",
  assume_role: "arn:aws:iam::1:role/r", external_id: acme-7, idle_poll: 2s, start: trim_horizon}
bigtable: {project: acme, instance: main, app_profile: tailrace, copy_profile: low,
  endpoint: "https://b.example", admin_endpoint: "a.example:443", tls: true, ca: ca.pem, insecure: true,
  universe_domain: apis.example, timeout: 3s, max_in_flight: 300, tombstones: 200h}
queue:    {url: "nats://a:4222, nats://b:4222", creds: nats.creds, domain: edge,
  tls: {ca: ca.pem, cert: cert.pem, key: key.pem}, replicas: 5, max_bytes: 30GiB, replay_window: 2h}
memory:   {total: 100MiB, per_feed: 9MiB, copy: 50MiB}
scratch:  runs
pii_secrets: ["MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="]
admin:    {listen: 0.0.0.0:9999, hosts: [metrics.example]}
tracing:  {endpoint: "http://collector:4318", share: 0.5}
metrics:  {endpoint: "http://collector:4319", every: 30s}
shutdown_timeout: 26s
shadow: {share: 25%, app_profile: shadow, settle_units: 12.5, memory: 40MiB}
archive:  {url: "file://archive", format: parquet, classes: [user, ttl], roll: 2h,
  columns: {price: {path: a.price, type: "decimal(38,9)"}, note: {type: json}}, on_stall: letter, max_bytes: 3GiB,
  subject: tailrace.archive}
tables:
- {source: Orders, target: orders, keys: [pk:S, sk:N], mapping: mappings/orders.yaml,
  on_reject: halt, on_ttl_expiry: archive, strip_global_table_attributes: false, on_gap: heal, verify: {read_units: 50},
  backfill: {from: export, read_units: 12.5%, segments: 9, write_rows: 700/s, url: exports/1, by: workers}}
- {source: Old, target: old, backfill: {from: export, bucket: acme-exports, prefix: old, read_units: 2000}}
- {source: New, target: new, backfill: none, heartbeat: {prefix: _tr, every: 5s}, idle_poll: 30s}
- {source: "orders-*", tag: {replicate: bigtable, team: 1}, target: "shop-{table}"}
testing: {date_trust: 13s, patience: 14s, claim_ttl: 3s, find: 6s, beat: 500ms, listing: 1s, describe: 12s, trim: 2s,
  mark_interval: 4ms, retry_halted: 5s, lead: 11s}
`
	write(t, filepath.Join(dir, "t.yaml"), text)
	got, problems, err := Load(filepath.Join(dir, "t.yaml"))
	if err != nil || problem.AnyError(problems) {
		t.Fatal(err, problems)
	}
	want := &Config{
		File: filepath.Join(dir, "t.yaml"), Pipeline: "shop",
		Source: Source{"eu-west-1", "http://127.0.0.1:8000", "http://127.0.0.1:8001", "arn:aws:iam::1:role/r",
			"acme-7", Duration(2 * time.Second),
			Start{Horizon: true}},
		Bigtable: Bigtable{"acme", "main", "tailrace", "low", "https://b.example", "a.example:443", true,
			filepath.Join(dir, "ca.pem"), true, "apis.example", Duration(3 * time.Second), 300, Duration(200 * time.Hour)},
		Queue: Queue{"", "nats://a:4222, nats://b:4222", filepath.Join(dir, "nats.creds"), "edge",
			TLS{filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}, 5, 30 << 30,
			Duration(2 * time.Hour)},
		Memory: Memory{100 << 20, 9 << 20, 50 << 20}, Admin: Admin{"0.0.0.0:9999", []string{"metrics.example"}},
		Scratch: filepath.Join(dir, "runs"), PIISecrets: []string{"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="},
		Shadow:          Shadow{0.25, "shadow", 12.5, 40 << 20},
		ShutdownTimeout: Duration(26 * time.Second), Tracing: Tracing{"http://collector:4318", 0.5},
		Metrics: Metrics{"http://collector:4319", Duration(30 * time.Second)},
		Archive: Archive{"file://" + filepath.Join(dir, "archive"), "", "parquet", []string{"user", "ttl"},
			Duration(2 * time.Hour), map[string]Column{"price": {"a.price", "decimal(38,9)"}, "note": {"note", "json"}},
			"letter", 3 << 30, "tailrace.archive"},
		Tables: []Table{{Source: "Orders", Target: "orders", Keys: Keys{"pk:S", "sk:N"}, Path: "tables[0]",
			Mapping:  Mapping{File: filepath.Join(dir, "mappings", "orders.yaml"), Data: []byte("families: {}\n")},
			OnReject: "halt", OnTTLExpiry: "archive",
			Backfill: Backfill{"export", Units{Percent: 12.5}, 9, 700, "file://" + filepath.Join(dir, "exports/1"), "", "",
				"workers"},
			OnGap: "heal", Verify: Verify{Units{Absolute: 50}}},
			{Source: "Old", Target: "old", OnReject: "letter", OnTTLExpiry: "delete", OnGap: "wait", StripGlobal: true,
				Path: "tables[1]", Backfill: Backfill{From: "export", ReadUnits: Units{Absolute: 2000}, Bucket: "acme-exports",
					Prefix: "old"}},
			{Source: "New", Target: "new", OnReject: "letter", OnTTLExpiry: "delete", OnGap: "wait", StripGlobal: true,
				Backfill: Backfill{From: "none"}, Path: "tables[2]",
				Heartbeat: Heartbeat{Prefix: "_tr", Every: Duration(5 * time.Second), Write: true},
				IdlePoll:  Duration(30 * time.Second)}},
		Selections: []Table{{
			Source: "orders-*", Tag: map[string]string{"replicate": "bigtable", "team": "1"}, Target: "shop-{table}",
			OnReject: "letter", OnTTLExpiry: "delete", OnGap: "wait", StripGlobal: true, Path: "tables[3]",
		}},
		Protocol: Protocol{Duration(3 * time.Second), Duration(6 * time.Second), Duration(500 * time.Millisecond),
			Duration(time.Second), Duration(12 * time.Second),
			Duration(2 * time.Second), Duration(4 * time.Millisecond), Duration(5 * time.Second), Duration(13 * time.Second),
			Duration(14 * time.Second),
			Duration(11 * time.Second)},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestLogThatALargeRecordDoesNotFitIsRefused: such a log would stop for good at the first item of
// 400 KB.
func TestLogThatALargeRecordDoesNotFitIsRefused(t *testing.T) {
	for size, refused := range map[string]bool{"63MiB": true, "64MiB": false} {
		_, problems := parse(t, strings.Replace(smallest, "./tailrace-data", "./tailrace-data, max_bytes: "+size, 1))
		if problem.AnyError(problems) != refused {
			t.Errorf("%s: refused %v, want %v: %v", size, !refused, refused, problems)
		}
	}
}

func TestPasswordInTheFileIsWarnedOf(t *testing.T) {
	t.Setenv("NATS_URL", "nats://user:s3cret@a:4222")
	for value, warned := range map[string]bool{
		"nats://user:s3cret@a:4222": true, "nats://b:4222,nats://t0ken@a:4222": true, "nats://a:4222": false,
		"${NATS_URL}": false,
	} {
		_, problems := parse(t, strings.Replace(smallest, "{dir: ./tailrace-data}", `{url: "`+value+`"}`, 1))
		got := slices.ContainsFunc(problems, func(p problem.Problem) bool { return p.Code == "secret" })
		if got != warned || problem.AnyError(problems) {
			t.Errorf("%s: warned %v, want %v: %v", value, got, warned, problems)
		}
		if strings.Contains(fmt.Sprint(problems), "s3cret") {
			t.Errorf("%s: the password is printed: %v", value, problems)
		}
	}
}

func TestTLSFilesGoTogether(t *testing.T) {
	for text, refused := range map[string]bool{
		"url: nats://a:4222, tls: {ca: ca.pem}":                   false,
		"url: nats://a:4222, tls: {cert: cert.pem}":               true,
		"url: nats://a:4222, tls: {cert: cert.pem, key: key.pem}": false,
		"dir: ./tailrace-data, tls: {ca: ca.pem}":                 true,
		"dir: ./tailrace-data, domain: edge":                      true,
		"url: nats://a:4222, domain: edge":                        false,
		"url: nats://a:4222, domain: edge.*":                      true,
	} {
		_, problems := parse(t, strings.Replace(smallest, "dir: ./tailrace-data", text, 1))
		if problem.AnyError(problems) != refused {
			t.Errorf("%s: refused %v, want %v: %v", text, !refused, refused, problems)
		}
	}
}

// TestNothingIsSentInPlainTextByMistake: an endpoint without TLS is an emulator on this machine, or
// is permitted in so many words.
func TestNothingIsSentInPlainTextByMistake(t *testing.T) {
	const admin = ", admin_endpoint: \"https://a.example\""
	for _, c := range []struct{ text, want string }{
		{`endpoint: "127.0.0.1:8086"`, ""},
		{`endpoint: "localhost:8086"`, ""},
		{`endpoint: "http://[::1]:8086"`, ""},
		{`endpoint: "10.0.0.7:8086"`, "plain text and without credentials"},
		{`endpoint: "http://bigtable:8086"`, "plain text and without credentials"},
		{`endpoint: "bigtable:8086", insecure: true`, ""},
		{`endpoint: "https://b.example"` + admin, ""},
		{`endpoint: "b.example:443", tls: true` + admin, ""},
		{`endpoint: "https://b.example", ca: ca.pem` + admin, ""},
		{`endpoint: "https://b.example"`, "tables and app profiles have another endpoint"},
		{`endpoint: "https://b.example", admin_endpoint: "a.example:443"`, "plain text and without credentials"},
		{`endpoint: "https://b.example/rows"`, "an endpoint has no path"},
		{`endpoint: "http://b.example:1", tls: true`, "http:// is plain text"},
		{`endpoint: "b.example", tls: true`, "not host:port"},
		{`tls: true`, "for bigtable.endpoint only"},
		{`endpoint: "127.0.0.1:8086", ca: ca.pem`, "bigtable.ca is for TLS"},
		{`ca: ca.pem`, ""}, // as behind a proxy that breaks TLS open
	} {
		_, problems := parse(t, strings.Replace(smallest, "instance: main", "instance: main, "+c.text, 1))
		if got := fmt.Sprint(problems); c.want == "" && len(problems) > 0 || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %q", c.text, got, c.want)
		}
	}
}

// TestTableOfAnotherAccountIsNamedByItsARN, and by its name everywhere else.
func TestTableOfAnotherAccountIsNamedByItsARN(t *testing.T) {
	const arn = "arn:aws:dynamodb:eu-west-1:222222222222:table/Orders"
	for source, want := range map[string]string{
		arn: "",
		"arn:aws:dynamodb:us-east-1:222222222222:table/Orders":          "source.region is eu-west-1",
		"arn:aws:dynamodb:eu-west-1:222222222222:table/Orders/stream/1": "not the ARN of a table",
		"arn:aws:dynamodb:eu-west-1:222222222222:table/*":               "no pattern",
		"arn:aws:kinesis:eu-west-1:222222222222:stream/Orders":          "not the ARN of a table",
		arn + ", target: b}\n- {source: Orders":                         "already the source of tables[0]",
		"arn:aws-cn:dynamodb:cn-north-1:222222222222:table/Orders":      "source.region is eu-west-1",
	} {
		cfg, problems := parse(t, strings.Replace(smallest, "{source: Products,", "{source: "+source+",", 1))
		if got := fmt.Sprint(problems); want == "" && len(problems) > 0 || !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", source, got, want)
		}
		if want == "" && (cfg.Tables[0].Source != "Orders" || cfg.Tables[0].ARN != arn) {
			t.Errorf("%s: %+v", source, cfg.Tables[0])
		}
	}
	_, problems := parse(t, strings.Replace(smallest, "region: eu-west-1", "region: eu-west-1, external_id: a", 1))
	if !strings.Contains(fmt.Sprint(problems), "for source.assume_role only") {
		t.Error(problems)
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing written", "  \n", `error: the file is empty`},
		{"not YAML", "pipeline: shop\n  source: [\n", `error: line 2: not YAML: `},
		{"every kind of mistake in one file", `pipeline: my shop
sorce: {region: eu-west-1}
bigtable: {project: acme, timeout: 10, tombstones: 1h}
queue: {dir: data, url: "nats://x:4222", max_bytes: lots, replicas: 2}
memory: {total: 1MiB}
admin: {listen: 9464}
tracing: {endpoint: "collector:4318", share: 2}
shutdown_timeout: 0s
archive: {subject: "a.*"}
tables:
- {source: Orders, target: "my orders", on_reject: drop}
- {source: Orders, taget: orders, mapping: nowhere.yaml}
`, `error: source.region: source.region is required
error: line 1: pipeline: "my shop" is not a possible value
error: line 2: sorce: unknown key "sorce"
error: line 3: bigtable.timeout: "10" is not a duration: write a number with a unit, as in 10s, 5m or 168h
error: line 3: bigtable.instance: bigtable.instance is required
error: line 3: bigtable.tombstones: tombstones of 1h0m0s are too short: ` +
			"DynamoDB keeps changes for 24 h, and the last 24 h of a tombstone's life are its margin" + `
error: line 4: queue.max_bytes: "lots" is not a size: write bytes, or a number with a unit, as in 96MiB or 20GiB
error: line 4: queue: queue.dir and queue.url exclude each other
error: line 4: queue.replicas: 2 copies are not possible
error: line 5: memory.total: memory.total 1MiB is less than memory.per_feed 8MiB
error: line 6: admin.listen: "9464" is not an address
error: line 7: tracing.endpoint: "collector:4318" is not an http or https URL
error: line 7: tracing.share: 2 is not above 0 and up to 1
error: line 8: shutdown_timeout: shutdown_timeout must be longer than zero, not 0s
error: line 9: archive.subject: "a.*" is not a subject that can be published to
error: line 11: tables[0].target: "my orders" is not a possible value
error: line 11: tables[0].on_reject: "drop" is not a possible value
error: line 12: tables[1].taget: unknown key "taget"
error: line 12: tables[1].mapping: the mapping file cannot be read: ` +
			`open /etc/tailrace/nowhere.yaml: no such file or directory
error: line 12: tables[1].target: tables[1].target is required
error: line 12: tables[1].source: "Orders" is already the source of tables[0]`},
		{"entries that are no blocks", smallest + "- nothing\n- [1]\n- {source: Products, target: p, mapping: [a], " +
			"strip_global_table_attributes: 3}\n",
			`error: line 8: tables[1]: the text ` + "`nothing`" + ` does not fit: expected a block of keys
error: line 9: tables[2]: a list does not fit: expected a block of keys
error: line 10: tables[3].mapping: a mapping is a path or a block of families and rules, not a list
error: line 10: tables[3].strip_global_table_attributes: the number ` + "`3`" + ` does not fit: expected true or false
error: line 10: tables[3].source: "Products" is already the source of tables[0]`},
		{"archive without a place, the state's own table",
			smallest + "- {source: Old, target: tailrace_state, on_ttl_expiry: archive}\n",
			`error: line 8: tables[1].target: tailrace_state holds the state of the pipelines
error: line 8: tables[1].on_ttl_expiry: archival events need a place: archive.url, archive.file or archive.subject`},
		{"names that init leaves to the author", `pipeline: shop
source: {region: eu-west-1}
bigtable: {project: MY-PROJECT, instance: MY-INSTANCE}
queue: {dir: data}
archive: {url: "s3://MY-BUCKET/prefix"}
tables:
- {source: Orders, target: orders}
`, `error: line 3: bigtable.project: bigtable.project is still MY-PROJECT: write the name of yours
error: line 3: bigtable.instance: bigtable.instance is still MY-INSTANCE: write the name of yours
error: line 5: archive.url: archive.url still names a bucket MY-…: write the name of yours`},
		{"a key twice", smallest + "pipeline: other\n",
			`error: line 8: pipeline: "pipeline" is written twice, first in line 2`},
		{"testing periods", smallest + "testing: {claim_ttl: 1s, beat: 1s}\n",
			`error: line 8: testing.beat: an owner that is silent for 1s loses a log that may be claimed after 1s
warning: line 8: testing: the periods of the protocol were changed for testing`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, problems := parse(t, c.text)
			var got []string
			for _, p := range problems {
				got = append(got, p.String())
				if p.Hint == "" || p.Code == "" {
					t.Errorf("%s: no hint or no code", p)
				}
			}
			if c.name == "not YAML" {
				got[0] = got[0][:len(c.want)]
			}
			if d := cmp.Diff(c.want, strings.Join(got, "\n")); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestHeartbeatsHaveKeysOfOneKind(t *testing.T) {
	for text, want := range map[string]Heartbeat{
		`{prefix: "_"}`:                    {Prefix: "_", Every: Duration(10 * time.Second), Write: true},
		`{prefix: "_", write: false}`:      {Prefix: "_", Every: Duration(10 * time.Second)},
		`{keys: ["-1", "-2"], every: 30s}`: {Keys: []string{"-1", "-2"}, Every: Duration(30 * time.Second), Write: true},
		`{}`:                               {},
		`{prefix: "_", keys: ["1"]}`:       {},
		`{prefix: "_", every: 100ms}`:      {},
	} {
		cfg, problems := parse(t, strings.Replace(smallest, "target:", "heartbeat: "+text+", target:", 1))
		if refused := want.Every == 0; problem.AnyError(problems) != refused {
			t.Errorf("%s: %v", text, problems)
		} else if d := cmp.Diff(want, cfg.Tables[0].Heartbeat); !refused && d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
}

// TestIdlePollOfATable: in place of source.idle_poll, within what DynamoDB serves and a minute. The
// tables of a selection have the selection's.
func TestIdlePollOfATable(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 2 * time.Second, "idle_poll: 200ms, ": 200 * time.Millisecond, "idle_poll: 60s, ": time.Minute,
		"idle_poll: 199ms, ": 0, "idle_poll: 61s, ": 0, "idle_poll: 0s, ": 0,
	} {
		for source, target := range map[string]string{"Orders": "orders", "Ord*": "shop-{table}"} {
			cfg, problems := parse(t, fmt.Sprintf("pipeline: shop\nsource: {region: eu-west-1, idle_poll: 2s}\n"+
				"bigtable: {project: p, instance: i}\nqueue: {dir: d}\ntables: [{source: %q, %starget: %q}]\n",
				source, text, target))
			if refused := want == 0; problem.AnyError(problems) != refused {
				t.Errorf("%s of %s: %v", text, source, problems)
			}
			if want == 0 {
				continue
			}
			if cfg.Selecting() {
				cfg, _ = cfg.Expand([]Listed{{Name: "Orders"}})
			}
			if got := cfg.Poll(&cfg.Tables[0]); got != want {
				t.Errorf("%s of %s: %v, want %v", text, source, got, want)
			}
		}
	}
}

func TestHintNamesTheKeyThatWasMeant(t *testing.T) {
	_, problems := parse(t, strings.Replace(smallest, "target:", "taget:", 1))
	want := "did you mean `target`? known here: source, tag, except, target, keys, mapping, on_reject, on_ttl_expiry, " +
		"archive, backfill, on_gap, verify, heartbeat, idle_poll, strip_global_table_attributes"
	if problems[0].Hint != want {
		t.Errorf("hint = %q, want %q", problems[0].Hint, want)
	}
}

// TestHintListsDocumentedKeysOnly: the periods of the protocol are for tests.
func TestHintListsDocumentedKeysOnly(t *testing.T) {
	_, problems := parse(t, smallest+"qeue: {}\n")
	if hint := problems[0].Hint; !strings.Contains(hint, "tables") || strings.Contains(hint, "testing") {
		t.Errorf("hint = %q", hint)
	}
}

func TestSecretsComeFromOutsideAndAreNotRepeated(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "secret"), "nats://tok3n@x:4222\n")
	t.Setenv("TR_PROJECT", "acme")
	t.Setenv("TR_REPLICAS", "3")
	t.Setenv("TR_TIMEOUT", "s3cret")
	text := `
pipeline: ${TR_PIPELINE:-shop}
source: {region: "${TR_NOWHERE}"}
bigtable: {project: "${TR_PROJECT}-dev", instance: "$${main}", timeout: "${TR_TIMEOUT}"}
queue: {url: "${file:secret}", replicas: "${TR_REPLICAS}"}
tables:
- {source: Products, target: products}
`
	got, problems := Parse([]byte(text), filepath.Join(dir, "t.yaml"))
	if got.Pipeline != "shop" || got.Bigtable.Project != "acme-dev" || got.Bigtable.Instance != "${main}" ||
		got.Queue.URL != "nats://tok3n@x:4222" || got.Queue.Replicas != 3 {
		t.Errorf("got %+v", got)
	}
	var said []string
	for _, p := range problems {
		said = append(said, p.String())
		if strings.Contains(p.String()+p.Hint, "s3cret") {
			t.Errorf("a secret was repeated: %s", p)
		}
	}
	want := []string{
		"error: line 3: source.region: the environment variable TR_NOWHERE is not set",
		"error: line 4: bigtable.timeout: what ${TR_TIMEOUT} holds cannot be used here",
	}
	if d := cmp.Diff(want, said); d != "" {
		t.Error(d)
	}
}

// TestMappingsAreReadAgain: those of files; a mapping in the configuration stays.
func TestMappingsAreReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "orders.yaml")
	if err := os.WriteFile(file, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := &Config{Tables: []Table{
		{Source: "Orders", Mapping: Mapping{File: file, Data: []byte("old")}},
		{Source: "Users", Mapping: Mapping{File: file, Data: []byte("inline"), Line: 3}}, {Source: "Carts"},
	}}
	fresh, err := cfg.ReadMappingsAgain()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"new", "inline", ""} {
		if got := string(fresh.Tables[i].Mapping.Data); got != want {
			t.Errorf("%s: %q, want %q", fresh.Tables[i].Source, got, want)
		}
	}
	if string(cfg.Tables[0].Mapping.Data) != "old" {
		t.Error("the configuration itself has changed")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := cfg.ReadMappingsAgain(); err == nil || !strings.Contains(err.Error(), "Orders") {
		t.Errorf("without the file: %v", err)
	}
}

func TestInlineMappingKeepsItsLines(t *testing.T) {
	cfg, problems := parse(t, smallest+`- source: Orders
  target: orders
  mapping:
    # a comment
    families: {d: {}}

    rules: ["${not a variable}"]
  on_reject: halt
- {source: Flow, target: flow, mapping: {families: {e: {}}}, on_reject: halt}
- source: Anchor
  target: anchor
  mapping: &shared
    families: {f: {}}
- {source: Alias, target: alias, mapping: *shared}
`)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	block, flow := cfg.Tables[1].Mapping, cfg.Tables[2].Mapping
	if want := strings.Repeat("\n", 11) +
		"    families: {d: {}}\n\n    rules: [\"${not a variable}\"]\n"; string(block.Data) != want || block.Line != 12 {
		t.Errorf("line %d: %q, want %q", block.Line, block.Data, want)
	}
	if want := strings.Repeat("\n", 15) + "{families: {e: {}}}\n"; string(flow.Data) != want || !flow.Inline() {
		t.Errorf("%q, want %q", flow.Data, want)
	}
	for _, table := range cfg.Tables[3:] {
		if want := strings.Repeat("\n", 19) + "    families: {f: {}}\n"; string(table.Mapping.Data) != want {
			t.Errorf("%s: %q, want %q", table.Source, table.Mapping.Data, want)
		}
	}
}

func TestValuesReadBackAsWritten(t *testing.T) {
	for _, text := range []string{"0", "1", "1000", "1KiB", "96MiB", "20GiB", "3TiB"} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s.String() != text {
			t.Errorf("%s: %s, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "-1", "1.5.2", "GiB", "12 parsecs", "99999999999PiB"} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was taken as %d bytes", text, s)
		}
	}
	for _, text := range []string{"trim_horizon", "latest", "2026-11-21T14:00:00Z"} {
		var s Start
		if err := s.UnmarshalText([]byte(text)); err != nil || s.String() != text {
			t.Errorf("%s: %s, %v", text, s, err)
		}
	}
}

// FuzzParse asserts that no text makes the reader panic, and that what it accepts has the required
// parts.
func FuzzParse(f *testing.F) {
	f.Add(smallest)
	f.Add("tables: [{mapping: {a: b}}, [], 3]\nqueue: *x\n")
	f.Add("a: &a [*a]\n<<: {pipeline: x}\n? [1]\n: 2\n")
	f.Fuzz(func(t *testing.T, text string) {
		cfg, problems := Parse([]byte(text), "/nowhere/t.yaml")
		if !problem.AnyError(problems) && (cfg.Pipeline == "" || len(cfg.Tables) == 0 || cfg.Bigtable.Project == "") {
			t.Errorf("accepted %q", text)
		}
	})
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestKeysAreReadAsPeopleWriteThem(t *testing.T) {
	sort := change.KeyAttr{Name: "a:b", Type: 'N'}
	for text, want := range map[string]*change.KeySchema{
		"[pk:S]":        {Partition: change.KeyAttr{Name: "pk", Type: 'S'}},
		"[pk:B, a:b:N]": {Partition: change.KeyAttr{Name: "pk", Type: 'B'}, Sort: &sort},
		"[]":            nil, "[pk]": nil, "[pk:X]": nil, "[\":S\"]": nil, "[pk:S, pk:S]": nil, "[a:S, b:S, c:S]": nil,
	} {
		cfg, problems := parse(t, strings.Replace(smallest, "target: products", "target: products, keys: "+text, 1))
		got, ok := cfg.Tables[0].Keys.Schema()
		if want == nil {
			if ok || len(problems) != 1 || problems[0].Path != "tables[0].keys" {
				t.Errorf("%s: %v, %v", text, got, problems)
			}
			continue
		}
		if diff := cmp.Diff(*want, got); diff != "" || len(problems) > 0 {
			t.Errorf("%s: %v\n%s", text, problems, diff)
		}
		if diff := cmp.Diff(cfg.Tables[0].Keys, KeysOf(got)); diff != "" {
			t.Errorf("%s: written back:\n%s", text, diff)
		}
	}
}

// TestProblemsOfServersHaveLines: what DynamoDB says of a table is about a line of the file, or of
// the block around it.
func TestProblemsOfServersHaveLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tailrace.yaml")
	text := "pipeline: shop\nsource:\n  region: us-east-1\ntables:\n- source: A\n  target: a\n- target: b\n  source: B\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	problems := []problem.Problem{
		{Path: "tables[1].source"}, {Path: "source.region"}, {Path: "tables[0].backfill"}, {Path: "queue.dir"},
		{Path: "tables[1].source", Line: 99}, {Path: "rules[0]", File: "mapping.yaml"},
	}
	cfg.Locate(problems)
	var lines []int
	for _, p := range problems {
		lines = append(lines, p.Line)
	}
	if d := cmp.Diff([]int{8, 3, 5, 0, 99, 0}, lines); d != "" {
		t.Errorf("lines (-want +got):\n%s", d)
	}
}
