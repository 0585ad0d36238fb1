// Package terraform reads deploy/terraform and what `replicator schema --format terraform` prints with
// HashiCorp's own parser, and compares them with what the program says of itself. Providers are not
// fetched: whether they take the resources is not tested here.
package terraform

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

const moduleDir = "../../deploy/terraform"

// module holds the blocks of a Terraform module: variables by name, locals by name, resources by
// type and name.
type module struct {
	variables map[string]*hclsyntax.Block
	locals    map[string]hcl.Expression
	resources map[string]*hclsyntax.Block
	outputs   map[string]*hclsyntax.Block
}

// parse reads files of a module. Each must be as `terraform fmt` leaves it.
func parse(t *testing.T, files map[string][]byte) *module {
	t.Helper()
	m := &module{
		variables: map[string]*hclsyntax.Block{}, locals: map[string]hcl.Expression{},
		resources: map[string]*hclsyntax.Block{}, outputs: map[string]*hclsyntax.Block{},
	}
	for name, text := range files {
		if formatted := hclwrite.Format(text); !bytes.Equal(formatted, text) {
			t.Errorf("%s is not formatted; it should be\n%s", name, formatted)
		}
		f, problems := hclsyntax.ParseConfig(text, name, hcl.InitialPos)
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		for _, b := range f.Body.(*hclsyntax.Body).Blocks {
			switch b.Type {
			case "variable":
				m.variables[b.Labels[0]] = b
			case "output":
				m.outputs[b.Labels[0]] = b
			case "resource":
				key := strings.Join(b.Labels, ".")
				if m.resources[key] != nil {
					t.Errorf("%s: two resources are called %s", name, key)
				}
				m.resources[key] = b
			case "locals":
				for _, a := range b.Body.Attributes {
					m.locals[a.Name] = a.Expr
				}
			case "terraform", "data":
			default:
				t.Errorf("%s: a block %s, which no test looks at", name, b.Type)
			}
		}
	}
	return m
}

// own reads deploy/terraform.
func own(t *testing.T) *module {
	t.Helper()
	names, err := filepath.Glob(moduleDir + "/*.tf")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d files: %v", len(names), err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		if files[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return parse(t, files)
}

// functions are those of Terraform that the locals call.
var functions = map[string]function.Function{
	"concat": stdlib.ConcatFunc, "length": stdlib.LengthFunc, "trim": stdlib.TrimFunc,
}

// evaluate returns a local of the module for these values of its variables, the others at their
// defaults.
func (m *module) evaluate(t *testing.T, local string, values map[string]cty.Value) cty.Value {
	t.Helper()
	vars := map[string]cty.Value{}
	for name, b := range m.variables {
		vars[name] = variable(t, b, values[name])
	}
	for name := range values {
		if m.variables[name] == nil {
			t.Fatalf("there is no variable %s", name)
		}
	}
	ctx := &hcl.EvalContext{Functions: functions, Variables: map[string]cty.Value{
		"var": cty.ObjectVal(vars),
		"data": cty.ObjectVal(map[string]cty.Value{
			"aws_caller_identity": current("account_id", "ACCOUNT"), "aws_partition": current("partition", "aws"),
		}),
	}}
	return m.local(t, ctx, map[string]cty.Value{}, local)
}

func current(attribute, value string) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{
		"current": cty.ObjectVal(map[string]cty.Value{attribute: cty.StringVal(value)}),
	})
}

// local evaluates a local after those that it refers to.
func (m *module) local(t *testing.T, ctx *hcl.EvalContext, known map[string]cty.Value, name string) cty.Value {
	t.Helper()
	expr := m.locals[name]
	if expr == nil {
		t.Fatalf("there is no local %s", name)
	}
	for _, v := range expr.Variables() {
		if attr, ok := v[min(1, len(v)-1)].(hcl.TraverseAttr); ok && v.RootName() == "local" {
			if _, done := known[attr.Name]; !done {
				known[attr.Name] = m.local(t, ctx, known, attr.Name)
			}
		}
	}
	inner := ctx.NewChild()
	inner.Variables = map[string]cty.Value{"local": cty.ObjectVal(known)}
	value, problems := expr.Value(inner)
	if problems.HasErrors() {
		t.Fatalf("local.%s: %v", name, problems)
	}
	return value
}

