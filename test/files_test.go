package test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/tailrace-cdc/replicator/config"
)

// read returns the text of a file.
func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestComposeConfigurationIsAccepted parses the configuration in docker-compose.yml as the
// replicator does.
func TestComposeConfigurationIsAccepted(t *testing.T) {
	var compose struct {
		Services map[string]struct{ Image string }
		Configs  map[string]struct{ Content string }
	}
	if err := yaml.Load([]byte(read(t, "../docker-compose.yml")), &compose); err != nil {
		t.Fatal(err)
	}
	for name, c := range compose.Configs {
		if name == "nats" {
			if !strings.Contains(c.Content, "sync_interval: always") {
				t.Error("NATS would lose acknowledged changes at a power cut")
			}
			continue
		}
		if _, problems := config.Parse([]byte(c.Content), "tailrace.yaml"); len(problems) > 0 {
			t.Errorf("config %s: %v", name, problems)
		}
	}
	for name, s := range compose.Services {
		if host, _, found := strings.Cut(s.Image, "/"); found && strings.ContainsAny(host, ".:") {
			t.Errorf("service %s: the image %s names a registry", name, s.Image)
		}
		if s.Image != "" && !strings.Contains(s.Image, ":") {
			t.Errorf("service %s: the image %s is not pinned", name, s.Image)
		}
	}
}

var (
	alertName = regexp.MustCompile(`(?m)^\s+- alert: (\w+)$`)
	runbook   = regexp.MustCompile(`(?m)runbook_url: https://github\.com/[\w/-]+/docs/operations\.md#(\w+)$`)
)

// TestEveryAlertHasItsEntry checks that every alert links an entry of the operations manual that
// exists.
func TestEveryAlertHasItsEntry(t *testing.T) {
	alerts, manual := read(t, "../deploy/alerts.yaml"), read(t, "../docs/operations.md")
	names := alertName.FindAllStringSubmatch(alerts, -1)
	anchors := runbook.FindAllStringSubmatch(alerts, -1)
	described := strings.Count(alerts, "\n      description: \"")
	if len(names) < 8 || len(names) != len(anchors) || len(names) != described {
		t.Fatalf("%d alerts, %d runbooks, %d descriptions", len(names), len(anchors), described)
	}
	for i, n := range names {
		if anchors[i][1] != strings.ToLower(n[1]) {
			t.Errorf("%s points to #%s", n[1], anchors[i][1])
		}
		if !strings.Contains(manual, "\n### "+n[1]+"\n") {
			t.Errorf("docs/operations.md has no entry ### %s", n[1])
		}
	}
}

var (
	docPath = regexp.MustCompile("`([a-z][\\w./-]*/[\\w.-]*)`")
	docTest = regexp.MustCompile(`\bTest[A-Z]\w+`)
)

// TestDocsNameWhatExists checks that the files, directories and tests exist that the documents for
// contributors name.
func TestDocsNameWhatExists(t *testing.T) {
	tests := map[string]bool{}
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			for _, name := range docTest.FindAllString(read(t, "../"+path), -1) {
				tests[name] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	docs := []string{"ARCHITECTURE.md", "CONTRIBUTING.md", "docs/failures.md", "docs/glossary.md", "docs/guarantees.md",
		"docs/protocol.md", "docs/rules.md", "docs/tour.md", "docs/where.md", "sandbox/README.md"}
	designs, err := fs.Glob(os.DirFS(".."), "*/DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	below, err := fs.Glob(os.DirFS(".."), "*/*/DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range slices.Concat(docs, designs, below) {
		text := read(t, "../"+doc)
		for _, m := range docPath.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
				if _, err := os.Stat(filepath.Join("..", filepath.Dir(doc), m[1])); err != nil {
					t.Errorf("%s names %s, which does not exist", doc, m[1])
				}
			}
		}
		for _, name := range docTest.FindAllString(text, -1) {
			if !tests[name] {
				t.Errorf("%s names %s, which does not exist", doc, name)
			}
		}
	}
}
