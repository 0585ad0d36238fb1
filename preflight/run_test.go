package preflight

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc/codes"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
)

// stage is a sandbox with a table, and a configuration that fits it.
type stage struct {
	*sandbox.World
	cfg config.Config
}

func newStage(t *testing.T) *stage {
	t.Helper()
	for _, name := range []string{"AWS_ENDPOINT_URL", "BIGTABLE_EMULATOR_HOST"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "sandbox")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "sandbox")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	s := &stage{World: sandbox.NewWorld(t, sandbox.WorldOptions{}), cfg: config.Default()}
	s.CreateTable("Orders")
	s.Put("Orders", "hats", "fedora", `"price":{"N":"12.50"}`)
	c := &s.cfg
	c.Pipeline, c.Source.Region, c.Source.Endpoint = "shop", "us-east-1", s.Endpoint()
	c.Bigtable.Project, c.Bigtable.Instance, c.Bigtable.Endpoint = "local", "local", s.Bigtable.Addr()
	c.Queue.Dir, c.Queue.URL = "", s.NATS.URL()
	c.Admin.Listen = "127.0.0.1:0"
	c.Tables = []config.Table{{Source: "Orders", Target: "orders", OnTTLExpiry: "delete"}}
	return s
}

// run returns the codes of the findings, errors with an exclamation mark.
func (s *stage) run(t *testing.T, o Options) (codes []string, r *Report) {
	t.Helper()
	o.Logger = func(zapcore.Level) *zap.Logger { return zap.NewNop() }
	r = Run(t.Context(), &s.cfg, nil, o)
	for _, p := range append(append([]problem.Problem{}, r.Problems...), r.Environment...) {
		code := p.Code
		if p.Severity == problem.SeverityError {
			code += "!"
		}
		if p.What == "" {
			t.Errorf("%s says nothing: %+v", code, p)
		}
		if !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	slices.Sort(codes)
	return codes, r
}

// TestRunFindsWhatTheServersLack: one cause at a time, and what follows from it. Without the
// Bigtable tables, "schema!" is always found; an external queue always has a setting that a client
// cannot see.
func TestRunFindsWhatTheServersLack(t *testing.T) {
	always := []string{"queue_unverified", "schema!", "storage_unverified"}
	for name, c := range map[string]struct {
		arrange func(t *testing.T, s *stage)
		more    []string // found besides
		less    []string // not found, because it cannot be asked
	}{
		"nothing": {func(*testing.T, *stage) {}, nil, nil},
		"Scan denied": {func(t *testing.T, s *stage) {
			s.inject(t, fault.Rule{Effect: fault.Error, Operation: "Scan", Code: "AccessDeniedException"})
		}, []string{"scan!"}, nil},
		"Scan denied without a backfill": {func(t *testing.T, s *stage) {
			s.inject(t, fault.Rule{Effect: fault.Error, Operation: "Scan", Code: "AccessDeniedException"})
			s.cfg.Tables[0].Backfill.From = "none"
		}, []string{"backfill", "sample"}, nil},
		"a first start that copies nothing": {func(_ *testing.T, s *stage) { s.cfg.Source.Start.Latest = true },
			[]string{"backfill"}, nil},
		"a share of no capacity": {func(_ *testing.T, s *stage) { s.cfg.Tables[0].Backfill.ReadUnits.Percent = 25 },
			[]string{"bad_value!"}, nil},
		"Scan fails": {func(t *testing.T, s *stage) {
			s.inject(t, fault.Rule{Effect: fault.Error, Operation: "Scan", Code: "ValidationException"})
		}, []string{"sample!"}, nil},
		"GetRecords denied": {func(t *testing.T, s *stage) {
			s.inject(t, fault.Rule{Effect: fault.Error, Operation: "GetRecords", Code: "AccessDeniedException"})
		}, []string{"stream!"}, nil},
		"no such table": {func(_ *testing.T, s *stage) { s.cfg.Tables[0].Source = "Nowhere" },
			[]string{"table!"}, nil},
		"Bigtable away": {func(_ *testing.T, s *stage) { s.cfg.Bigtable.Endpoint = "127.0.0.1:1" },
			[]string{"bigtable!"}, []string{"schema!"}},
		"families and profile may not be read": {func(_ *testing.T, s *stage) {
			s.Bigtable.Faults.RefuseSettings(codes.PermissionDenied, -1)
		}, []string{"profile_unknown", "schema_unknown"}, []string{"schema!"}},
		"the archive's manifests expire": {func(t *testing.T, s *stage) { s.expire(t, "<Prefix>a/</Prefix>") },
			[]string{"lifecycle!"}, nil},
		"archived items expire": {func(t *testing.T, s *stage) { s.expire(t, "<Prefix>a/tr_table=</Prefix>") },
			[]string{"lifecycle"}, nil},
		"the archive's directory is a file": {func(t *testing.T, s *stage) {
			file := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			s.cfg.Archive.URL = "file://" + file
		}, []string{"archive!"}, nil},
		"the archive's directory is not there": {func(t *testing.T, s *stage) {
			s.cfg.Archive.URL = "file://" + filepath.Join(t.TempDir(), "nothing")
		}, nil, nil},
		"NATS away": {func(_ *testing.T, s *stage) { s.cfg.Queue.URL = "nats://127.0.0.1:1" },
			[]string{"queue!"}, []string{"queue_unverified", "storage_unverified"}},
		"NATS too old": {func(t *testing.T, s *stage) { s.cfg.Queue.URL = oldNATS(t) },
			[]string{"queue!"}, []string{"queue_unverified", "storage_unverified"}},
		"copies without a cluster": {func(_ *testing.T, s *stage) { s.cfg.Queue.Replicas = 3 },
			[]string{"replicas!"}, nil},
		"no profile of AWS": {func(t *testing.T, _ *stage) { t.Setenv("AWS_PROFILE", "nowhere") },
			[]string{"dynamodb!"}, always},
		"port taken": {func(t *testing.T, s *stage) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { ln.Close() })
			s.cfg.Admin.Listen = ln.Addr().String()
		}, []string{"admin_port!"}, nil},
		"queue.dir is a file": {func(t *testing.T, s *stage) {
			s.cfg.Queue.URL, s.cfg.Queue.Dir = "", filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(s.cfg.Queue.Dir, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, []string{"queue_dir!"}, []string{"queue_unverified", "storage_unverified"}},
		"too little memory": {func(t *testing.T, _ *stage) {
			limit := debug.SetMemoryLimit(64 << 20)
			t.Cleanup(func() { debug.SetMemoryLimit(limit) })
		}, []string{"memory"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			c.arrange(t, s)
			want := append(slices.Clone(c.more), slices.DeleteFunc(slices.Clone(always), func(code string) bool {
				return slices.Contains(c.less, code)
			})...)
			slices.Sort(want)
			if got, r := s.run(t, Options{Sample: 10}); !slices.Equal(got, want) {
				t.Errorf("%v, want %v\n%+v", got, want, r)
			}
		})
	}
}

// expire gives the archive a bucket whose objects of a prefix are deleted after a month.
func (s *stage) expire(t *testing.T, filter string) {
	t.Helper()
	if err := s.Buckets.Create("kept"); err != nil {
		t.Fatal(err)
	}
	s.cfg.Archive.URL = "s3://kept/a?endpoint=" + s.S3.URL()
	rules := "<LifecycleConfiguration><Rule><ID>old</ID><Filter>" + filter +
		"</Filter><Status>Enabled</Status><Expiration><Days>30</Days></Expiration></Rule></LifecycleConfiguration>"
	url := s.S3.URL() + "/kept?lifecycle"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, strings.NewReader(rules))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	if err := res.Body.Close(); err != nil {
		t.Fatal(err)
	}
}