// variable returns the value of a variable as Terraform gives it to the module: of its type, with
// the defaults of optional attributes.
func variable(t *testing.T, b *hclsyntax.Block, given cty.Value) cty.Value {
	t.Helper()
	name := b.Labels[0]
	if b.Body.Attributes["type"] == nil || b.Body.Attributes["description"] == nil {
		t.Fatalf("variable %s has no type or no description", name)
	}
	typ, defaults, problems := typeexpr.TypeConstraintWithDefaults(b.Body.Attributes["type"].Expr)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	if given == cty.NilVal {
		given = cty.NullVal(typ)
		if a := b.Body.Attributes["default"]; a != nil {
			if given, problems = a.Expr.Value(nil); problems.HasErrors() {
				t.Fatal(problems)
			}
		}
	}
	if defaults != nil && !given.IsNull() {
		given = defaults.Apply(given)
	}
	value, err := convert.Convert(given, typ)
	if err != nil {
		t.Fatalf("variable %s: %v", name, err)
	}
	return value
}

// asJSON returns a value as `jsonencode` writes it, decoded again.
func asJSON(t *testing.T, v cty.Value) (decoded any) {
	t.Helper()
	text, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

// TestReferencesLeadSomewhere: each var, local and resource that an expression names exists, and
// each variable is used.
func TestReferencesLeadSomewhere(t *testing.T) {
	m := own(t)
	used := map[string]bool{}
	look := func(where string, v hcl.Traversal) {
		attr := func(i int) string {
			if i < len(v) {
				if a, ok := v[i].(hcl.TraverseAttr); ok {
					return a.Name
				}
			}
			return ""
		}
		switch root := v.RootName(); {
		case root == "var":
			if used[attr(1)] = true; m.variables[attr(1)] == nil {
				t.Errorf("%s names var.%s, which does not exist", where, attr(1))
			}
		case root == "local" && m.locals[attr(1)] == nil:
			t.Errorf("%s names local.%s, which does not exist", where, attr(1))
		case strings.HasPrefix(root, "aws_") || strings.HasPrefix(root, "google_"):
			if m.resources[root+"."+attr(1)] == nil {
				t.Errorf("%s names %s.%s, which does not exist", where, root, attr(1))
			}
		}
	}
	for name, expr := range m.locals {
		for _, v := range expr.Variables() {
			look("local."+name, v)
		}
	}
	for _, blocks := range []map[string]*hclsyntax.Block{m.resources, m.outputs} {
		for name, b := range blocks {
			_ = hclsyntax.VisitAll(b.Body, func(n hclsyntax.Node) hcl.Diagnostics {
				if e, ok := n.(*hclsyntax.ScopeTraversalExpr); ok {
					look(name, e.Traversal)
				}
				return nil
			})
		}
	}
	for name := range m.variables {
		if !used[name] {
			t.Errorf("no resource uses variable %s", name)
		}
	}
}

// TestProfilesAreConditional: each write of the replicator is CheckAndMutateRow.
func TestProfilesAreConditional(t *testing.T) {
	profile := own(t).resources["google_bigtable_app_profile.profile"]
	var blocks []string
	for _, b := range profile.Body.Blocks {
		blocks = append(blocks, b.Type)
		if b.Type != "single_cluster_routing" {
			continue
		}
		a := b.Body.Attributes["allow_transactional_writes"]
		if v, problems := a.Expr.Value(nil); problems.HasErrors() || !v.True() {
			t.Error("the profile refuses conditional writes")
		}
	}
	if slices.Sort(blocks); !slices.Equal(blocks, []string{"single_cluster_routing", "standard_isolation"}) {
		t.Errorf("the profile has %v", blocks)
	}
}
