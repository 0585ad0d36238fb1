package ir

import (
	"fmt"
	"strconv"

	"cel.dev/cel-go/cel"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Predicate is a compiled `when`: a CEL expression over the item, for conditions that patterns
// cannot express.
type Predicate struct {
	Source  string
	program cel.Program
}

// costLimit bounds the evaluation cost of an expression for one item, in units of CEL.
const costLimit = 100_000

// NewPredicate compiles a CEL expression. The expression can use `item`, a map of attribute names
// to values, and nothing that changes between two runs.
func NewPredicate(src string) (*Predicate, error) {
	env, err := cel.NewEnv(cel.Variable("item", cel.MapType(cel.StringType, cel.DynType)))
	if err != nil {
		return nil, fmt.Errorf("create CEL environment: %w", err)
	}
	ast, issues := env.Compile(src)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("the expression gives %s, not true or false", t)
	}
	prg, err := env.Program(ast, cel.CostLimit(costLimit), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, err
	}
	return &Predicate{Source: src, program: prg}, nil
}

// Holds evaluates the expression. An error in it (a missing attribute without has(), mixed types)
// refuses the item, because a default would silently write or drop it.
func (w *Predicate) Holds(img change.Image) (bool, error) {
	item := make(map[string]any, len(img))
	for i := range img {
		item[img[i].Name] = native(&img[i].Value)
	}
	out, _, err := w.program.Eval(map[string]any{"item": item})
	if err != nil {
		return false, tmpl.Refuse("when", "`when: %s`: %v", w.Source, err)
	}
	b, ok := out.Value().(bool)
	if !ok {
		return false, tmpl.Refuse("when", "`when: %s` gives neither true nor false", w.Source)
	}
	return b, nil
}

// native returns a value in the types of CEL: integers as int, other numbers as double, sets as
// lists.
func native(v *change.Value) any {
	switch v.Kind {
	case change.KindString:
		return v.S
	case change.KindBool:
		return v.Bool
	case change.KindNumber:
		if n, err := strconv.ParseInt(v.S, 10, 64); err == nil {
			return n
		}
		f, _ := strconv.ParseFloat(v.S, 64)
		return f
	case change.KindBinary:
		b, _ := v.Bytes()
		return b
	case change.KindNull:
		return nil
	case change.KindMap:
		m := make(map[string]any, len(v.M))
		for i := range v.M {
			m[v.M[i].Name] = native(&v.M[i].Value)
		}
		return m
	}
	l := make([]any, len(v.L))
	for i := range v.L {
		l[i] = native(&v.L[i])
	}
	return l
}
