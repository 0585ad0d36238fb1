package transform

import (
	"encoding/json"
	"strings"
	"testing"
)

// again compiles what a program keeps.
func again(t *testing.T, p *Program) *Program {
	t.Helper()
	text, err := p.Keep()
	if err != nil {
		t.Fatal(err)
	}
	var k Kept
	if err := json.Unmarshal(text, &k); err != nil {
		t.Fatal(err)
	}
	tab := p.prog.Table
	if err := k.Apply(&tab); err != nil {
		t.Fatalf("%v in %s", err, k.Mapping)
	}
	q, problems := Compile(tab)
	if q == nil {
		t.Fatalf("the kept mapping does not compile: %v in\n%s", problems, k.Mapping)
	}
	return q
}

func TestKeptMappingCompilesToTheSameHash(t *testing.T) {
	tried := 0
	same := func(p *Program) {
		t.Helper()
		if tried++; again(t, p).Hash() != p.Hash() {
			text, _ := p.Keep()
			t.Errorf("another hash from %s", text)
		}
	}
	blocks := fences.FindAllStringSubmatch(mappingPages(t), -1)
	for i := 0; i+2 < len(blocks); i++ {
		if blocks[i][1] == "yaml" && blocks[i+1][1] == "json" && blocks[i+2][1] == "text" {
			same(compiled(t, documentedTable(blocks[i][2]), blocks[i][2]))
		}
	}
	for name := range exampleTables {
		same(example(t, name))
	}
	same(compiled(t, Table{Schema: schema("pk:S"), StripGlobal: true, OnTTLExpiry: "archive", TTLAttr: "exp"}, ""))
	same(compiled(t, Table{Schema: schema("pk:S")}, `{families: {d: {max_versions: 1}}, rules: [{name: "r",
    match: {pk: "{id}", v: {equals: ""}, w: "null"},
  row: "{id}", cells: [{const: "1", to: &x "d:y"}]}, {name: s, match: {pk: "{id}"}, row: "{id}",
  cells: [{attr: "no", to: *x}]}]}`))
	if tried < 30 {
		t.Errorf("only %d mappings were tried", tried)
	}
}

func TestKeptMappingHoldsNoSecret(t *testing.T) {
	const mapping = `
# the secret is hunter2
secrets: {open: hunter2, closed: "${KEY}", aliased: &s hunter2, alias: *s}
families: {d: {max_versions: 1}}
rules: [{name: r, match: {pk: "{id}"}, row: "{id|hmac(closed,16)}#{id|hmac(open,16)}",
  cells: [{attrs: all, to: "d:{attr}"}]}]`
	p := compiled(t, Table{Schema: schema("pk:S"), Getenv: func(string) string { return "swordfish" }}, mapping)
	text, err := p.Keep()
	if err != nil {
		t.Fatal(err)
	}
	if s := string(text); strings.Contains(s, "hunter2") || strings.Contains(s, "swordfish") ||
		!strings.Contains(s, "${KEY}") {
		t.Errorf("kept: %s", s)
	}
	var k Kept
	if err := json.Unmarshal(text, &k); err != nil {
		t.Fatal(err)
	}
	tab := p.prog.Table
	if err := k.Apply(&tab); err != nil {
		t.Fatal(err)
	}
	for i, s := range p.prog.Table.Mapping.Secrets { // put back, it is the mapping that it was
		tab.Mapping.Secrets[i].Value.S = s.Value.S
	}
	if q, problems := Compile(tab); q == nil || q.Hash() != p.Hash() {
		t.Errorf("another program: %v", problems)
	}
}
