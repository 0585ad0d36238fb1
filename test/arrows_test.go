// Package test holds what is true of the project as a whole.
package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/tailrace-cdc/replicator/"

// arrows says which packages of ours a package may import; what lies below a name counts as the name. A package that is
// not here may import none.
var arrows = map[string][]string{
	"cmd": {
		"admin", "cmd", "change", "checkpoint", "config", "failure", "pipeline", "problem", "queue", "sandbox", "sink",
		"source", "transform", "verify",
	},
	"config":     {"transform", "change", "problem"},
	"pipeline":   {"pipeline", "source", "queue", "checkpoint", "transform", "sink", "change", "failure"},
	"source":     {"change", "failure"},
	"checkpoint": {"change"},
	"queue":      {"queue", "checkpoint", "change", "failure"},
	"transform":  {"change", "transform", "problem"},
	"sink":       {"sink", "transform", "change", "failure"},
	"verify":     {"source", "sink", "transform", "change"},
	"admin":      {"pipeline"},
	"sandbox":    {"sandbox"},
	"change":     {},
	"failure":    {},
	"problem":    {},
}

// outside says who may talk to the systems outside.
var outside = map[string][]string{
	"github.com/aws/":              {"source", "sandbox"},
	"cloud.google.com/go/bigtable": {"sink/bigtable", "sandbox"},
	"github.com/nats-io/":          {"queue", "sink/archive", "sandbox"},
	"go.yaml.in/yaml":              {"config", "problem", "transform/lang", "sandbox/control", "cmd"},
	"github.com/spf13/cobra":       {"cmd"},
	"github.com/prometheus/client_golang/prometheus/promhttp": {"admin"},
}

// pkg is a package as `go list` shows it, without its tests: those may look anywhere.
type pkg struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) (all []pkg) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Imports", module+"...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("list packages: %v", err)
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// under reports whether path is one of the names, or below one.
func under(path string, names []string) bool {
	for _, n := range names {
		if path == n || strings.HasPrefix(path, n+"/") {
			return true
		}
	}
	return false
}

func TestImportArrows(t *testing.T) {
	all := packages(t)
	if len(all) < len(arrows)-1 {
		t.Fatalf("only %d packages found", len(all))
	}
	for _, p := range all {
		name, ok := strings.CutPrefix(p.ImportPath, module)
		if !ok {
			continue
		}
		top, _, _ := strings.Cut(name, "/")
		for _, imported := range p.Imports {
			if other, ours := strings.CutPrefix(imported, module); ours && !under(other, arrows[top]) {
				t.Errorf("%s must not import %s", name, other)
			}
			if domain, _, _ := strings.Cut(imported, "/"); top == "change" && strings.Contains(domain, ".") {
				t.Errorf("change imports %s: the model stands on the standard library only", imported)
			}
			for prefix, who := range outside {
				if strings.HasPrefix(imported, prefix) && !under(name, who) {
					t.Errorf("%s imports %s: only %v may", name, imported, who)
				}
			}
		}
		if name == "sink/bigtable" || name == "sink/archive" {
			for _, imported := range p.Imports {
				if strings.HasPrefix(imported, module+"sink/") {
					t.Errorf("%s imports %s: sinks are independent", name, imported)
				}
			}
		}
	}
}
