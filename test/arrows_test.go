// Package test holds what is true of the project as a whole.
package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/tailrace-cdc/replicator/"

// arrows says which packages of ours a package may import; what lies below a name counts as the
// name. A package that is not here may import none.
var arrows = map[string][]string{
	"cmd": {
		"admin", "audit", "catalog", "change", "checkpoint", "clients", "cmd", "config", "control", "cutover",
		"daemon", "demo", "deploy", "explain", "failure", "host", "pipeline", "preflight", "price", "problem", "protocol",
		"queue", "restore", "sandbox", "shadow", "sink", "source", "transform", "verify",
	},
	"demo": {
		"audit", "catalog", "change", "clients", "config", "control", "failure", "pipeline", "problem", "protocol",
		"sandbox", "sink", "transform", "verify",
	},
	"audit": {
		"audit", "catalog", "clients", "config", "control", "delegation", "pipeline", "protocol", "queue", "checkpoint",
		"verify", "transform", "sink", "source", "change", "failure", "host",
	},
	"cutover": {
		"audit", "clients", "config", "control", "cutover", "delegation", "pipeline", "protocol", "queue", "checkpoint",
		"verify", "sink", "source", "transform", "change", "failure",
	},
	"preflight": {
		"catalog", "clients", "config", "control", "pipeline", "preflight", "price", "protocol", "queue", "checkpoint",
		"transform", "sink", "source", "change", "problem", "failure", "host",
	},
	"restore": {
		"catalog", "clients", "config", "control", "pipeline", "queue", "restore", "transform", "sink", "source",
		"change", "failure",
	},
	"explain": {
		"audit", "catalog", "clients", "config", "control", "explain", "queue", "checkpoint", "verify", "transform", "sink",
		"source", "change", "failure",
	},
	"daemon": { // audit and sandbox are those of daemontest
		"admin", "audit", "catalog", "clients", "config", "control", "daemon", "pipeline", "protocol", "queue", "checkpoint",
		"transform", "sink", "source", "problem", "failure", "sandbox",
	},
	"catalog": {
		"clients", "config", "pipeline", "queue", "transform", "sink", "source", "change", "problem", "failure",
	},
	"clients": {"config", "pipeline", "price", "queue", "sink", "source", "change", "failure"},
	"config":  {"transform", "change", "problem", "host"},
	"control": {
		"catalog", "clients", "config", "pipeline", "protocol", "queue", "checkpoint", "sink", "source", "change", "failure",
	},
	"pipeline": {
		"pipeline", "source", "queue", "delegation", "protocol", "checkpoint", "transform", "sink", "verify", "change",
		"failure", "host", "price",
	},
	"source":     {"source", "change", "failure", "host", "googleauth"},
	"protocol":   {"checkpoint", "change"},
	"delegation": {"protocol", "transform", "change"},
	"checkpoint": {"checkpoint", "change"},
	"queue":      {"queue", "protocol", "checkpoint", "change", "failure", "host"},
	"transform":  {"change", "transform", "problem"},
	"sink":       {"sink", "delegation", "transform", "change", "failure", "host", "googleauth"},
	"verify":     {"verify", "delegation", "source", "sink", "protocol", "transform", "change", "failure", "host"},
	"admin":      {"admin", "pipeline", "price"},
	"sandbox":    {"sandbox", "dynamodb"},
	"shadow": {
		"shadow", "admin", "audit", "catalog", "clients", "config", "verify", "sink", "source", "transform", "dynamodb",
		"change", "failure", "host",
	},
	"dynamodb":   {"dynamodb"},
	"change":     {},
	"deploy":     {},
	"failure":    {},
	"host":       {},
	"price":      {},
	"googleauth": {},
	"problem":    {"problem"},
	"test": {
		"change", "checkpoint", "delegation", "pipeline", "protocol", "queue", "sink", "source", "test", "transform",
		"verify",
	},
}

// standardOnly are packages that import nothing but the standard library and, as arrows has it, each
// other: what all others are written in, what the sandbox shares with the replicator, and what
// stands in the way of an application's requests.
var standardOnly = []string{"change", "dynamodb", "shadow/front", "shadow/exchange", "shadow/child"}

