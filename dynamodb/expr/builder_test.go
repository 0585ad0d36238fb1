package expr_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	build "github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/expr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// The SDK's expression builder writes expressions; a model that knows only numbers and
// strings says what they mean.

// model is an item of numbers and strings; names that it lacks are missing.
type model map[string]any

var fields = []string{"alpha", "b.c", "date", "d", "e-e"} // some need placeholders, which the builder always writes

func drawModel(t *rapid.T) model {
	m := model{}
	for _, f := range fields {
		switch rapid.IntRange(0, 2).Draw(t, "kind of "+f) {
		case 0:
			m[f] = rapid.IntRange(-3, 3).Draw(t, f)
		case 1:
			m[f] = rapid.StringMatching(`[ab]{0,3}`).Draw(t, f)
		}
	}
	return m
}

func (m model) item() attr.Map {
	var out attr.Map
	for f, v := range m {
		av := attr.Value{Kind: attr.S, Str: fmt.Sprint(v)}
		if _, ok := v.(int); ok {
			av.Kind = attr.N
		}
		out.Set(f, av)
	}
	return out
}

func less(a, b any) (lt, ok bool) {
	switch x := a.(type) {
	case int:
		y, same := b.(int)
		return x < y, same
	case string:
		y, same := b.(string)
		return x < y, same
	}
	return false, false
}

// cond is a condition with its meaning.
type cond struct {
	b    build.ConditionBuilder
	mean func(model) bool
}

func name(f string) build.NameBuilder { return build.NameNoDotSplit(f) }

func drawCond(t *rapid.T, depth int) cond {
	f := rapid.SampledFrom(fields).Draw(t, "field")
	n := name(f)
	kinds := 10
	if depth > 0 {
		kinds = 13
	}
	switch k := rapid.IntRange(0, kinds-1).Draw(t, "condition"); k {
	case 0:
		return cond{build.AttributeExists(n), func(m model) bool { _, ok := m[f]; return ok }}
	case 1:
		return cond{build.AttributeNotExists(n), func(m model) bool { _, ok := m[f]; return !ok }}
	case 2:
		return cond{build.AttributeType(n, build.Number), func(m model) bool { _, ok := m[f].(int); return ok }}
	case 3, 4:
		return drawText(t, f, k == 3)
	case 5:
		return drawSize(t, f)
	case 6:
		return drawBetween(t, f)
	case 7:
		return drawIn(t, f)
	case 8, 9:
		return drawComparison(t, f)
	case 10:
		x := drawCond(t, depth-1)
		return cond{build.Not(x.b), func(m model) bool { return !x.mean(m) }}
	case 11:
		x, y := drawCond(t, depth-1), drawCond(t, depth-1)
		return cond{build.And(x.b, y.b), func(m model) bool { return x.mean(m) && y.mean(m) }}
	default:
		x, y := drawCond(t, depth-1), drawCond(t, depth-1)
		return cond{build.Or(x.b, y.b), func(m model) bool { return x.mean(m) || y.mean(m) }}
	}
}

func drawText(t *rapid.T, f string, begins bool) cond {
	v := rapid.StringMatching(`[ab]{1,2}`).Draw(t, "text")
	if begins {
		return cond{build.BeginsWith(name(f), v), func(m model) bool {
			s, ok := m[f].(string)
			return ok &&
				strings.HasPrefix(s, v)
		}}
	}
	return cond{build.Contains(name(f), v), func(m model) bool {
		s, ok := m[f].(string)
		return ok &&
			strings.Contains(s, v)
	}}
}

func drawSize(t *rapid.T, f string) cond {
	v := rapid.IntRange(0, 3).Draw(t, "size")
	return cond{name(f).Size().GreaterThan(build.Value(v)), func(m model) bool {
		s, ok := m[f].(string)
		return ok &&
			len(s) > v
	}}
}

func drawBetween(t *rapid.T, f string) cond {
	low := rapid.IntRange(-3, 3).Draw(t, "low")
	high := rapid.IntRange(low, 3).Draw(t, "high")
	return cond{name(f).Between(build.Value(low), build.Value(high)), func(m model) bool {
		v, ok := m[f].(int)
		return ok && low <= v && v <= high
	}}
}

func drawValue(t *rapid.T) any {
	if rapid.Bool().Draw(t, "number") {
		return rapid.IntRange(-3, 3).Draw(t, "value")
	}
	return rapid.StringMatching(`[ab]{0,3}`).Draw(t, "value")
}

func drawIn(t *rapid.T, f string) cond {
	var all []any
	var more []build.OperandBuilder
	for range rapid.IntRange(1, 4).Draw(t, "values") {
		v := drawValue(t)
		all = append(all, v)
		more = append(more, build.Value(v))
	}
	return cond{name(f).In(more[0], more[1:]...), func(m model) bool {
		for _, v := range all {
			if m[f] == v {
				return true
			}
		}
		return false
	}}
}