func (s *stage) inject(t *testing.T, r fault.Rule) {
	t.Helper()
	if err := s.Faults.Inject(r); err != nil {
		t.Fatal(err)
	}
}

// TestReportOfASample: rules, endpoints, principals, cost and the fate of every attribute.
func TestReportOfASample(t *testing.T) {
	s := newStage(t)
	_, r := s.run(t, Options{Sample: 10})
	if len(r.Tables) != 1 || r.Tables[0].Sampled != 1 || len(r.Tables[0].Rules) != 1 {
		t.Fatalf("%+v", r.Tables)
	}
	uses := map[string]string{}
	for attr, use := range r.Tables[0].Uses {
		uses[attr] = use
	}
	if uses["pk"] != "key" || uses["sk"] != "key" || uses["price"] != "mapped" {
		t.Errorf("%v", uses)
	}
	if r.Endpoints["dynamodb"] != s.Endpoint() || r.Endpoints["queue"] != "NATS cluster" {
		t.Errorf("%v", r.Endpoints)
	}
	if !strings.HasPrefix(r.Principals["bigtable"], "anonymous") || r.Cost["items"] != 1 || r.Cost[CostMemory] == 0 {
		t.Errorf("%v %v", r.Principals, r.Cost)
	}
}

// TestTableThatCannotBeDescribedHidesNothingOfTheOthers: what Bigtable lacks for them is named,
// too.
func TestTableThatCannotBeDescribedHidesNothingOfTheOthers(t *testing.T) {
	s := newStage(t)
	s.cfg.Tables = append(s.cfg.Tables, config.Table{Source: "Ghost", Target: "ghosts", OnTTLExpiry: "delete"})
	codes, r := s.run(t, Options{})
	if !slices.Contains(codes, "table!") || !slices.Contains(codes, "schema!") {
		t.Errorf("%v, want table! and schema!", codes)
	}
	for _, p := range slices.Concat(r.Problems, r.Environment) {
		if p.Code == "schema" && (!strings.Contains(p.What, "orders") || strings.Contains(p.What, "ghosts")) {
			t.Errorf("the schema of the table that is known: %s", p.What)
		}
	}
}

