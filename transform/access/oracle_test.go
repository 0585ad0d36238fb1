package access

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/compile"
	"github.com/tailrace-cdc/replicator/transform/emit"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/lang"
)

// design is a mapping with the keys of its table and indexes.
type design struct {
	keys    string // "p s:N"
	indexes string // "x y:N": one index, by_x
	rules   string // "match → row → index row", separated by " ; "
}

var designs = []design{
	{"p s", "", `{p: "{a}", s: "{b}"} → {a}#{b}`},
	{"p s:N", "", `{p: "{a}", s: "{n}"} → {a}#{n}`},
	{"p s:N", "", `{p: "{a}", s: "{n}"} → {a}#{n|ordnum}`},
	{"p s:N", "", `{p: "{a}", s: "{n:d}"} → {a}#{n|pad(4)}`},
	{"p s:N", "", `{p: "{a}", s: "{n:d}"} → {a}#{n|rev64}`},
	{"p s", "", `{p: "{a}", s: "{n:d}"} → {a}#{n|pad(4)}`},
	{"p s", "", `{p: "{a}", s: "{n:d}"} → {a}#{n}`},
	{"p s", "", `{p: "U#{u}", s: INFO} → u#{u}#i ; {p: "U#{u}", s: "O#{id}"} → u#{u}#o#{id}`},
	{"p s", "", `{p: "U#{u}", s: INFO} → u#{u}#z ; {p: "U#{u}", s: "O#{id}"} → u#{u}#o#{id}`},
	{"p s", "", `{p: "U#{u}", s: INFO} → i#{u} ; {p: "U#{u}", s: "O#{id}"} → o#{u}#{id}`},
	{"p s", "", `{p: "{u}", s: "A#{id}"} → {u}#A#{id} ; {p: "{u}", s: "B#{id}"} → {u}#B#{id} ; {p: "{u}", s: C} → {u}#C`},
	{"p s", "", `{p: "{a}", s: "{x}#{y}"} → {a}#{x}#{y}`},
	{"p s", "", `{p: "{a}", s: "{x}#{y}"} → {a}#{y}#{x}`},
	{"p s", "", `{p: "{a}", s: "{x}#{y}"} → {a}#{x}/{y}`},
	{"p s", "", `{p: "{a}", s: "{x:d}#{y}"} → {a}#{x}#{y}`},
	{"p s", "", `{p: "{a}", s: "{x}#{y}#{z}"} → {a}#{x}#{z}#{y}`},
	{"p s", "", `{p: "{a}", s: "{x:d}.{y:d}"} → {a}#{x|pad(4)}#{y|rev64}`},
	{"p s", "", `{p: "{a}#{t}", s: "{b}"} → {a}#{b}#{t}`},
	{"p s", "", `{p: "{a}#{t}", s: "{b}"} → {a}#{t}#{b}`},
	{"p s", "", `{p: "{a}", s: "{b}"} → {a|lower}#{b}#{a}`},
	{"p s", "", `{p: "{a}", s: "{b}"} → {salt(a;4)}#{a}#{b}`},
	{"p s", "", `{p: "{a}", s: "{b}"} → {a}#{b|revstr}`},
	{"p s", "", `{p: "{a}", s: "{b}"} → {a}#{b|hex}`},
	{"p s", "", `{p: "{a}", s: "{b}"} → {b}#{a}`},
	{"p s", "", `{p: "{a}", s: "{b}"} → {a}`},
	{"p s", "", `{p: "{a}", s: M} → {a} ; {p: "{a}", s: "C#{c}"} → {a}`},
	{"p s", "", `{p: "{u}", s: INFO} → u#{u}#i ; {p: "{u}.{n:d}", s: "O#{id}"} → u#{u}#{n}#{id}`},
	{"p s", "s p", `{p: "{a}", s: "{b}"} → {a}#{b} → s#{b}#{a}`},
	{"p s", "p y", `{p: "{a}", s: "{b}"} → {a}#{b}`}, // items without y are in the rows, and not in the index
	{"p", "x y", `{p: "{a}"} → {a} → x#{x}#{y}#{a}`},
	{"p", "x y:N", `{p: "{a}"} → {a} → x#{x}#{y}#{a}`},
	{"p", "x y:N", `{p: "{a}"} → {a} → x#{x}#{y|ordnum}#{a}`},
	{"p", "x y", `{p: "{a}"} → {a} → x#{x}#{z}#{a}`},
	{"p s", "x y", `{p: "A#{a}", s: "{b}"} → a#{a}#{b} → x#{x}#{y}#a#{a}#{b} ;` +
		` {p: "B#{a}", s: "{b}"} → b#{a}#{b} → x#{x}#{y}#b#{a}#{b}`},
	{"p s", "x y", `{p: "A#{a}", s: "{b}", x: {exists: true}} → {x}#{y}#{a}#{b} ; {p: "{a}", s: "{b}"} → r#{a}#{b}`},
	{"p s", "", `{p: "{a}", s: "{b}", x: "{x:d}"} → n#{a}#{b} ; {p: "{a}", s: "{b}"} → n#{a}#{b}`},
	{"p s", "", `{p: "U#{u}", s: "O#{id}"} → u#{u}#{id} ; {p: "U#{u}", s: "R#{id}"} → u#{u}#{id}#r`},
}

