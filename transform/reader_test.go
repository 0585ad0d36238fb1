package transform

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
)

var vector = regexp.MustCompile("(?m)^\\| `(\\{[^`]+\\})` \\| `([^`]*)`(?:, `([^`]*)`)? \\| `([^`]*)` \\|$")

// TestVectorsOnThePageHold computes the row keys from which readers of the page test their own
// code.
func TestVectorsOnThePageHold(t *testing.T) {
	vectors := vector.FindAllStringSubmatch(mappingPages(t), -1)
	if len(vectors) < 12 {
		t.Fatalf("%d vectors on the page", len(vectors))
	}
	for _, v := range vectors {
		template, a, b, want := strings.ReplaceAll(v[1], `\|`, "|"), v[2], v[3], v[4]
		// The captures a and b are parts of the key; after the template the row names both, so that
		// it determines them.
		p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, fmt.Sprintf(`
families: {d: {max_versions: 1}}
rules:
- {name: any, match: {pk: "{a}", sk: "{b}"}, segments: escape, row: "%s;{a};{b}",
    cells: [{const: x, to: "d:x"}]}`, template))
		item := change.AppendString([]byte(`{"pk":{"S":`), a)
		item = append(change.AppendString(append(item, `},"sk":{"S":`...), b), `}}`...)
		rows, err := p.Project(image(t, item))
		if err != nil {
			t.Errorf("%s of %q, %q: %v", template, a, b, err)
			continue
		}
		if got, _, _ := strings.Cut(string(rows[0].Key), ";"); got != want {
			t.Errorf("%s of %q, %q gives %q, the page says %q", template, a, b, got, want)
		}
	}
}

// TestEveryRefusalCodeIsOnThePage looks for the codes where dead letters get them.
func TestEveryRefusalCodeIsOnThePage(t *testing.T) {
	_, page, _ := strings.Cut(mappingPages(t), "\n## Refusals\n")
	page, _, _ = strings.Cut(page, "\n## ")
	made := regexp.MustCompile(`(?:Refuse\(|WrapRefusal\(|Refusal\{Code: |reason\{)"(\w+)"` +
		`|\b(?:Code[A-Z]\w*|codeParked) *= "(\w+)"`)
	found := map[string]bool{}
	for _, dir := range []string{"ir", "emit", "tmpl", "../sink/bigtable", "../pipeline"} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s: %v", dir, err)
		}
		for _, file := range files {
			// The way back refuses rows, not changes.
			if strings.HasSuffix(file, "_test.go") || filepath.Base(file) == "unmap.go" {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range made.FindAllStringSubmatch(string(text), -1) {
				found[m[1]+m[2]] = true
			}
		}
	}
	if len(found) < 20 {
		t.Fatalf("only %d codes found", len(found))
	}
	for code := range found {
		if !strings.Contains(page, "`"+code+"`") {
			t.Errorf("the page does not say what %s means", code)
		}
	}
}

// TestPresenceChangesNoMappingWithoutIt: the hash of a mapping stands in stored state, so that a
// new key of the language may not change the hash of mappings that do not use it.
func TestPresenceChangesNoMappingWithoutIt(t *testing.T) {
	at := Table{Source: "Pets", Target: "pets", Schema: schema("pk:S", "sk:N")}
	without, with := compiled(t, at, "preset: default").Hash(), compiled(t, at, `{preset: default, presence: "_"}`).Hash()
	if got := hex.EncodeToString(without[:]); got != "38add170476be9275016810e26a03c5e" {
		t.Errorf("the hash of the preset default has become %s", got)
	}
	if with == without {
		t.Error("a mapping that writes one more cell has the same hash")
	}
}

// TestItemThatReadersDoNotSeeIsExplained: an item of nothing but its key leaves no cell in the
// families that are read.
func TestItemThatReadersDoNotSeeIsExplained(t *testing.T) {
	at := Table{Schema: schema("pk:S")}
	for mapping, want := range map[string]bool{"preset: default": true, `{preset: default, presence: "_"}`: false,
		"preset: google": true, "preset: document": false} {
		steps := compiled(t, at, mapping).Explain(image(t, []byte(`{"pk":{"S":"a"}}`)))
		if len(steps.Rows) != 1 || steps.Rows[0].Unseen != want {
			t.Errorf("%s: unseen should be %v in %+v", mapping, want, steps.Rows)
		}
	}
}