// outside says who may talk to the systems outside.
var outside = map[string][]string{
	"github.com/aws/":              {"source", "sandbox", "sink/archive/bucket", "googleauth", "test/bench/byhand"},
	"github.com/Azure/":            {"sink/archive/bucket"},
	"cloud.google.com/go/bigtable": {"sink/bigtable", "sandbox", "test/bench/byhand"},
	"cloud.google.com/go/storage":  {"sink/archive/bucket", "source/export"},
	"gocloud.dev/":                 {"source/export", "sandbox", "sink/archive/bucket"},
	"github.com/nats-io/":          {"queue", "sink/archive", "sandbox"},
	"go.yaml.in/yaml":              {"config", "problem", "transform/lang", "sandbox/control", "preflight", "cmd"},
	"github.com/spf13/cobra":       {"cmd"},
	"github.com/prometheus/client_golang/prometheus/promhttp": {"admin"},
}

// room is a package as `go list` shows it, without its tests: those may look anywhere.
type room struct {
	ImportPath, Dir         string
	Imports                 []string
	GoFiles, IgnoredGoFiles []string

	Export string // the file of its export data
}

// list returns what `go list` says of our packages.
func list(t *testing.T, args ...string) (all []room) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append(append([]string{"list"}, args...), module+"...")...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("list packages: %v", err)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var r room
		if err := dec.Decode(&r); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
}

// rooms returns our packages.
func rooms(t *testing.T) []room {
	t.Helper()
	return list(t, "-e", "-json=ImportPath,Dir,Imports,GoFiles,IgnoredGoFiles")
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
	all := rooms(t)
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
			if domain, _, _ := strings.Cut(imported, "/"); under(name, standardOnly) &&
				strings.Contains(domain, ".") && !strings.HasPrefix(imported, module) {
				t.Errorf("%s imports %s: it stands on the standard library only", name, imported)
			}
			for prefix, who := range outside {
				if strings.HasPrefix(imported, prefix) && !under(name, who) {
					t.Errorf("%s imports %s: only %v may", name, imported, who)
				}
			}
		}
		if name == "sink/bigtable" || name == "sink/archive" {
			for _, imported := range p.Imports {
				if strings.HasPrefix(imported, module+"sink/") && !strings.HasPrefix(imported, p.ImportPath+"/") {
					t.Errorf("%s imports %s: sinks are independent", name, imported)
				}
			}
		}
	}
}

// worker are the packages that a program needs which only copies items into Bigtable.
var worker = []string{
	"change", "delegation", "failure", "protocol", "sink/bigtable", "source/export", "source/heartbeat", "transform",
}

// TestWorkersCarryNoServer: such a program links neither a NATS server or client nor the daemon.
func TestWorkersCarryNoServer(t *testing.T) {
	args := []string{"list", "-deps"}
	for _, name := range worker {
		args = append(args, module+name)
	}
	out, err := exec.CommandContext(t.Context(), "go", args...).Output()
	if err != nil {
		t.Fatalf("list packages: %v", err)
	}
	for path := range strings.FieldsSeq(string(out)) {
		name, ours := strings.CutPrefix(path, module)
		if strings.HasPrefix(path, "github.com/nats-io/") ||
			ours && under(name, []string{"pipeline", "queue", "sink/archive", "cmd"}) {
			t.Errorf("a worker would carry %s", path)
		}
	}
}

const (
	maxFile      = 400
	maxUnordered = 6 // files in a package that does without a file order in doc.go
)

// upwardCalls limits, per group of packages, the pairs of files in which the lower one calls the
// upper one. A group not listed here is one package with a limit of 2.
var upwardCalls = map[string]int{"pipeline": 6}

// exported returns an importer of the compiled packages. They are those of the tests: nothing is
// compiled for it.
func exported(t *testing.T, fset *token.FileSet) types.Importer {
	t.Helper()
	args := []string{"-deps", "-export", "-json=ImportPath,Export"}
	if raceEnabled() {
		args = append(args, "-race")
	}
	files := map[string]string{}
	for _, r := range list(t, args...) {
		files[r.ImportPath] = r.Export
	}
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
}