// keysOf makes keys of "p s:N".
func keysOf(s string) (out []change.KeyAttr) {
	for _, k := range strings.Fields(s) {
		name, typ, typed := strings.Cut(k, ":")
		if !typed {
			typ = "S"
		}
		out = append(out, change.KeyAttr{Name: name, Type: typ[0]})
	}
	return out
}

// compiled compiles a design.
func (d design) compiled(t *testing.T) *ir.Program {
	t.Helper()
	var sb strings.Builder
	sb.WriteString("mapping: 1\nsegments: escape\nfamilies: {d: {max_versions: 1}, x: {max_versions: 1}}\nrules:\n")
	for i, rule := range strings.Split(d.rules, " ; ") {
		parts := strings.Split(rule, " → ")
		cells := fmt.Sprintf(`{attr: v, to: "d:v%d"}`, i)
		if !strings.Contains(parts[1], "#") && strings.Contains(d.keys, " ") { // a shared row
			cells = `{attr: v, to: "d:` + []string{"{b}", "{c}"}[i] + `"}`
			if strings.Contains(d.rules, "; ") {
				cells = []string{`{attr: v, to: "x:v"}`, `{attr: v, to: "d:{c}"}`}[i]
			}
		}
		fmt.Fprintf(&sb, "- name: r%d\n  match: %s\n  row: %q\n  cells: [%s]\n", i, parts[0], parts[1], cells)
		if len(parts) > 2 {
			fmt.Fprintf(&sb, "  index: [{name: by_x, row: %q, cells: [{attr: v, to: \"x:v\"}]}]\n", parts[2])
		}
	}
	m, problems := lang.Parse("design.yaml", []byte(sb.String()))
	keys := keysOf(d.keys)
	schema := change.KeySchema{Partition: keys[0]}
	if len(keys) > 1 {
		schema.Sort = &keys[1]
	}
	programs, more := compile.All([]ir.Table{{Source: "T", Target: "t", Schema: schema, Mapping: m}})
	if programs[0] == nil {
		t.Fatalf("%s: %v %v", sb.String(), problems, more)
	}
	return programs[0]
}

// drawText draws keys and values of designs: words that patterns look for, and short ids.
func drawText(t *rapid.T, name string) string {
	id := rapid.StringMatching(`[a-c1-3]{1,2}`)
	switch rapid.IntRange(0, 5).Draw(t, name) {
	case 0, 1:
		return id.Draw(t, name)
	case 2:
		return rapid.StringMatching(`[1-9][0-9]?`).Draw(t, name)
	case 3:
		if rapid.Bool().Draw(t, "parts") {
			return id.Draw(t, name) + "#" + id.Draw(t, name) + "#" + id.Draw(t, name)
		}
		return rapid.SampledFrom([]string{"INFO", "M", "C", "1.2", "1.10", "2.1", "10.1"}).Draw(t, name)
	case 4:
		if rapid.IntRange(0, 9).Draw(t, "low") == 0 {
			return id.Draw(t, name) + "!" + id.Draw(t, name)
		}
		return rapid.SampledFrom([]string{"U#", "O#", "R#", "A#", "B#", "C#", "a."}).Draw(t, name) + id.Draw(t, name)
	}
	return id.Draw(t, name) + "#" + id.Draw(t, name)
}

