package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/pipeline/status"
)

var printedCommand = regexp.MustCompile("`replicator ([^`]*)`")

// TestNextStepsAreCommandLines: a next step of status that is a command is accepted with all that
// it needs, up to its reading of the configuration.
func TestNextStepsAreCommandLines(t *testing.T) {
	dir := t.TempDir()
	differences := filepath.Join(dir, "differences.jsonl")
	if err := os.WriteFile(differences, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("{table}", "Orders", "{file}", differences, "…", "s3://exports/orders")
	commands := 0
	for name, step := range status.Steps() {
		for _, m := range printedCommand.FindAllStringSubmatch(step, -1) {
			commands++
			args := append(strings.Fields(fill.Replace(m[1])), "--config", filepath.Join(dir, "missing.yaml"))
			var out strings.Builder
			execute(context.Background(), args, &out, &out)
			if !strings.Contains(out.String(), "read configuration: open ") {
				t.Errorf("the step %s: `replicator %s` prints\n%s", name, m[1], out.String())
			}
		}
	}
	if commands < 40 {
		t.Errorf("only %d commands were found", commands)
	}
}