func drawComparison(t *rapid.T, f string) cond {
	op := rapid.SampledFrom([]string{"=", "<>", "<", "<=", ">", ">="}).Draw(t, "op")
	n := name(f)
	v := drawValue(t)
	right, value := build.OperandBuilder(build.Value(v)), func(model) any { return v }
	if g := rapid.SampledFrom(fields).Draw(t, "other field"); g != f && rapid.Bool().Draw(t, "two fields") {
		right, value = name(g), func(m model) any { return m[g] }
	}
	b := map[string]func(build.OperandBuilder) build.ConditionBuilder{"=": n.Equal, "<>": n.NotEqual, "<": n.LessThan,
		"<=": n.LessThanEqual, ">": n.GreaterThan, ">=": n.GreaterThanEqual}[op](right)
	return cond{b, func(m model) bool {
		x, y := m[f], value(m)
		equal := x != nil && x == y
		lt, ok := less(x, y)
		switch op {
		case "=":
			return equal
		case "<>":
			return !equal
		case "<":
			return ok && lt
		case "<=":
			return ok && (lt || equal)
		case ">":
			return ok && !lt && !equal
		}
		return ok && !lt
	}}
}

// placeholders turns what the builder made into an Env.
func placeholders(t *rapid.T, e build.Expression) *expr.Env {
	object := func(fields func(add func(k, v string))) *wire.Node {
		var parts []string
		fields(func(k, v string) { parts = append(parts, strconv.Quote(k)+":"+v) })
		if len(parts) == 0 {
			return nil
		}
		n, err := wire.Parse("{" + strings.Join(parts, ",") + "}")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	names := object(func(add func(k, v string)) {
		for k, v := range e.Names() {
			add(k, strconv.Quote(v))
		}
	})
	values := object(func(add func(k, v string)) {
		for k, v := range e.Values() {
			add(k, typed(t, v))
		}
	})
	env, err := expr.NewEnv(names, values)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func typed(t *rapid.T, v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return `{"S":` + strconv.Quote(v.Value) + `}`
	case *types.AttributeValueMemberN:
		return `{"N":"` + v.Value + `"}`
	case *types.AttributeValueMemberNULL:
		return `{"S":""}` // the builder's word for an empty string
	}
	t.Fatalf("unexpected value %T", v)
	return ""
}

func TestBuiltConditionsMeanWhatTheModelSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCond(t, 3)
		e, err := build.NewBuilder().WithCondition(c.b).Build()
		if err != nil {
			t.Skip(err)
		}
		env := placeholders(t, e)
		parsed, bad := env.Condition("ConditionExpression", *e.Condition())
		if bad != nil {
			if strings.Contains(bad.Message, "redundant parentheses") {
				t.Fatalf("the SDK's own parentheses are refused: %s", *e.Condition())
			}
			t.Fatalf("%s: %v", *e.Condition(), bad)
		}
		if bad := env.Unused(); bad != nil {
			t.Fatal(bad)
		}
		for range 5 {
			m := drawModel(t)
			if got, want := parsed.Match(m.item()), c.mean(m); got != want {
				t.Fatalf("%s %v on %v: got %v", *e.Condition(), e.Names(), m, got)
			}
		}
	})
}

func TestBuiltUpdatesDoWhatTheModelSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		want := model{}
		for f, v := range m {
			want[f] = v
		}
		var u build.UpdateBuilder
		used, fails := 0, false
		for _, f := range fields {
			g := rapid.SampledFrom(fields).Draw(t, "other")
			v := drawValue(t)
			i := rapid.IntRange(-9, 9).Draw(t, "i")
			num := func(x any) int {
				n, ok := x.(int)
				fails = fails || !ok
				return n
			}
			switch rapid.IntRange(0, 6).Draw(t, "action") {
			case 0:
				continue
			case 1:
				u, want[f] = u.Set(name(f), build.Value(v)), v
			case 2:
				u = u.Remove(name(f))
				delete(want, f)
			case 3:
				u = u.Set(name(f), build.IfNotExists(name(g), build.Value(v)))
				if want[f] = v; m[g] != nil {
					want[f] = m[g]
				}
			case 4:
				u = u.Set(name(f), build.Plus(name(g), build.Value(i)))
				want[f] = num(m[g]) + i
			case 5:
				u = u.Set(name(f), build.Minus(build.Value(i), name(g)))
				want[f] = i - num(m[g])
			case 6:
				u = u.Add(name(f), build.Value(i))
				if want[f] = i; m[f] != nil {
					want[f] = num(m[f]) + i
				}
			}
			used++
		}
		if used == 0 {
			return
		}
		e, err := build.NewBuilder().WithUpdate(u).Build()
		if err != nil {
			t.Fatal(err)
		}
		parsed, bad := placeholders(t, e).Update(*e.Update())
		if bad != nil {
			t.Fatalf("%s: %v", *e.Update(), bad)
		}
		got := m.item()
		if bad := parsed.Apply(&got); (bad != nil) != fails {
			t.Fatalf("%s %v on %v: %v", *e.Update(), e.Names(), m, bad)
		}
		if g, w := string(got.AppendJSON(nil)), string(want.item().AppendJSON(nil)); !fails && g != w {
			t.Fatalf("%s %v on %v:\ngot  %s\nwant %s", *e.Update(), e.Names(), m, g, w)
		}
	})
}

func FuzzExpressionsNeverCrash(f *testing.F) {
	for _, s := range []string{"SET a = :n", "REMOVE a[1].b", "a = :n AND (b < :m OR NOT contains(c, :s))", "((",
		"a in (:n, :m)", "a, b.c[0]", "size(a) > :n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m := item(t, doc)
		if c, err := env(t).Condition("ConditionExpression", s); err == nil {
			c.Match(m)
		}
		if p, err := env(t).Projection(s); err == nil {
			p.Of(m)
		}
		_, _ = env(t).KeyCondition(s)
		if u, err := env(t).Update(s); err == nil {
			c := m.Clone()
			_ = u.Apply(&c)
		}
	})
}
