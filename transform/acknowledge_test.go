package transform

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/problem"
)

// TestGoodMappingsCanBeFreeOfWarnings takes every example that is meant as it stands: what is left
// after acknowledging its warnings would make `check --strict` impossible to meet.
func TestGoodMappingsCanBeFreeOfWarnings(t *testing.T) {
	for name, text := range goodMappings(t) {
		t.Run(name, func(t *testing.T) {
			tab := goodTable(name, text)
			codes := map[string]bool{}
			for _, p := range problemsOf(t, tab, text) {
				if p.Severity != problem.SeverityWarning {
					t.Fatal(p)
				}
				codes[p.Code] = true
				t.Log(p)
			}
			if len(codes) == 0 {
				return
			}
			text += "\nacknowledged: [" + strings.Join(slices.Sorted(maps.Keys(codes)), ", ") + "]\n"
			for _, p := range problemsOf(t, tab, text) {
				t.Errorf("cannot be silenced: %s", p)
			}
		})
	}
}

// goodMappings are the worked examples and those of the mapping reference, by a name.
func goodMappings(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for name := range exampleTables {
		data, err := os.ReadFile(filepath.Join("testdata", "mappings", name))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(data)
	}
	for i, block := range fences.FindAllStringSubmatch(mappingPages(t), -1) {
		if strings.HasPrefix(block[2], "# keys: ") {
			all[fmt.Sprint("page ", i)] = block[2]
		}
	}
	return all
}

func goodTable(name, text string) Table {
	tab, worked := exampleTables[name]
	if !worked {
		tab = documentedTable(text)
	}
	tab.Pipeline, tab.Source, tab.Target, tab.Getenv = "test", "T", "t", getenv
	return tab
}

func problemsOf(t *testing.T, tab Table, text string) []Problem {
	t.Helper()
	var problems []Problem
	tab.Mapping, problems = ParseMapping("m.yaml", []byte(text))
	if problem.AnyError(problems) {
		t.Fatal(problems)
	}
	_, more := Compile(tab)
	return append(problems, more...)
}

func TestAcknowledgementHoldsWhereItStands(t *testing.T) {
	const mapping = `
families: {d: {max_versions: 1}}
%s
rules:
- {name: a, match: {pk: "a{x}", n: "{n}"}, row: "a#{x}#{n}", cells: [{attrs: all, except: [pk, n], to: "d:{attr}"}]%s}
- {name: b, match: {pk: "b{x}", n: "{n}"}, row: "b#{x}#{n}", cells: [{attrs: all, except: [pk, n], to: "d:{attr}"}]}`
	for _, tt := range []struct{ name, file, rule, want string }{
		{"nowhere", "", "", "rules[0].row unpadded, rules[1].row unpadded"},
		{"in one rule", "", ", acknowledged: [unpadded]", "rules[1].row unpadded"},
		{"in the file", "acknowledged: [unpadded]", "", ""},
		{"not needed", "acknowledged: [unpadded, binary_key]", "", "acknowledged[1] acknowledged"},
		{"for samples", "acknowledged: [unpadded, hotspot]", "", ""},
		{"mistyped", "acknowledged: [unpaded]", "", "acknowledged[0] value, rules[0].row unpadded, rules[1].row unpadded"},
		{"an error", "acknowledged: [not_injective]", "",
			"acknowledged[0] value, rules[0].row unpadded, rules[1].row unpadded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, p := range problemsOf(t, Table{Source: "T", Target: "t", Schema: schema("pk:S", "n:N")},
				fmt.Sprintf(mapping, tt.file, tt.rule)) {
				got = append(got, p.Path+" "+p.Code)
			}
			if g := strings.Join(got, ", "); g != tt.want {
				t.Errorf("problems %q, want %q", g, tt.want)
			}
		})
	}
}