// TestOfflineAsksNoServer: the mapping of a table whose key is declared is compiled, another one is
// named.
func TestOfflineAsksNoServer(t *testing.T) {
	cfg := config.Default()
	cfg.Source.Endpoint, cfg.Bigtable.Endpoint = "http://127.0.0.1:1", "127.0.0.1:1"
	mapping := config.Mapping{File: "m.yaml", Data: []byte(`families: {d: {max_versions: 1}}
rules: [{name: r, match: {pk: "{p}"}, row: "{p}", cells: [{attrs: all, except: [pk], to: "d:{attr}"}]}]`)}
	cfg.Tables = []config.Table{
		{Source: "Declared", Target: "a", Keys: config.Keys{"pk:S"}, Mapping: mapping},
		{Source: "Unknown", Target: "b", Mapping: mapping},
	}
	r := Run(t.Context(), &cfg, nil, Options{Offline: true})
	if len(r.Tables) != 1 || r.Tables[0].Source != "Declared" {
		t.Errorf("%+v", r.Tables)
	}
	if len(r.Problems) != 1 || r.Problems[0].Code != "keys" || r.Problems[0].Path != "tables[1].keys" {
		t.Errorf("%+v", r.Problems)
	}
}

// testedBy names the test of each finding; those of stored state need a daemon, and are in
// test/check_test.go.
var testedBy = map[string]string{
	"chooses_nothing": "TestCheckNamesFoundTables", "gone": "TestGoneTableIsNamed", "tables": "TestCheckNamesFoundTables",
	"admin_port": "TestRunFindsWhatTheServersLack", "backfill": "TestWhatDynamoDBSaysOfATableIsJudged",
	"archive":  "TestRunFindsWhatTheServersLack",
	"bigtable": "TestRunFindsWhatTheServersLack", "disk_low": "TestVolumeTooSmallForTheLogsIsFound",
	"disk_short": "TestVolumeTooSmallForTheLogsIsFound", "dynamodb": "TestRunFindsWhatTheServersLack",
	"foreign_target": "TestCheckFindsAnotherPipelineInTheTarget", "global_table": "TestWhatDynamoDBSaysOfATableIsJudged",
	"log_too_small": "TestLimitWithoutRoomForTwoSnapshotsIsRefused", "max_payload": "TestServersAndAccountAreJudged",
	"in_flight": "TestCallsThatAreNeverReachedAreFound",
	"memory":    "TestRunFindsWhatTheServersLack", "no_stream": "TestWhatDynamoDBSaysOfATableIsJudged",
	"no_ttl": "TestWhatDynamoDBSaysOfATableIsJudged", "table_status": "TestWhatDynamoDBSaysOfATableIsJudged",
	"principal":       "TestUnknownPrincipalIsAWarning",
	"profile":         "TestAppProfileThatWouldRefuseEveryWriteIsFound",
	"profile_unknown": "TestAppProfileThatWouldRefuseEveryWriteIsFound",
	"queue":           "TestRunFindsWhatTheServersLack", "queue_dir": "TestRunFindsWhatTheServersLack",
	"queue_unverified": "TestRunFindsWhatTheServersLack", "replicas": "TestServersAndAccountAreJudged",
	"mapping_changed": "TestCheckRefusesWhatRunRefuses",

	"cluster_changed": "TestClusterChangeIsFound", "export": "TestCopiesThatCannotBeRead",
	"bulk_load": "TestBulkLoadsAreNamed", "bulk_unknown": "TestBulkLoadsAreNamed",
	"export_unconfirmed": "TestCopiesThatCannotBeRead",
	"heartbeat":          "TestCopiesThatCannotBeRead",
	"items":              "TestCopiesThatCannotBeRead", "no_recovery": "TestCopiesThatCannotBeRead",

	"lifecycle": "TestRunFindsWhatTheServersLack", "lifecycle_unknown": "TestLifecycleThatCannotBeReadIsNamed",
	"scan": "TestRunFindsWhatTheServersLack", "schema_unknown": "TestRunFindsWhatTheServersLack",
	"sample": "TestRunFindsWhatTheServersLack", "schema": "TestRunFindsWhatTheServersLack",
	"storage": "TestServersAndAccountAreJudged", "storage_unverified": "TestServersAndAccountAreJudged",
	"stored_state": "TestCheckRefusesWhatRunRefuses",
	"stream":       "TestRunFindsWhatTheServersLack", "table": "TestRunFindsWhatTheServersLack",
	"ttl_unknown": "TestWhatDynamoDBSaysOfATableIsJudged", "view_type": "TestWhatDynamoDBSaysOfATableIsJudged",
}