func drawValue(t *rapid.T, k change.KeyAttr) change.Value {
	if k.Type == 'N' {
		n := rapid.SampledFrom([]string{"1", "2", "5", "10", "12", "105", "0", "-1", "-12", "1.5", "10500"}).Draw(t, k.Name)
		return change.Value{Kind: change.KindNumber, S: n}
	}
	return change.Value{Kind: change.KindString, S: drawText(t, k.Name)}
}

// drawItems draws the items of a table, by key. Few partition keys are shared by many.
func drawItems(t *rapid.T, keys, attrs []change.KeyAttr) (out []change.Image) {
	partition := rapid.Custom(func(t *rapid.T) change.Value { return drawValue(t, keys[0]) })
	partitions := rapid.SliceOfN(partition, 1, 3).Draw(t, "partitions")
	seen := map[string]bool{}
	for range rapid.IntRange(1, 14).Draw(t, "items") {
		img := change.Image{{Name: keys[0].Name, Value: rapid.SampledFrom(partitions).Draw(t, "partition")}}
		id := img[0].Value.S
		for _, k := range keys[1:] {
			img = append(img, change.Attr{Name: k.Name, Value: drawValue(t, k)})
			id += " " + img[1].Value.S
		}
		for _, a := range append([]change.KeyAttr{{Name: "v", Type: 'S'}, {Name: "z", Type: 'S'}}, attrs...) {
			if img.Get(a.Name) == nil && (a.Name == "v" || rapid.IntRange(0, 3).Draw(t, "has") > 0) {
				v := drawValue(t, a)
				if a.Type == 'S' {
					v.S = rapid.SampledFrom([]string{"a", "b", "ab", "1", "2"}).Draw(t, a.Name)
				}
				img = append(img, change.Attr{Name: a.Name, Value: v})
			}
		}
		if !seen[id] {
			seen[id] = true
			out = append(out, img)
		}
	}
	return out
}

// compareKeys compares two values as DynamoDB sorts them.
func compareKeys(a, b change.Value) int {
	if a.Kind == change.KindNumber {
		x, _ := strconv.ParseFloat(a.S, 64)
		y, _ := strconv.ParseFloat(b.S, 64)
		return cmp.Compare(x, y)
	}
	return cmp.Compare(a.S, b.S)
}

// meets reports whether an item meets a test.
func meets(img change.Image, x Test) bool {
	v := img.Get(x.Attr)
	if v == nil {
		return false
	}
	order := compareKeys(*v, x.Values[0])
	switch x.Op {
	case Equal:
		return order == 0
	case BeginsWith:
		return strings.HasPrefix(v.S, x.Values[0].S)
	case Less:
		return order < 0
	case LessEqual:
		return order <= 0
	case More:
		return order > 0
	case MoreEqual:
		return order >= 0
	}
	return order >= 0 && compareKeys(*v, x.Values[1]) <= 0
}

