package transform

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
)

var fences = regexp.MustCompile("(?s)```(yaml|json|text)\n(.*?)```")

// mappingPages returns the text of all pages under docs/mapping.
func mappingPages(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("../docs/mapping/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d pages about mappings: %v", len(files), err)
	}
	var all strings.Builder
	for _, file := range files {
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(page)
	}
	return all.String()
}

// TestDocumentationExamplesRun puts the items of every example under docs/mapping through its
// mapping and compares the table with what the page shows.
func TestDocumentationExamplesRun(t *testing.T) {
	blocks := fences.FindAllStringSubmatch(mappingPages(t), -1)
	ran := 0
	for i := 0; i+2 < len(blocks); i++ {
		if blocks[i][1] != "yaml" || blocks[i+1][1] != "json" || blocks[i+2][1] != "text" {
			continue
		}
		ran++
		t.Run(fmt.Sprint(ran), func(t *testing.T) { runExample(t, blocks[i][2], blocks[i+1][2], blocks[i+2][2]) })
	}
	if ran < 24 {
		t.Errorf("only %d examples in the documentation", ran)
	}
}

// documentedTable is the source table of an example: its first line names the key, and options of
// the table.
func documentedTable(mapping string) Table {
	head, _, _ := strings.Cut(mapping, "\n")
	head, options, _ := strings.Cut(strings.TrimPrefix(head, "# keys:"), ";")
	keys := strings.Fields(head)
	return Table{Schema: schema(keys[0], keys[1:]...), TTLAttr: "exp",
		StripGlobal: strings.Contains(options, "strip_global_table_attributes: true")}
}

func runExample(t *testing.T, mapping, items, want string) {
	p := compiled(t, documentedTable(mapping), mapping)
	m := newModel()
	for _, f := range p.Families() {
		m.minima[f.Name] = f.Aggregate == "min"
	}
	old := map[string]string{}
	var got []string
	for i, line := range strings.Split(strings.TrimSpace(items), "\n") {
		verb, item, gone := strings.Cut(line, " {")
		if gone = gone && (verb == "remove" || verb == "expire"); gone {
			item = "{" + item
		} else {
			item = line
		}
		k := string(keysOf(t, p, []byte(item)))
		if gone {
			item = ""
		}
		c := step(t, p, int64(1000*(i+1)), old[k], item)
		c.TTL = verb == "expire"
		got = append(got, happens(t, p, m, c)...)
		old[k] = item
	}
	for row, cells := range m.shown(p) {
		for column, value := range cells {
			got = append(got, strings.TrimRight(fmt.Sprintf("%s | %s = %s", row, strings.TrimRight(column, "+"), value), " "))
		}
	}
	slices.Sort(got)
	wanted := strings.Split(strings.TrimSpace(want), "\n")
	slices.Sort(wanted)
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("%s\n(-page +table):\n%s", mapping, diff)
	}
}

// happens applies a change to the table, and says what else becomes of it: a dead letter, an
// archival event.
func happens(t *testing.T, p *Program, m *model, c *change.Change) (said []string) {
	t.Helper()
	w := new(Write)
	err := p.Change(new(change.Decoder), c, w)
	if refused := (*Refusal)(nil); errors.As(err, &refused) {
		return []string{"dead letter | " + refused.Code}
	}
	if err != nil {
		t.Fatal(err)
	}
	checkWrite(t, w)
	m.apply(t, w)
	e, err := p.Archive(new(change.Decoder), c)
	if err != nil {
		t.Fatal(err)
	}
	if e != nil {
		said = append(said, "archived | "+e.Subject)
	}
	return said
}
