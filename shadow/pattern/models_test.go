package pattern

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/tailrace-cdc/replicator/transform/access"
)

var update = flag.Bool("update", false, "write the files that the tests compare with")

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

// TestReadsOfModels grades the reads that real designs are made for. The file has, for each model,
// requests in short, and below each its pattern and verdict.
func TestReadsOfModels(t *testing.T) {
	const file = "testdata/models.txt"
	wanted := read(t, file)
	requests := map[string][]string{}
	name := ""
	for line := range strings.Lines(wanted) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "# "):
			name = line[2:]
		case line != "" && !strings.HasPrefix(line, " "):
			requests[name] = append(requests[name], line)
		}
	}
	var got strings.Builder
	for _, m := range models(t) {
		if len(requests[m.name]) == 0 {
			t.Errorf("%s has no reads", m.name)
		}
		got.WriteString("# " + m.name + "\n")
		r := NewReader(m.table)
		for _, short := range requests[m.name] {
			p := one(t, r, m.name, short)
			got.WriteString(short + "\n  " + p.Text() + "\n")
			v := r.Grade(p)
			got.WriteString("  " + string(v.Grade) + strings.TrimSuffix(": "+v.Why, ": ") + "\n")
			if v.Read != nil {
				got.WriteString("  " + strings.TrimSpace(v.Read.How+" "+v.Read.Key+" "+strings.Join(v.Read.Families, ",")))
				if v.Declared != "" {
					got.WriteString(" (" + v.Declared + ")")
				}
				got.WriteString("\n")
			}
			for _, x := range v.Index {
				got.WriteString("  " + x.Rule + ": " + strings.TrimSpace(x.Entry+" "+x.Family) + "\n")
			}
			if len(v.Index) > 0 {
				pasted(t, m, short, v.Index)
			}
		}
		got.WriteString("\n")
	}
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(wanted, got.String()); diff != "" {
		t.Errorf("verdicts (-want +got); -update writes them:\n%s", diff)
	}
}

// pasted pastes index rows into a model's mapping, which must compile and then serve the read.
func pasted(t *testing.T, m model, short string, rows []access.IndexRow) {
	t.Helper()
	var doc map[string]any
	if err := yaml.Unmarshal([]byte(m.text), &doc); err != nil {
		t.Fatal(err)
	}
	for _, x := range rows {
		if x.Family != "" {
			var family map[string]any
			if err := yaml.Unmarshal([]byte(x.Family), &family); err != nil {
				t.Fatal(err)
			}
			for name, f := range family {
				doc["families"].(map[string]any)[name] = f
			}
		}
		var entry any
		if err := yaml.Unmarshal([]byte(x.Entry), &entry); err != nil {
			t.Fatalf("%s: %v", x.Entry, err)
		}
		found := false
		for _, rule := range doc["rules"].([]any) {
			if r := rule.(map[string]any); r["name"] == x.Rule {
				list, _ := r["index"].([]any)
				r["index"] = append(list, entry)
				found = true
			}
		}
		if !found {
			t.Fatalf("%s has no rule %s", m.name, x.Rule)
		}
	}
	text, err := yaml.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	table := mapped(t, m.name, string(text), m.table.Schema, m.table.Indexes...)
	r := NewReader(table)
	if v := r.Grade(one(t, r, m.name, short)); v.Grade != access.Served && v.Grade != access.OrderDiffers {
		t.Errorf("%s: %s: with %v it is %s: %s", m.name, short, rows, v.Grade, v.Why)
	}
}