// drawQuery draws a read that some item meets.
func drawQuery(t *rapid.T, items []change.Image, keys []change.KeyAttr, index string) (q Query, ok bool) {
	seed := rapid.SampledFrom(items).Draw(t, "seed")
	for _, k := range keys {
		if seed.Get(k.Name) == nil {
			return q, false
		}
	}
	q = Query{Index: index, Key: keys, Backward: rapid.Bool().Draw(t, "backward")}
	q.Tests = []Test{{Attr: keys[0].Name, Op: Equal, Values: []change.Value{*seed.Get(keys[0].Name)}}}
	if len(keys) == 1 {
		q.Get = index == ""
		return q, true
	}
	q.Sort = []string{keys[1].Name}
	v := *seed.Get(keys[1].Name)
	other := drawValue(t, keys[1])
	ops := []string{"", "get", Equal, BeginsWith, Less, LessEqual, More, MoreEqual, Between, Between}
	x := Test{Attr: keys[1].Name, Op: rapid.SampledFrom(ops).Draw(t, "op"), Values: []change.Value{v}}
	switch {
	case x.Op == "":
		return q, true
	case x.Op == "get":
		x.Op, q.Get = Equal, index == ""
	case x.Op == BeginsWith && keys[1].Type == 'N':
		return q, true
	case x.Op == BeginsWith:
		x.Values[0].S = v.S[:rapid.IntRange(1, len(v.S)).Draw(t, "length")]
	case x.Op == Between && compareKeys(v, other) <= 0:
		x.Values = append(x.Values, other)
	case x.Op == Between:
		x.Values = []change.Value{other, v}
	}
	q.Tests = append(q.Tests, x)
	return q, true
}

// stored is a row of one item.
type stored struct {
	key      []byte
	families []string
	item     int
}

// TestVerdictsHoldOnItems compares verdicts with what is in the rows of random items: a read has
// the rows of all its items, and of no others unless its grade says so, in their order.
func TestVerdictsHoldOnItems(t *testing.T) {
	programs := make([]*ir.Program, len(designs))
	for i, d := range designs {
		programs[i] = d.compiled(t)
	}
	grades := map[Grade]int{}
	check := func(t *rapid.T) {
		i := rapid.IntRange(0, len(designs)-1).Draw(t, "design")
		d, p := designs[i], programs[i]
		keys, index := keysOf(d.keys), ""
		of := keys
		items := drawItems(t, keys, keysOf(d.indexes))
		if d.indexes != "" && rapid.Bool().Draw(t, "index") {
			index, of = "by_x", keysOf(d.indexes)
		}
		if q, ok := drawQuery(t, items, of, index); ok {
			grades[checkVerdict(t, d, p, q, items)]++
		}
	}
	enough := func() bool {
		for g := range rank {
			if grades[g] < 3 {
				return false
			}
		}
		return true
	}
	for rounds := 0; rounds == 0 || !enough(); rounds++ {
		if rounds == 30 {
			t.Fatalf("in %d rounds reads have the grades %v", rounds, grades)
		}
		rapid.Check(t, check)
	}
}

// checkVerdict compares the verdict on a read with the rows of items.
func checkVerdict(t *rapid.T, d design, p *ir.Program, q Query, items []change.Image) Grade {
	q.Rules = Rules(p, q.Tests)
	tests := slices.Clone(q.Tests)
	for i := range q.Tests {
		q.Tests[i].Values = nil // Judge does not look at them
	}
	q.complete(p)
	rules, _ := q.split(p)
	if len(rules) == 0 {
		return NoRead
	}
	v, r := q.best(p, rules)
	if r == nil {
		return v.Grade
	}
	fail := func(format string, args ...any) {
		raw, _ := json.Marshal(items)
		t.Fatalf("%s, %s: %+v %+v\n%s: %s, read %+v\n%s\nitems %s", d.keys, d.rules, tests, q, v.Grade, v.Why, v.Read,
			fmt.Sprintf(format, args...), raw)
	}
	var rows []stored
	var wanted []int
	for n, img := range items {
		projected, err := emit.Project(p, img)
		if err != nil || len(projected) == 0 {
			continue // a dead letter
		}
		for _, row := range projected {
			s := stored{key: row.Key, item: n}
			for _, c := range row.Cells {
				s.families = append(s.families, c.Family)
			}
			rows = append(rows, s)
		}
		if !slices.ContainsFunc(tests, func(x Test) bool { return !meets(img, x) }) &&
			q.takes(p, img) && !slices.ContainsFunc(q.Key, func(k change.KeyAttr) bool { return img.Get(k.Name) == nil }) {
			wanted = append(wanted, n)
		}
	}
	if len(wanted) == 0 {
		return v.Grade
	}
	checkPlace(p, q, tests, v, items, wanted, fail)
	in := inRange(t, p, r, items[wanted[0]], v, rows)
	slices.SortStableFunc(in, func(a, b stored) int { return bytes.Compare(a.key, b.key) })
	if r.tail != "" { // between the bounds stand the rows of the read alone
		in = between(in, wanted)
	}
	var got []int
	for _, s := range in {
		if n := len(got); n == 0 || got[n-1] != s.item {
			got = append(got, s.item)
		}
	}
	for _, n := range wanted {
		if !slices.Contains(got, n) {
			fail("item %d is not in the read", n)
		}
	}
	if v.Grade == WiderRange || q.Get {
		return v.Grade
	}
	if len(got) != len(wanted) {
		fail("items %v are in the read, %v are wanted", got, wanted)
	}
	if v.Grade == Served && !r.row() && len(q.Sort) > 0 {
		for i, n := range got[1:] {
			order := compareKeys(*items[got[i]].Get(q.Sort[0]), *items[n].Get(q.Sort[0]))
			if order > 0 && !q.Backward || order < 0 && q.Backward {
				fail("item %d comes before item %d", got[i], n)
			}
		}
	}
	return v.Grade
}

