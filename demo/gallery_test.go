package demo

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

var update = flag.Bool("update", false, "write the files that the tests compare with")

const tested = "../transform/testdata/mappings"

// TestMappingsAreThoseThatTheTransformTests keeps the copies in the binary equal to the worked
// examples, all of them. With -update it copies the examples.
func TestMappingsAreThoseThatTheTransformTests(t *testing.T) {
	if *update {
		copyMappings(t)
		t.Log("copied; this test binary still embeds the former mappings: run it again without -update")
		return
	}
	dir := t.TempDir()
	if err := WriteMappings(dir); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(files(t, tested), files(t, dir)); d != "" {
		t.Errorf("run `go test ./cmd/replicator/internal/demo -run Mappings -update` (-tested +demo):\n%s", d)
	}
}

// copyMappings makes the directory that is embedded in the binary a copy of the worked examples.
func copyMappings(t *testing.T) {
	t.Helper()
	examples := files(t, tested)
	for name := range files(t, "mappings") {
		if _, ok := examples[name]; !ok {
			if err := os.Remove(filepath.Join("mappings", name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, text := range examples {
		if err := os.WriteFile(filepath.Join("mappings", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v %v", dir, names, err)
	}
	all := map[string]string{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(name)] = string(data)
	}
	return all
}

// TestItemsReachEveryRule: the items of each example match each of its rules, and none is refused.
func TestItemsReachEveryRule(t *testing.T) {
	for _, e := range Examples {
		t.Run(e.Mapping, func(t *testing.T) {
			p := compile(t, &e)
			g := &gen{Rand: rand.New(rand.NewPCG(1, 2)), now: func() int64 { return time.Now().Unix() }}
			reached := map[string]bool{}
			for range 2000 {
				var d change.Decoder
				img, err := d.Image([]byte("{" + join(e.item(g)) + "}"))
				if err != nil {
					t.Fatal(err)
				}
				steps := p.Explain(img)
				if steps.Refused != "" {
					t.Fatalf("refused: %s", steps.Refused)
				}
				reached["rule "+steps.Rule] = true
			}
			for _, r := range p.Report() {
				if len(r.Name) > 5 && r.Name[:5] == "rule " && !reached[r.Name] {
					t.Errorf("no item reaches %s; reached: %v", r.Name, reached)
				}
			}
		})
	}
}

func compile(t *testing.T, e *Example) *transform.Program {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(tested, e.Mapping))
	if err != nil {
		t.Fatal(err)
	}
	m, problems := transform.ParseMapping(e.Mapping, data)
	p, more := transform.Compile(transform.Table{
		Pipeline: "demo", Source: e.Source, Target: e.Target, Schema: e.schema(), View: e.View, TTLAttr: e.TTL, Mapping: m,
		Getenv: func(name string) string { return Secrets[name] },
	})
	if p == nil {
		t.Fatal(problems, more)
	}
	return p
}

func (e *Example) schema() (s change.KeySchema) {
	for i, key := range e.keys {
		k := change.KeyAttr{Name: key[:len(key)-2], Type: key[len(key)-1]}
		if i == 0 {
			s.Partition = k
		} else {
			s.Sort = &k
		}
	}
	return s
}
