package preflight

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/settings"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

// TestAppProfileThatWouldRefuseEveryWriteIsFound: with routing to several clusters or without
// transactional writes no conditional write is taken.
func TestAppProfileThatWouldRefuseEveryWriteIsFound(t *testing.T) {
	for _, c := range []struct {
		name    string
		profile bigtable.Profile
		err     error
		want    string // severity and the beginning of the words; empty: no finding
	}{
		{"as it should be", bigtable.Profile{Name: "p", SingleCluster: true, Transactional: true}, nil, ""},
		{"several clusters", bigtable.Profile{Name: "p"}, nil, "error: app profile p: routing is several clusters"},
		{"no transactions", bigtable.Profile{Name: "p", SingleCluster: true}, nil,
			"error: app profile p: transactional-writes is off"},
		{"emulator", bigtable.Profile{}, bigtable.ErrNoProfiles, ""},
		{"may not look", bigtable.Profile{}, status.Error(codes.PermissionDenied, "no"),
			"warning: the app profile cannot be read"},
		{"not there", bigtable.Profile{Name: "p"}, status.Error(codes.NotFound, "no"),
			"error: app profile p is missing"},
		{"server away", bigtable.Profile{}, status.Error(codes.Unavailable, "no"), ""},
	} {
		got := ""
		found, _ := settings.Profile(c.profile, "main", c.err)
		for _, p := range profileProblems("bigtable.app_profile", found) {
			got += p.Severity + ": " + p.What
		}
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestCopyProfileThatDiffersIsFound: conditional writes of copies in another cluster than that of
// the stream would be decided by older rows.
func TestCopyProfileThatDiffersIsFound(t *testing.T) {
	stream := bigtable.Profile{Name: "p", SingleCluster: true, Transactional: true, Cluster: "c1"}
	for _, c := range []struct {
		name            string
		profile, stream bigtable.Profile
		err             error
		want, hint      string
	}{
		{"as it should be", bigtable.Profile{Name: "q", SingleCluster: true, Transactional: true, Cluster: "c1"}, stream, nil,
			"", ""},
		{"another cluster", bigtable.Profile{Name: "q", SingleCluster: true, Transactional: true, Cluster: "c2"}, stream, nil,
			"error: app profile q (bigtable.copy_profile): cluster is c2, and must be c1, as that of app profile p",
			"app-profiles update q --instance=main --route-to=c1 --transactional-writes --priority=PRIORITY_LOW"},
		{"several clusters", bigtable.Profile{Name: "q"}, stream, nil,
			"error: app profile q (bigtable.copy_profile): routing is several clusters", "update q"},
		{"no transactions", bigtable.Profile{Name: "q", SingleCluster: true, Cluster: "c1"}, stream, nil,
			"error: app profile q (bigtable.copy_profile): transactional-writes is off", "update q"},
		{"Data Boost", bigtable.Profile{Name: "q", SingleCluster: true, Cluster: "c1", DataBoost: true}, stream, nil,
			"error: app profile q (bigtable.copy_profile): isolation is Data Boost", "create NAME"},
		{"not there", bigtable.Profile{Name: "q"}, stream, status.Error(codes.NotFound, "no"),
			"error: app profile q (bigtable.copy_profile) is missing", "--route-to=c1"},
		{"may not look", bigtable.Profile{Name: "q"}, bigtable.Profile{}, status.Error(codes.PermissionDenied, "no"),
			"warning: the app profile cannot be read", "roles/bigtable.viewer"},
		{"the other may not be read", bigtable.Profile{Name: "q", SingleCluster: true, Transactional: true, Cluster: "c2"},
			bigtable.Profile{}, nil, "", ""},
	} {
		got, hint := "", ""
		found, _ := settings.CopyProfile(c.profile, c.stream, "main", c.err)
		for _, p := range profileProblems("bigtable.copy_profile", found) {
			got, hint = got+p.Severity+": "+p.What, p.Hint
		}
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") || !strings.Contains(hint, c.hint) {
			t.Errorf("%s: %q (%s), want %q (%s)", c.name, got, hint, c.want, c.hint)
		}
	}
}

// TestLifecycleThatCannotBeReadIsNamed: what may not be read, or is not told, is one warning.
func TestLifecycleThatCannotBeReadIsNamed(t *testing.T) {
	for _, err := range []error{bucket.ErrNoLifecycle, &bucket.Error{Class: failure.Denied, Err: errors.New("no")},
		&bucket.Error{Class: failure.Transient, Err: errors.New("away")}} {
		got := lifecycleProblems("s3://b/p", nil, err)
		if len(got) != 1 || got[0].Severity != problem.SeverityWarning || got[0].Code != "lifecycle_unknown" {
			t.Errorf("%v: %+v", err, got)
		}
	}
}

// TestWhatDynamoDBSaysOfATableIsJudged: a global table shows every write in every region, and an
// expiry in one alone.
func TestWhatDynamoDBSaysOfATableIsJudged(t *testing.T) {
	good := source.TableInfo{Streaming: true, View: "NEW_AND_OLD_IMAGES", TTLAttr: "exp"}
	for want, change := range map[string]func(*source.TableInfo){
		"":                              func(*source.TableInfo) {},
		"error no_stream":               func(i *source.TableInfo) { i.Streaming = false },
		"error view_type KEYS_ONLY":     func(i *source.TableInfo) { i.View = "KEYS_ONLY" },
		"warning no_ttl":                func(i *source.TableInfo) { i.TTLAttr = "" },
		"warning ttl_unknown":           func(i *source.TableInfo) { i.TTLError = errors.New("denied") },
		"warning global_table eu-, us-": func(i *source.TableInfo) { i.Replicas = []string{"eu-", "us-"} },
		"warning backfill":              func(i *source.TableInfo) { i.Items = 1 },
		"warning table_status":          func(i *source.TableInfo) { i.Status = "REPLICATION_NOT_AUTHORIZED" },
		"warning table_status; warning backfill": func(i *source.TableInfo) { // of a later version of the service
			i.Status, i.Items = "HIBERNATING", 1
		},
	} {
		sessions := config.Table{Source: "Sessions", Target: "sessions", OnTTLExpiry: "archive"}
		sessions.Backfill.From = "none"
		table := &catalog.Table{Table: sessions, Path: "tables[0]", Info: good}
		change(&table.Info)
		var got []string
		for _, p := range tableProblems(table) {
			got = append(got, p.Severity+" "+p.Code)
			if p.Hint == "" || p.Path != "tables[0].source" {
				t.Errorf("%+v", p)
			}
			if _, regions, ok := strings.Cut(p.What, "("); ok {
				list, _, _ := strings.Cut(regions, ")")
				got[len(got)-1] += " " + list
			}
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestSampleOfAMappedTableIsJudgedByItsMapping: a finding that matters without a mapping may not
// matter with one.
func TestSampleOfAMappedTableIsJudgedByItsMapping(t *testing.T) {
	m, problems := transform.ParseMapping("m.yaml", []byte(`families: {d: {max_versions: 1}}
rules:
- name: r
  match: {pk: "{p}"}
  row: "{p}"
  cells: [{attr: n, to: "d:n", as: int64}, {attr: s, to: "d:s"}]
`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	table := transform.Table{Pipeline: "p", Source: "T", Target: "t",
		Schema: change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'}}}
	findings := []problem.Problem{
		{Code: "mixed_types", Path: "n"}, {Code: "mixed_types", Path: "s"}, {Code: "not_int64", Path: "n"},
		{Code: "not_int64", Path: "s"}, {Code: "unpadded", Path: "pk"}, {Code: "collision"},
	}
	for mapping, want := range map[*transform.Mapping]string{
		m: "mixed_types s, not_int64 n", nil: "mixed_types n, mixed_types s, unpadded pk",
	} {
		table.Mapping = mapping
		p, problems := transform.Compile(table)
		if p == nil {
			t.Fatal(problems)
		}
		mapped := &catalog.Table{Mapping: mapping, Program: p}
		var got []string
		for _, x := range findings {
			if concerns(mapped, &x) {
				got = append(got, x.Code+" "+x.Path)
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestUnknownPrincipalIsAWarning: check continues without the identity of its calls.
func TestUnknownPrincipalIsAWarning(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
		code string
	}{
		"known":      {nil, "arn:aws:iam::1:user/me", ""},
		"emulator":   {bigtable.ErrNoIdentities, "anonymous: an emulator in plain text, without credentials", ""},
		"no answer":  {errors.New("denied"), "unknown", "principal"},
		"DynamoDB's": {source.ErrNoIdentities, "anonymous: the server has no identities", ""},
	} {
		r := &Report{Principals: map[string]string{}}
		(&check{Report: r}).principal(t.Context(), "s", func(context.Context) (string, error) {
			return "arn:aws:iam::1:user/me", c.err
		})
		code := ""
		for _, p := range r.Environment {
			code += p.Code
		}
		if r.Principals["s"] != c.want || code != c.code {
			t.Errorf("%s: %q, findings %q", name, r.Principals["s"], code)
		}
	}
}