// checkPlace compares where the rows of one read are with where it finds them.
func checkPlace(
	p *ir.Program, q Query, tests []Test, v Verdict, items []change.Image, wanted []int, fail func(string, ...any),
) {
	f := NewFinder(p, q, nil)
	if !f.Finds() {
		return
	}
	if f.Verdict.Why != v.Why && len(f.Verdict.Index) == 0 {
		fail("another verdict: %+v", f.Verdict)
	}
	place, err := f.Place(tests)
	if err != nil && !slices.ContainsFunc(tests, noText) {
		fail("no place: %v", err)
	}
	if err != nil || v.ByValues {
		return // a bound that rows cannot have, or values of which the verdict warns
	}
	for _, n := range wanted {
		if row, ok := f.RowOf(items[n]); !ok || !place.Holds(row) {
			fail("row %q of item %d is not in %+v", row, n, place)
		}
	}
}

// noText reports whether a test has a number, of which some forms are no part of a key.
func noText(x Test) bool { return x.Values[0].Kind == change.KindNumber }

// takes reports whether the rule of an item is one of those of the read. Those of an index are the
// ones that name its attributes: the verdict says so.
func (q *Query) takes(p *ir.Program, img change.Image) bool {
	x := p.NewEval()
	x.Scope.Image = img
	rule, err := p.RuleOf(x)
	return err == nil && rule != nil && (q.Index == "" ||
		slices.ContainsFunc(q.Rules, func(b Bound) bool { return b.Rule == rule.Name }))
}

// inRange returns the rows that a read returns, by the values of one of its items.
func inRange(t *rapid.T, p *ir.Program, r *reach, img change.Image, v Verdict, rows []stored) (out []stored) {
	x := p.NewEval()
	x.Scope.Image = img
	rule, err := p.RuleOf(x)
	if err != nil || rule == nil {
		t.Fatal("an item with rows has no rule")
	}
	i := slices.IndexFunc(r.spans, func(s *span) bool { return s.plan.Rule == rule })
	if i < 0 {
		t.Fatalf("rule %s is not among those of the read %+v", rule.Name, v.Read)
	}
	prefix, err := r.spans[i].plan.Row.AppendPieces(nil, &x.Scope, r.fixed)
	if err != nil {
		t.Fatal(err)
	}
	prefix = append(prefix, r.literal...)
	asked := func(f string) bool { return slices.Contains(v.Read.Families, f) }
	for _, s := range rows {
		if !bytes.HasPrefix(s.key, prefix) || r.row() && len(s.key) != len(prefix) {
			continue
		}
		if len(v.Read.Families) == 0 || slices.ContainsFunc(s.families, asked) {
			out = append(out, s)
		}
	}
	return out
}

// between returns the rows from the first to the last of the wanted items.
func between(rows []stored, wanted []int) []stored {
	is := func(s stored) bool { return slices.Contains(wanted, s.item) }
	first := slices.IndexFunc(rows, is)
	if first < 0 {
		return nil
	}
	last := len(rows) - 1
	for !is(rows[last]) {
		last--
	}
	return rows[first : last+1]
}
