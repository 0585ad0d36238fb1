package preflight

import (
	"regexp"
	"testing"

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
