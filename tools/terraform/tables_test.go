package terraform

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// family and table are what `schema --json` prints.
type family struct {
	Name string `json:"name"`
	GC   string `json:"gc"`
	Type string `json:"type"`
}

type table struct {
	Table    string   `json:"table"`
	Families []family `json:"families"`
	Splits   [][]byte `json:"splits"`
}

const tables = `
pipeline: shop
source: {region: us-east-1}
bigtable: {project: "acme", instance: main}
queue: {dir: ./log}
tables:
- {source: Products, target: products}
- {source: Counters, target: "shop.counters-1", mapping: mapping.yaml}
`

const mapping = `
families:
  d: {max_versions: 1}
  h: {max_versions: 10, max_age: 90d, combine: union}
  k: {max_age: 36h, removed: keep}
  e: {max_versions: 3, max_age: 90d, combine: intersection, removed: empty}
  n: {aggregate: max}
rules:
- name: counter
  row: "{pk}#{sk}"
  cells:
  - {attr: a, to: "d:a"}
  - {attr: b, to: "h:b"}
  - {attr: c, to: "k:c"}
  - {attr: d, to: "e:d"}
  - {attr: n, to: "n:n", as: int64, ts: "0"}
`

// TestTablesAreThoseOfTheSchema: the module that `schema --format terraform` prints has the tables,
// families, rules and split keys of `schema --json`, and deletes nothing.
func TestTablesAreThoseOfTheSchema(t *testing.T) {
	dir := sandboxed(t)
	for _, flags := range [][]string{nil, {"--splits"}} {
		var want struct{ Tables []table }
		text := run(t, dir, append([]string{"schema", "--json"}, flags...)...)
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		printed := run(t, dir, append([]string{"schema", "--format", "terraform"}, flags...)...)
		got := tablesOf(t, parse(t, map[string][]byte{"tables.tf": printed}))
		if diff := cmp.Diff(want.Tables, got); diff != "" {
			t.Errorf("%v: -schema +terraform:\n%s\n%s", flags, diff, printed)
		}
		if len(got) != 3 || len(flags) > 0 && len(got[0].Splits)+len(got[1].Splits)+len(got[2].Splits) == 0 {
			t.Errorf("%v: %d tables, %s", flags, len(got), printed)
		}
	}
}

// tablesOf reads the resources of a module as tables, in the order of their names.
func tablesOf(t *testing.T, m *module) (all []table) {
	t.Helper()
	rules := map[string]string{} // by the table's resource and family
	for name, b := range m.resources {
		if b.Labels[0] != "google_bigtable_gc_policy" {
			continue
		}
		of := b.Body.Attributes["table"].Expr.Variables()[0]
		owner := of[1].(hcl.TraverseAttr).Name
		rules[owner+" "+text(t, b.Body, "column_family")] = ruleOf(t, text(t, b.Body, "gc_rules"))
		if text(t, b.Body, "deletion_policy") != "ABANDON" {
			t.Errorf("%s: the rule is taken away with the resource", name)
		}
	}
	for name, b := range m.resources {
		if b.Labels[0] != "google_bigtable_table" {
			continue
		}
		if text(t, b.Body, "deletion_protection") != "PROTECTED" {
			t.Errorf("%s can be deleted", name)
		}
		found := table{Table: text(t, b.Body, "name"), Families: []family{}}
		if a := b.Body.Attributes["split_keys"]; a != nil {
			keys, problems := a.Expr.Value(nil)
			if problems.HasErrors() {
				t.Fatal(problems)
			}
			for _, key := range keys.AsValueSlice() {
				found.Splits = append(found.Splits, []byte(key.AsString()))
			}
		}
		for _, f := range b.Body.Blocks {
			if f.Type != "column_family" {
				continue
			}
			name := text(t, f.Body, "family")
			gc := rules[b.Labels[1]+" "+name]
			if gc == "" {
				gc = "never"
			}
			found.Families = append(found.Families, family{name, gc, text(t, f.Body, "type")})
		}
		all = append(all, found)
	}
	slices.SortFunc(all, func(a, b table) int { return strings.Compare(a.Table, b.Table) })
	return all
}