// TestFilesStaySmall keeps a file small enough to be read in one sitting.
func TestFilesStaySmall(t *testing.T) {
	for _, r := range rooms(t) {
		for _, f := range append(r.GoFiles, r.IgnoredGoFiles...) {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			n := strings.Count(read(t, filepath.Join(r.Dir, f)), "\n")
			if n > maxFile {
				t.Errorf("%s/%s has %d lines, at most %d are allowed: split out a concept", r.ImportPath, f, n, maxFile)
			}
		}
	}
}

// orderedFile is a line of the file order in a package comment: a tab or two spaces, the file, what
// it holds.
var orderedFile = regexp.MustCompile(`(?m)^\s+(\w+\.go)\s+\S`)

// fileOrder returns the place of each file in the order that the package's doc.go gives from the
// top down; nil when it gives none.
func fileOrder(t *testing.T, r room) map[string]int {
	if !slices.Contains(r.GoFiles, "doc.go") {
		return nil
	}
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(r.Dir, "doc.go"), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(f.Doc.Text(), "Files, from the top down:")
	if !found {
		return nil
	}
	order := map[string]int{}
	for i, m := range orderedFile.FindAllStringSubmatch(list, -1) {
		order[m[1]] = i
	}
	return order
}

// TestCallsPointDownTheFileOrder holds each package to the order of files that its doc.go states: a
// reader who follows it from the top meets each function after its callers.
func TestCallsPointDownTheFileOrder(t *testing.T) {
	fset := token.NewFileSet()
	imported := exported(t, fset)
	upward := map[string][]string{}
	for _, r := range rooms(t) {
		name := strings.TrimPrefix(r.ImportPath, module)
		order := fileOrder(t, r)
		if order == nil {
			if len(r.GoFiles) > maxUnordered {
				t.Errorf("%s has %d files: its doc.go must list them under \"Files, from the top down:\"", name, len(r.GoFiles))
			}
			continue
		}
		for _, f := range r.GoFiles {
			if _, ok := order[f]; !ok && f != "doc.go" {
				t.Errorf("%s/doc.go does not list %s", name, f)
			}
		}
		for f := range order {
			if !slices.Contains(r.GoFiles, f) && !slices.Contains(r.IgnoredGoFiles, f) {
				t.Errorf("%s/doc.go lists %s, which does not exist", name, f)
			}
		}
		group, _, _ := strings.Cut(name, "/")
		if _, ok := upwardCalls[group]; !ok {
			group = name
		}
		for call := range calls(t, r, fset, imported) {
			if order[call.callee] < order[call.caller] {
				upward[group] = append(upward[group], fmt.Sprintf("%s: %s calls %s", name, call.caller, call.callee))
			}
		}
	}
	for group, list := range upward {
		limit, ok := upwardCalls[group]
		if !ok {
			limit = 2
		}
		if slices.Sort(list); len(list) > limit {
			t.Errorf("%s: %d calls point up, at most %d are allowed:\n\t%s", group, len(list), limit, strings.Join(list, "\n\t"))
		}
	}
}

// call is a pair of files of one package in which the first uses a function or method of the
// second.
type call struct{ caller, callee string }

func calls(t *testing.T, r room, fset *token.FileSet, imported types.Importer) map[call]bool {
	t.Helper()
	var files []*ast.File
	for _, name := range r.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(r.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: imported}
	pkg, err := conf.Check(r.ImportPath, fset, files, info)
	if err != nil {
		t.Fatalf("type-check %s: %v", r.ImportPath, err)
	}
	found := map[call]bool{}
	for id, used := range info.Uses {
		if f, ok := used.(*types.Func); ok && f.Pkg() == pkg {
			c := call{base(fset, id.Pos()), base(fset, f.Pos())}
			if c.caller != c.callee {
				found[c] = true
			}
		}
	}
	return found
}

func base(fset *token.FileSet, pos token.Pos) string {
	return filepath.Base(fset.Position(pos).Filename)
}
