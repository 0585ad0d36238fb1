package preflight

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
)

// TestCheckNamesFoundTables: which entry chooses which tables, what one of them lacks, and that an
// entry chooses none.
func TestCheckNamesFoundTables(t *testing.T) {
	s := newStage(t)
	s.CreateTable("orders-eu")
	entry := func(path, source string, tag map[string]string) config.Table {
		return config.Table{Path: path, Source: source, Tag: tag, Target: "{table}", OnTTLExpiry: "delete"}
	}
	s.cfg.Selections = []config.Table{
		entry("tables[1]", "orders-*", nil), entry("tables[2]", "nothing-*", nil),
		entry("tables[3]", "", map[string]string{"replicate": "bigtable"}),
	}
	codes, r := s.run(t, Options{})
	if !slices.Contains(codes, "chooses_nothing") {
		t.Errorf("%v", codes)
	}
	want := []Selection{
		{Path: "tables[1]", Source: "orders-*", Tables: []string{"orders-eu"}},
		{Path: "tables[2]", Source: "nothing-*", Tables: []string{}},
		{Path: "tables[3]", Tag: map[string]string{"replicate": "bigtable"}, Tables: []string{}},
	}
	if d := cmp.Diff(want, r.Selections); d != "" {
		t.Error(d)
	}
	if !slices.ContainsFunc(r.Environment, func(p problem.Problem) bool {
		return p.Code == "schema" && strings.Contains(p.What, "orders-eu")
	}) {
		t.Errorf("the missing target of a found table is not named: %v", r.Environment)
	}
	policy := r.Policies.AWS.Text()
	for _, text := range []string{
		`"dynamodb:ListTables",` + "\n" + ` "Resource": "*"`,
		`"dynamodb:ListTagsOfResource",` + "\n" + ` "Resource": "arn:aws:dynamodb:us-east-1:000000000000:table/*"`,
		`:table/orders-*/stream/*"`,
	} {
		if !strings.Contains(policy, text) {
			t.Errorf("the policy lacks %s:\n%s", text, policy)
		}
	}

	if err := s.Faults.Inject(fault.Rule{Effect: fault.Error, Operation: "ListTables",
		Code: "AccessDeniedException"}); err != nil {
		t.Fatal(err)
	}
	if codes, _ := s.run(t, Options{}); !slices.Contains(codes, "tables!") {
		t.Errorf("tables cannot be listed: %v", codes)
	}
}

// TestGoneTableIsNamed: its log is all that there is.
func TestGoneTableIsNamed(t *testing.T) {
	r := &Report{}
	r.chosen(&config.Table{Path: "tables[0]", Source: "o*"}, []config.Table{
		{Source: "o1", Found: true, Path: "tables[0]", Gone: config.GoneVanished},
		{Source: "o2", Found: true, Path: "tables[1]"},
	})
	if len(r.Environment) != 1 || r.Environment[0].Code != "gone" || !strings.Contains(r.Environment[0].What, "retire") {
		t.Errorf("%v", r.Environment)
	}
	if d := cmp.Diff([]string{"o1"}, r.Selections[0].Tables); d != "" {
		t.Error(d)
	}
}