// text returns an attribute that is a text; "" where there is none.
func text(t *testing.T, b *hclsyntax.Body, name string) string {
	t.Helper()
	a := b.Attributes[name]
	if a == nil {
		return ""
	}
	v, problems := a.Expr.Value(nil)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	return v.AsString()
}

// rule is a rule in the JSON of the provider's gc_rules.
type rule struct {
	Mode       string
	Rules      []rule
	MaxAge     string `json:"max_age"`
	MaxVersion int    `json:"max_version"`
}

// ruleOf returns gc_rules in the syntax of cbt, as `schema --json` has it. It refuses what the
// provider refuses.
//
// Source: google/services/bigtable/resource_bigtable_gc_policy.go of the provider,
// validateNestedPolicy
func ruleOf(t *testing.T, text string) string {
	t.Helper()
	var top rule
	if err := json.Unmarshal([]byte(text), &top); err != nil {
		t.Fatal(err)
	}
	if len(top.Rules) == 0 || top.Mode == "" && len(top.Rules) != 1 || top.Mode != "" && len(top.Rules) < 2 {
		t.Errorf("the provider refuses %s", text)
	}
	var parts []string
	for _, r := range top.Rules {
		switch {
		case r.MaxAge != "":
			parts = append(parts, "maxage="+r.MaxAge)
		case r.MaxVersion > 0:
			parts = append(parts, fmt.Sprintf("maxversions=%d", r.MaxVersion))
		default:
			t.Errorf("a rule without a limit: %s", text)
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, map[string]string{"union": "||", "intersection": "&&", "": ""}[top.Mode])
}

// sandboxed starts a sandbox with the two tables until the test ends, and returns a directory with
// a configuration.
func sandboxed(t *testing.T) (dir string) {
	t.Helper()
	dir = configured(t, tables)
	if err := os.WriteFile(filepath.Join(dir, "mapping.yaml"), []byte(mapping), 0o600); err != nil {
		t.Fatal(err)
	}
	endpoint := startSandbox(t, dir)
	t.Setenv("AWS_ENDPOINT_URL", endpoint)
	for _, name := range []string{"Products", "Counters"} {
		call(t, endpoint, "CreateTable", fmt.Sprintf(`{"TableName":%q,"BillingMode":"PAY_PER_REQUEST",
			"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}],
			"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
			"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`, name))
		for i := range 40 {
			call(t, endpoint, "PutItem", fmt.Sprintf(`{"TableName":%q,"Item":{"pk":{"S":"k%02d \"${x}\" \\ %%{y}"},"sk":{"S":"s"}}}`,
				name, i))
		}
	}
	return dir
}

// startSandbox returns DynamoDB's address.
func startSandbox(t *testing.T, dir string) string {
	t.Helper()
	program, err := filepath.Abs("../../bin/replicator")
	if name := os.Getenv("REPLICATOR"); name != "" {
		program, err = name, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	ready := filepath.Join(dir, "ready")
	const any = "127.0.0.1:0"
	cmd := exec.Command(program, "sandbox", "--dynamodb", any, "--bigtable", any, "--nats", any, "--s3", any, "--ready-file", ready)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()) })
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; <-tick.C {
		env, err := os.ReadFile(ready)
		for line := range strings.Lines(string(env)) {
			if address, ok := strings.CutPrefix(strings.TrimSpace(line), "export AWS_ENDPOINT_URL="); ok {
				return strings.Trim(address, `"'`)
			}
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("no sandbox after a minute: %v, %s", err, env)
		}
	}
}

// call sends a request to the sandbox, which takes any signature.
func call(t *testing.T, endpoint, operation, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Date", time.Now().UTC().Format("20060102T150405Z"))
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=sandbox/20260101/us-east-1/dynamodb/aws4_request, "+
		"SignedHeaders=host, Signature=00")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", operation, resp.Status)
	}
}
