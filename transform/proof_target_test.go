package transform

import (
	"testing"

	"github.com/tailrace-cdc/replicator/problem"
)

// Proof 2: a family has one garbage collection rule, whichever table declares it.
func TestTablesOfATargetDeclareAFamilyAlike(t *testing.T) {
	table := func(source, target, versions string) Table {
		m, problems := ParseMapping("m.yaml", []byte(`
families: {d: {max_versions: `+versions+`}}
rules: [{name: item, match: {pk: "{p}"}, row: "`+source+`#{p}", cells: [{attrs: all, except: [pk], to: "d:{attr}"}]}]`))
		if problem.AnyError(problems) {
			t.Fatal(problems)
		}
		return Table{Pipeline: "p", Source: source, Target: target, Schema: schema("pk:S"), Mapping: m}
	}
	for _, tt := range []struct {
		name             string
		target, versions string
		refused          bool
	}{{"alike", "t", "1", false}, {"differently", "t", "9", true}, {"another target", "u", "9", false}} {
		t.Run(tt.name, func(t *testing.T) {
			_, problems := CompileAll([]Table{table("A", "t", "1"), table("B", tt.target, tt.versions)})
			found := false
			for _, p := range problems {
				found = found || p.Code == "family" && p.Table == "B"
			}
			if found != tt.refused {
				t.Errorf("refused: %t, want %t: %v", found, tt.refused, problems)
			}
		})
	}
}
