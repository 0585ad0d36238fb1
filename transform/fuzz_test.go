package transform

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/problem"
)

// FuzzMapping: no mapping file makes the compiler panic, each problem of it names a line and says
// what is wrong, and what compiles compiles again to the same hash, reads an item, and is kept and
// taken back with the same hash.
func FuzzMapping(f *testing.F) {
	for _, dir := range []string{"mappings", "wrong"} {
		files, err := filepath.Glob(filepath.Join("testdata", dir, "*.yaml"))
		if err != nil || len(files) < 10 {
			f.Fatalf("%d files, %v", len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Add([]byte("rules: &a [*a]\n"))
	f.Add([]byte("families: {d: {}}\nrules:\n- row: \"{pk}#{sk}\"\n  cells: [{from: \"*\", to: \"d:{name}\"}]\n"))
	item, err := new(change.Decoder).Image([]byte(`{"pk":{"S":"a#b"},"sk":{"S":"v1_b"},"n":{"N":"1"},"l":{"L":[]}}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4<<10 {
			return // proofs are over pairs of rules
		}
		m, problems := ParseMapping("m.yaml", text)
		lines := 1
		for _, lineBreak := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
			lines += bytes.Count(text, []byte(lineBreak))
		}
		named := func(problems []Problem) {
			for _, p := range problems {
				if p.What == "" || p.Code == "" || p.Line < 0 || p.Line > lines {
					t.Errorf("line %d of %d: %+v", p.Line, lines, p)
				}
			}
		}
		if named(problems); problem.AnyError(problems) {
			return
		}
		table := Table{Pipeline: "p", Source: "T", Target: "t", Schema: schema("pk:S", "sk:S"), Mapping: m, Getenv: getenv}
		p, problems := Compile(table)
		if named(problems); p == nil {
			if !problem.AnyError(problems) {
				t.Error("it is refused without an error")
			}
			return
		}
		if again, _ := Compile(table); again == nil || again.Hash() != p.Hash() {
			t.Error("it compiles to two hashes")
		}
		_, _ = p.Project(item)
		_, _ = p.ExplainKey(item)
		if bytes.Contains(text, []byte("secrets")) {
			return // one that stands in the file is not kept
		}
		kept, err := p.Keep()
		if err != nil {
			t.Fatal(err)
		}
		var k Kept
		if err := json.Unmarshal(kept, &k); err != nil {
			t.Fatal(err)
		}
		if err := k.Apply(&table); err != nil {
			t.Fatal(err)
		}
		if again, problems := Compile(table); again == nil || again.Hash() != p.Hash() {
			t.Errorf("what is kept compiles to another hash: %v", problems)
		}
	})
}
