package transform

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/problem"
)

// TestTooManyFamiliesOverAllTables: two tables of one target may stay below the limit each, and
// pass it together.
func TestTooManyFamiliesOverAllTables(t *testing.T) {
	table := func(source, target, family string, n int) Table {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("%s%d: {max_versions: 1}", family, i))
		}
		m, problems := ParseMapping("m.yaml", []byte(fmt.Sprintf(`
families: {%s}
rules: [{name: item, match: {pk: "{p}"}, row: "%s#{p}",
  cells: [{attrs: all, except: [pk], to: "%s0:{attr}"}]}]`, strings.Join(names, ", "), family, family)))
		if problem.AnyError(problems) {
			t.Fatal(problems)
		}
		return Table{Pipeline: "p", Source: source, Target: target, Schema: schema("pk:S"), Mapping: m}
	}
	for _, tt := range []struct {
		name   string
		tables []Table
		want   string // tables with the error
	}{
		{"together too many", []Table{table("A", "t", "a", 60), table("B", "t", "b", 60)}, "A B"},
		{"a target each", []Table{table("A", "t", "a", 60), table("B", "u", "b", 60)}, ""},
		{"the same families", []Table{table("A", "t", "a", 98), table("A2", "t", "a", 98)}, ""},
		{"alone too many", []Table{table("A", "t", "a", 99)}, "A"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			_, problems := CompileAll(tt.tables)
			for _, p := range problems {
				if p.Code == "families" {
					got = append(got, p.Table)
				}
			}
			if g := strings.Join(got, " "); g != tt.want {
				t.Errorf("refused %q, want %q", g, tt.want)
			}
		})
	}
}
