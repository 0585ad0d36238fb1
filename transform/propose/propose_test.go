package propose

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform"
)

func item(t *testing.T, raw string) change.Image {
	t.Helper()
	var d change.Decoder
	img, err := d.Image([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func codes(list []problem.Problem) (out []string) {
	for _, p := range list {
		out = append(out, p.Path+" "+p.Code)
	}
	return out
}

var orders = Source{Table: "Orders", TTLAttr: "exp",
	Schema: change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'},
		Sort: &change.KeyAttr{Name: "sk", Type: 'S'}},
	Indexes: []Index{{"byStatus", []change.KeyAttr{{Name: "status", Type: 'S'}}}}}

func TestProposalWarnsOfWhatHurts(t *testing.T) {
	s := New(orders)
	for i := range 200 {
		amount := fmt.Sprintf(`{"N":"%d.5"}`, i)
		if i%3 == 0 {
			amount = `{"S":"free"}`
		}
		kind := []string{"ORDER", "ITEM"}[i%2]
		s.Add(item(t, fmt.Sprintf(`{"pk":{"S":"2026-11-21#%d"},"sk":{"S":"%s#%d"},"amount":%s,"count":{"N":"%d"}}`, i, kind,
			i, amount, i)))
	}
	p := s.Proposal()
	for _, want := range []string{"pk timestamp_first", "pk escaped", "amount mixed_types", "amount not_int64"} {
		if !slices.Contains(codes(p.Findings), want) {
			t.Errorf("no finding %q in %v", want, codes(p.Findings))
		}
	}
	for _, want := range []string{"\ntypes: \"t:types\"", "\n  t: {max_versions: 1}", "on_ttl_expiry: delete",
		"byStatus#{status}#{pk}##{sk}", "{name: byStatus, key: [\"d:status\"]}",
		"{attr: count, to: \"n:count\", as: int64, fallback: d}", "match: {pk: \"{pk}\", sk: \"ITEM#{item}\"}"} {
		if !strings.Contains(p.Mapping, want) {
			t.Errorf("the mapping lacks %q:\n%s", want, p.Mapping)
		}
	}
}

// TestCountsAgreeWithTheirNouns: of one item, row or cell as of several.
func TestCountsAgreeWithTheirNouns(t *testing.T) {
	s := New(orders)
	s.Add(item(t, `{"pk":{"S":"a"},"sk":{"S":"b"},"v":{"N":"1"}}`))
	if p := s.Proposal(); !strings.Contains(p.Mapping, "from a sample of 1 item. Edit") {
		t.Errorf("the mapping says otherwise:\n%s", p.Mapping)
	}
	if one, two := have(1, "row"), have(2, "row"); one != "1 row has" || two != "2 rows have" {
		t.Errorf("%q, %q", one, two)
	}
}

func TestProposedMappingCompilesAndTakesTheSample(t *testing.T) {
	for _, schema := range []change.KeySchema{orders.Schema, {Partition: change.KeyAttr{Name: "1 odd:name", Type: 'N'}},
		{Partition: change.KeyAttr{Name: "pk", Type: 'B'}, Sort: &change.KeyAttr{Name: "n", Type: 'N'}}} {
		src := orders
		src.Schema = schema
		s := New(src)
		key := map[byte]string{'S': `{"S":"a#b"}`, 'N': `{"N":"-1.5"}`, 'B': `{"B":"AP8="}`}
		raw := fmt.Sprintf(`{%q:%s,"v":{"N":"1"}`, schema.Partition.Name, key[schema.Partition.Type])
		if schema.Sort != nil {
			raw += fmt.Sprintf(`,%q:%s`, schema.Sort.Name, key[schema.Sort.Type])
		}
		img := item(t, raw+"}")
		s.Add(img)
		m, problems := transform.ParseMapping("proposed.yaml", []byte(s.Proposal().Mapping))
		if len(problems) > 0 {
			t.Fatalf("%v\n%s", problems, s.Proposal().Mapping)
		}
		p, problems := transform.Compile(transform.Table{Pipeline: "p", Source: "Orders", Target: "orders", Schema: schema,
			Mapping: m, TTLAttr: "exp"})
		if p == nil {
			t.Fatalf("%v\n%s", problems, s.Proposal().Mapping)
		}
		survey := NewSurvey(p)
		survey.Add(img)
		if f := survey.Findings(); len(f) > 0 {
			t.Errorf("findings %v", f)
		}
	}
}

// uncommented takes the signs away from all that is proposed as a comment, but for what is to
// replace something.
func uncommented(text string) string {
	for _, sign := range []string{`(?m)^ *# index:$`, `(?m)^ *# - \{name: [^,]+, (row|key):`, `(?m)^# views:$`,
		`(?m)^# types:`, `(?m)^ *# [txn]: \{max_versions`, `(?m)^ *# on_ttl_expiry: delete`} {
		text = regexp.MustCompile(sign).ReplaceAllStringFunc(text,
			func(l string) string { return strings.Replace(l, "# ", "", 1) })
	}
	return text
}

// TestProposedIndexesCompileOnceTheyAreWanted takes the comment signs away, as an author does.
func TestProposedIndexesCompileOnceTheyAreWanted(t *testing.T) {
	number, binary := change.KeyAttr{Name: "total", Type: 'N'}, change.KeyAttr{Name: "mac-address", Type: 'B'}
	src := orders
	src.Indexes = append(slices.Clone(src.Indexes),
		Index{"by-total", []change.KeyAttr{number, binary}},
		Index{"inverted", []change.KeyAttr{*src.Schema.Sort, src.Schema.Partition}},
		Index{"byTenant", []change.KeyAttr{{Name: "tenant", Type: 'S'}, {Name: "region", Type: 'S'},
			{Name: "status", Type: 'S'}, number}})
	s := New(src)
	img := item(t, `{"pk":{"S":"a"},"sk":{"S":"b"},"status":{"S":"open"},"total":{"N":"-7"},"mac-address":{"B":"AP8="},
		"tenant":{"S":"acme"},"region":{"S":"eu"}}`)
	s.Add(img)
	text := uncommented(s.Proposal().Mapping)
	m, problems := transform.ParseMapping("proposed.yaml", []byte(text))
	p, more := transform.Compile(transform.Table{Pipeline: "p", Source: "Orders", Target: "orders", Schema: src.Schema,
		Mapping: m})
	if p == nil || len(problems) > 0 {
		t.Fatalf("%v%v\n%s", problems, more, text)
	}
	rows, err := p.Project(img)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		got = append(got, string(r.Key))
	}
	want := []string{"item#a#b", "byStatus#open#a#b", "by-total#04982~#00ff#a#b", "inverted#b#a#a#b",
		"byTenant#acme#eu#open#04982~#a#b"}
	if !slices.Equal(got, want) || len(p.Views()) != 3 {
		t.Errorf("rows %q, want %q; views %v\n%s", got, want, p.Views(), text)
	}
}

func TestSurveyTellsLostAttributesAndRefusals(t *testing.T) {
	m, problems := transform.ParseMapping("m.yaml", []byte(`
families: {d: {max_versions: 1}}
rules:
- {name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", cells: [{attr: a, to: "d:a", as: int64}]}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p, problems := transform.Compile(transform.Table{Source: "Orders", Target: "orders", Schema: orders.Schema,
		Mapping: m})
	if p == nil {
		t.Fatal(problems)
	}
	s := NewSurvey(p)
	s.Add(item(t, `{"pk":{"S":"a"},"sk":{"S":"b"},"a":{"N":"1"},"extra":{"S":"x"}}`))
	s.Add(item(t, `{"pk":{"S":"a#"},"sk":{"S":"b"},"a":{"N":"1"}}`))
	got := codes(s.Findings())
	if want := []string{"sample refused", "extra lost"}; !slices.Equal(got, want) {
		t.Errorf("findings %v, want %v", got, want)
	}
}

// designs are tables as people make them: forms of keys, of which an item has one.
var designs = map[string]struct {
	keys [][2]string
	rows []string // of the first items, "" where it does not matter
	rest int      // items in a hundred of no form
}{
	"both keys": {[][2]string{{"USER#%d", "ORDER#%d"}, {"USER#%d", "PROFILE"}, {"USER#%d", "USER#%d"},
		{"SHOP#%d", "2026-11-%02d"}}, []string{"USER#0#ORDER#0", "USER#1#PROFILE", "USER#2#USER#2", "SHOP#3#2026-11-03"}, 2},
	"sort keys":      {[][2]string{{"%d", "ORDER#%d"}, {"%d", "LINE-ITEM#%d"}}, []string{"0#ORDER#0", "1#LINE-ITEM#1"}, 3},
	"partition keys": {[][2]string{{"TYPE#%d", "x%d"}, {"ITEM#%d", "y%d"}}, []string{"TYPE#0#x0", "ITEM#1#y1"}, 0},
	"tenants":        {[][2]string{{"acme#%d", "x%d"}, {"globex#%d", "y%d"}}, []string{"acme%230#x0", "globex%231#y1"}, 0},
	"none":           {[][2]string{{"%d", "x%d"}}, []string{"0#x0"}, 0},
}

// TestProposalForASingleTableHoldsWithAndWithoutItsComments: every row stays one item's, every
// sampled item is taken.
func TestProposalForASingleTableHoldsWithAndWithoutItsComments(t *testing.T) {
	attr := func(name string, typ byte) change.KeyAttr { return change.KeyAttr{Name: name, Type: typ} }
	withIndexes := []Index{{"GSI1", []change.KeyAttr{attr("GSI1PK", 'S'), attr("GSI1SK", 'S')}},
		{"item", []change.KeyAttr{attr("user", 'S')}}, {"USER", []change.KeyAttr{attr("total", 'N'), attr("pk", 'S')}},
		{"inverted", []change.KeyAttr{attr("sk", 'S'), attr("pk", 'S')}}}
	for name, d := range designs {
		for _, indexes := range [][]Index{nil, withIndexes} {
			s := New(Source{Table: "T", Schema: orders.Schema, Indexes: indexes, TTLAttr: "exp"})
			var items []change.Image
			for i := range 120 {
				k := d.keys[i%len(d.keys)]
				pk, sk := k[0], k[1]
				if i >= 100 && i < 100+d.rest {
					pk, sk = "odd#%d", "one#%d"
				}
				fill := func(f string) string {
					return strings.ReplaceAll(strings.ReplaceAll(f, "%02d", fmt.Sprintf("%02d", i)), "%d", fmt.Sprint(i))
				}
				img := item(t, fmt.Sprintf(`{"pk":{"S":%q},"sk":{"S":%q},"GSI1PK":{"S":"ORDER#%d"},`+
					`"GSI1SK":{"S":"x#y"},"user":{"S":"u#1"},"total":{"N":"%d"}}`, fill(pk), fill(sk), i%2, i%7))
				items = append(items, img)
				s.Add(img)
			}
			plain := s.Proposal().Mapping
			for _, text := range []string{plain, uncommented(plain)} {
				rows := holds(t, name, text, items)
				if indexes == nil && text == plain && !slices.Equal(rows[:len(d.rows)], d.rows) {
					t.Errorf("%s: rows %q, want %q\n%s", name, rows[:len(d.rows)], d.rows, text)
				}
			}
		}
	}
}

// holds fails unless a mapping compiles, gives every row of every item to that item alone and takes
// all items; it returns their main rows.
func holds(t *testing.T, name, text string, items []change.Image) (rows []string) {
	t.Helper()
	m, problems := transform.ParseMapping("proposed.yaml", []byte(text))
	p, more := transform.Compile(transform.Table{Pipeline: "p", Source: "T", Target: "t", Schema: orders.Schema,
		Mapping: m, TTLAttr: "exp"})
	if p == nil || len(problems) > 0 {
		t.Fatalf("%s: %v%v\n%s", name, problems, more, text)
	}
	for _, r := range p.Report() {
		if r.Class != "R" {
			t.Errorf("%s: %s is of class %s: %s\n%s", name, r.Name, r.Class, r.Why, text)
		}
	}
	s := NewSurvey(p)
	for _, img := range items {
		s.Add(img)
		projected, err := p.Project(img)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		rows = append(rows, string(projected[0].Key))
	}
	for _, f := range s.Findings() {
		if f.Severity == "error" {
			t.Errorf("%s: %v\n%s", name, f, text)
		}
	}
	return rows
}

// TestRulesOfASingleTableAreNotSaidToEscapeTheirWords, and a word that all keys begin with is no
// hot part.
func TestRulesOfASingleTableAreNotSaidToEscapeTheirWords(t *testing.T) {
	s := New(orders)
	for i := range 200 {
		s.Add(item(t, fmt.Sprintf(`{"pk":{"S":"%s#%d"},"sk":{"S":"ORDER#%d"}}`, []string{"USER", "USER", "SHOP"}[i%3], i, i)))
	}
	if got := codes(s.Proposal().Findings); len(got) > 0 {
		t.Errorf("findings of the proposal %v", got)
	}
	if got, want := codes(s.Findings()), []string{"pk hot_segment", "pk escaped"}; !slices.Equal(got, want) {
		t.Errorf("findings under the preset %v, want %v", got, want)
	}
}

// surveyed compiles a mapping for the table of orders and surveys items.
func surveyed(t *testing.T, mapping string, items ...string) (*transform.Program, []problem.Problem) {
	t.Helper()
	m, problems := transform.ParseMapping("m.yaml", []byte(mapping))
	p, more := transform.Compile(transform.Table{Pipeline: "p", Source: "Orders", Target: "orders", Schema: orders.Schema,
		Mapping: m})
	if p == nil {
		t.Fatal(problems, more)
	}
	s := NewSurvey(p)
	for _, x := range items {
		s.Add(item(t, x))
	}
	return p, s.Findings()
}

// TestSampleShowsCellsOfTwoItems: what was acknowledged does happen; what several items merge is
// meant.
func TestSampleShowsCellsOfTwoItems(t *testing.T) {
	order := func(sk, mail string) string {
		return fmt.Sprintf(`{"pk":{"S":"a"},"sk":{"S":%q},"mail":{"S":%q},"v":{"N":"1"}}`, sk, mail)
	}
	for _, tt := range []struct{ cells, want string }{
		{`{attr: v, to: "d:{mail|lower}"}`, "warning 1 cells of family d"},                      // class D
		{`{attr: v, to: "d:v"}`, "warning 1 cells of family d"},                                 // class K
		{`{attr: v, to: "d:v", ts: "{sk|int}", cell_id: ts}`, ""},                               // distinguished by time
		{`{attr: v, to: "d:v", ts: "{v}", cell_id: ts}`, "warning 1 cells of family d"},         // one time
		{`{attr: v, to: "top:v", as: int64, ts: "0"}, {attr: v, to: "d:{sk}"}`, ""},             // merged
		{`{attr: v, to: "top:v", as: int64, ts: "0"}, {attr: v, to: "d:v"}`, "warning 1 cells"}, // both
	} {
		_, found := surveyed(t, `
families: {d: {max_versions: all}, top: {aggregate: max}}
rules: [{name: r, match: {pk: "{p}", sk: "{s:d}"}, row: "x#{p}",
  cells: [`+tt.cells+`], collisions: acknowledged, ignore: ["*"]}]`,
			order("1", "Ann"), order("2", "ann"), order("3", "bob"), order("3", "bob"))
		got := ""
		for _, f := range found {
			if f.Code == "collision" {
				got += f.Severity + " " + f.What
			}
		}
		if !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", tt.cells, got, tt.want)
		}
	}
}

// TestSampleShowsWhereRowsGo: the keys of a table say little of the rows that a mapping of its own
// makes of them.
func TestSampleShowsWhereRowsGo(t *testing.T) {
	var items []string
	for i := range 200 {
		items = append(items, fmt.Sprintf(`{"pk":{"S":"TENANT#%d"},"sk":{"S":"2026-11-21T%04d"},"id":{"N":"%d"}}`, i%3, i, i))
	}
	for row, want := range map[string]string{
		`TENANT#{t}#{s}`:             "hot_segment",
		`{salt(t;4)}#{t}#{s}`:        "",
		`{s}#{t}`:                    "timestamp_first",
		`{s|revstr}#{t}`:             "",
		`{id}#{t}#{s}`:               "sequential",
		`all/{id|revstr}#{t}#{s}`:    "",
		`all/{id|pad(9)}#{t}#{s}`:    "sequential",
		`{id|hash(16)}#{id}#{t}#{s}`: "",
	} {
		_, found := surveyed(t, `
families: {d: {max_versions: 1}}
rules: [{name: r, match: {pk: "TENANT#{t}", sk: "{s}"}, row: "`+row+`",
  cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]}]`, items...)
		if got := codes(found); strings.Join(got, ",") != strings.TrimSuffix("rule r "+want, "rule r ") {
			t.Errorf("row %s: %q, want %q", row, got, want)
		}
	}
	_, found := surveyed(t, `
families: {d: {max_versions: 1}}
rules: [{name: r, match: {pk: "{t}", sk: "{date}"}, row: "{date}#{t}", acknowledged: [hotspot],
  cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]}]`, items...)
	if len(found) > 0 {
		t.Errorf("acknowledged, and said again: %v", found)
	}
}

// TestTypesMatterWhereTheMappingForgetsThem, and whole numbers where it wants them.
func TestTypesMatterWhereTheMappingForgetsThem(t *testing.T) {
	for cells, want := range map[string][2]bool{
		`{attrs: all, to: "d:{attr}"}`:                  {true, false},
		`{attrs: all, to: "d:{attr}", as: dynamo_json}`: {false, false},
		`{attr: v, to: "d:v", as: int64}`:               {false, true},
		`{attr: v, to: "d:v", as: int64, fallback: t}`:  {false, false},
		`{doc: all, to: "d:v", format: json}`:           {true, false},
		`{doc: all, to: "d:v"}, {attr: v, to: "t:v"}`:   {false, false},
		`{attr: w, to: "d:w", as: int64}`:               {false, false},
		`{attr: v, to: "t:v"}`:                          {true, false},
	} {
		p, _ := surveyed(t, `
families: {d: {max_versions: 1}, t: {max_versions: 1}}
rules: [{name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", cells: [`+cells+`], ignore: ["*"]}]`)
		if got := [2]bool{p.Untyped("v"), p.Int64Only("v")}; got != want {
			t.Errorf("%s: untyped, int64 only %v, want %v", cells, got, want)
		}
	}
	if p, _ := surveyed(t, `
types: "t:types"
families: {d: {max_versions: 1}, t: {max_versions: 1}}
rules: [{name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}",
  cells: [{attrs: all, to: "d:{attr}"}]}]`); p.Untyped("v") {
		t.Error("a sidecar holds the types")
	}
}