// TestEveryFindingHasATest compares testedBy with the codes in the sources, and with the tests that
// exist.
func TestEveryFindingHasATest(t *testing.T) {
	code := regexp.MustCompile(`(?:errorf|warnf|c\.failed)\(` +
		`(?:"(\w+)"|codeBackfill|codeScan|codeItems|codeExport|codeNoRecovery)`)
	found := map[string]bool{}
	tests := ""
	for _, pattern := range []string{"*.go", "../test/check_test.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v %v", pattern, names, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(name, "_test.go") {
				tests += string(text)
				continue
			}
			for _, m := range code.FindAllStringSubmatch(string(text), -1) {
				switch {
				case strings.HasSuffix(m[0], "codeBackfill"):
					m[1] = codeBackfill
				case strings.HasSuffix(m[0], "codeScan"):
					m[1] = codeScan
				case strings.HasSuffix(m[0], "codeItems"):
					m[1] = codeItems
				case strings.HasSuffix(m[0], "codeExport"):
					m[1] = codeExport
				case strings.HasSuffix(m[0], "codeNoRecovery"):
					m[1] = codeNoRecovery
				}
				found[m[1]] = true
			}
		}
	}
	for c := range found {
		if test := testedBy[c]; test == "" || !strings.Contains(tests, "func "+test+"(") {
			t.Errorf("finding %q has no test", c)
		}
	}
	for c := range testedBy {
		if !found[c] {
			t.Errorf("no check finds %q", c)
		}
	}
}
