package preflight

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/problem"
)

// TestAnyTableNameIsProposed: DynamoDB takes names that YAML reads as something else, or that
// Bigtable does not take.
func TestAnyTableNameIsProposed(t *testing.T) {
	possible := regexp.MustCompile(`^[_a-zA-Z0-9][-_.a-zA-Z0-9]{0,49}$`) // Bigtable's names
	for _, name := range []string{
		"Orders", "null", "true", "yes", "1e3", "0x1F", "0o17", ".inf", ".NaN", "-abc", "---", "...", "2026-11-26", "_a.b",
	} {
		o := &ProposeOptions{Region: "us-east-1", Tables: []string{name}, Project: "123456", Instance: "i"}
		target := targetOf(tableMark, name)
		if !possible.MatchString(target) {
			t.Errorf("%s: target %q", name, target)
		}
		text := Configuration(o, []*Proposed{{
			Source: name, Target: target, mapping: "mapping: 1\nfamilies: {d: {}}\nrules: []\n",
		}})
		cfg, problems := config.Parse([]byte(text), "tailrace.yaml")
		for _, p := range problems {
			if p.Severity == problem.SeverityError && p.Path != "tables[0].keys" {
				t.Errorf("%s: %v\n%s", name, p, text)
			}
		}
		if cfg.Tables[0].Source != name || cfg.Tables[0].Target != target || cfg.Bigtable.Project != o.Project {
			t.Errorf("%s: read back as %q, %q, %q", name, cfg.Tables[0].Source, cfg.Tables[0].Target, cfg.Bigtable.Project)
		}
	}
}

// TestProposedTargetsAreDistinct: DynamoDB tells names apart that become one name of Bigtable. Rows
// of two tables in one target would be mixed.
func TestProposedTargetsAreDistinct(t *testing.T) {
	long := strings.Repeat("x", 60)
	var tables []*Proposed
	for _, name := range []string{"abc", "ABC", "A.b", "a-b", "a-b-2", "...", "-_-", long + "1", long + "2"} {
		tables = append(tables, &Proposed{Source: name, Target: targetOf(tableMark, name)})
	}
	separate(tables)
	seen := map[string]string{}
	for _, x := range tables {
		if other := seen[x.Target]; other != "" || len(x.Target) > maxTarget {
			t.Errorf("%s: %s, as %s", x.Source, x.Target, other)
		}
		seen[x.Target] = x.Source
	}
	if tables[0].Target != "abc" || tables[1].Target != "abc-2" {
		t.Errorf("%s, %s", tables[0].Target, tables[1].Target)
	}
}

// TestProposalIsNotWarnedOfWhatItSolves: a warning whose hint the mapping follows asks for nothing.
func TestProposalIsNotWarnedOfWhatItSolves(t *testing.T) {
	sort := change.KeyAttr{Name: "n", Type: 'N'}
	schema := change.KeySchema{Partition: change.KeyAttr{Name: "b", Type: 'B'}, Sort: &sort}
	var left []string
	for _, p := range []problem.Problem{
		{Code: "not_int64", Path: "v"}, {Code: "unpadded", Path: "n"}, {Code: "unpadded", Path: "b"},
		{Code: "escaped", Path: "b"}, {Code: "mixed_types", Path: "v"},
	} {
		if !answered(&p, &schema) {
			left = append(left, p.Code+" "+p.Path)
		}
	}
	if got := strings.Join(left, ", "); got != "unpadded b, mixed_types v" {
		t.Error(got)
	}
	schema = change.KeySchema{Partition: change.KeyAttr{Name: "b", Type: 'S'}}
	if answered(&problem.Problem{Code: "escaped", Path: "b"}, &schema) {
		t.Error("text keys are escaped")
	}
}
