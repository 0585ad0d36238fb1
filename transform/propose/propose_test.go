package propose

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
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

func codes(list []transform.Problem) (out []string) {
	for _, p := range list {
		out = append(out, p.Path+" "+p.Code)
	}
	return out
}

var orders = Source{Table: "Orders", TTLAttr: "exp", Schema: change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'}, Sort: &change.KeyAttr{Name: "sk", Type: 'S'}},
	Indexes: []Index{{Name: "byStatus", Schema: change.KeySchema{Partition: change.KeyAttr{Name: "status", Type: 'S'}}}}}

func TestProposalWarnsOfWhatHurts(t *testing.T) {
	s := New(orders)
	for i := range 200 {
		amount := fmt.Sprintf(`{"N":"%d.5"}`, i)
		if i%3 == 0 {
			amount = `{"S":"free"}`
		}
		kind := []string{"ORDER", "ITEM"}[i%2]
		s.Add(item(t, fmt.Sprintf(`{"pk":{"S":"2026-11-21#%d"},"sk":{"S":"%s#%d"},"amount":%s,"count":{"N":"%d"}}`, i, kind, i, amount, i)))
	}
	p := s.Proposal()
	for _, want := range []string{"pk timestamp_first", "pk escaped", "amount mixed_types", "amount not_int64"} {
		if !slices.Contains(codes(p.Findings), want) {
			t.Errorf("no finding %q in %v", want, codes(p.Findings))
		}
	}
	for _, want := range []string{"types: \"d:_types\"", "on_ttl_expiry: delete", "byStatus#{status}#{pk}#{sk}", "{name: byStatus, key: [\"d:status\"]}", "{attr: count, to: \"n:count\", as: int64, fallback: d}", "Sort keys begin with ITEM#, ORDER#"} {
		if !strings.Contains(p.Mapping, want) {
			t.Errorf("the mapping lacks %q:\n%s", want, p.Mapping)
		}
	}
}

func TestProposedMappingCompilesAndTakesTheSample(t *testing.T) {
	for _, schema := range []change.KeySchema{orders.Schema, {Partition: change.KeyAttr{Name: "1 odd:name", Type: 'N'}}, {Partition: change.KeyAttr{Name: "pk", Type: 'B'}, Sort: &change.KeyAttr{Name: "n", Type: 'N'}}} {
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
		p, problems := transform.Compile(transform.Table{Pipeline: "p", Source: "Orders", Target: "orders", Schema: schema, Mapping: m, TTLAttr: "exp"})
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

// TestProposedIndexesCompileOnceTheyAreWanted takes the comment signs away, as an author does.
func TestProposedIndexesCompileOnceTheyAreWanted(t *testing.T) {
	number, binary := change.KeyAttr{Name: "total", Type: 'N'}, change.KeyAttr{Name: "mac-address", Type: 'B'}
	src := orders
	src.Indexes = append(slices.Clone(src.Indexes), Index{Name: "by-total", Schema: change.KeySchema{Partition: number, Sort: &binary}},
		Index{Name: "inverted", Schema: change.KeySchema{Partition: *src.Schema.Sort, Sort: &src.Schema.Partition}})
	s := New(src)
	img := item(t, `{"pk":{"S":"a"},"sk":{"S":"b"},"status":{"S":"open"},"total":{"N":"-7"},"mac-address":{"B":"AP8="}}`)
	s.Add(img)
	text := s.Proposal().Mapping
	for _, sign := range []string{`(?m)^  # (index:)$`, `(?m)^  # (- \{name: [^,]+, row:)`, `(?m)^# (views:)$`, `(?m)^# (- \{name: [^,]+, key:)`} {
		text = regexp.MustCompile(sign).ReplaceAllStringFunc(text, func(l string) string { return strings.Replace(l, "# ", "", 1) })
	}
	text = strings.Replace(text, "families:\n", "families:\n  x: {max_versions: 1}\n", 1)
	m, problems := transform.ParseMapping("proposed.yaml", []byte(text))
	p, more := transform.Compile(transform.Table{Pipeline: "p", Source: "Orders", Target: "orders", Schema: src.Schema, Mapping: m})
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
	want := []string{"a#b", "byStatus#open#a#b", "by-total#04982~#00ff#a#b", "inverted#b#a#a#b"}
	if !slices.Equal(got, want) || len(p.Views()) != 2 {
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
	p, problems := transform.Compile(transform.Table{Source: "Orders", Target: "orders", Schema: orders.Schema, Mapping: m})
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

// surveyed compiles a mapping for the table of orders and surveys items.
func surveyed(t *testing.T, mapping string, items ...string) (*transform.Program, []transform.Problem) {
	t.Helper()
	m, problems := transform.ParseMapping("m.yaml", []byte(mapping))
	p, more := transform.Compile(transform.Table{Pipeline: "p", Source: "Orders", Target: "orders", Schema: orders.Schema, Mapping: m})
	if p == nil {
		t.Fatal(problems, more)
	}
	s := NewSurvey(p)
	for _, x := range items {
		s.Add(item(t, x))
	}
	return p, s.Findings()
}

// TestSampleShowsCellsOfTwoItems: what was acknowledged does happen; what several items merge is meant.
func TestSampleShowsCellsOfTwoItems(t *testing.T) {
	order := func(sk, mail string) string {
		return fmt.Sprintf(`{"pk":{"S":"a"},"sk":{"S":%q},"mail":{"S":%q},"v":{"N":"1"}}`, sk, mail)
	}
	for _, tt := range []struct{ cells, want string }{
		{`{attr: v, to: "d:{mail|lower}"}`, "warning 1 cells of family d"},                      // class D
		{`{attr: v, to: "d:v"}`, "warning 1 cells of family d"},                                 // class K
		{`{attr: v, to: "d:v", ts: "{sk|int}", cell_id: ts}`, ""},                               // told apart by time
		{`{attr: v, to: "d:v", ts: "{v}", cell_id: ts}`, "warning 1 cells of family d"},         // one time
		{`{attr: v, to: "top:v", as: int64, ts: "0"}, {attr: v, to: "d:{sk}"}`, ""},             // merged
		{`{attr: v, to: "top:v", as: int64, ts: "0"}, {attr: v, to: "d:v"}`, "warning 1 cells"}, // both
	} {
		_, found := surveyed(t, `
families: {d: {max_versions: all}, top: {aggregate: max}}
rules: [{name: r, match: {pk: "{p}", sk: "{s:d}"}, row: "x#{p}", cells: [`+tt.cells+`], collisions: acknowledged, ignore: ["*"]}]`,
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

// TestSampleShowsWhereRowsGo: the keys of a table say little of the rows that a mapping of its own makes of them.
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
rules: [{name: r, match: {pk: "TENANT#{t}", sk: "{s}"}, row: "`+row+`", cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]}]`, items...)
		if got := codes(found); strings.Join(got, ",") != strings.TrimSuffix("rule r "+want, "rule r ") {
			t.Errorf("row %s: %q, want %q", row, got, want)
		}
	}
	_, found := surveyed(t, `
families: {d: {max_versions: 1}}
rules: [{name: r, match: {pk: "{t}", sk: "{date}"}, row: "{date}#{t}", acknowledged: [hotspot], cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]}]`, items...)
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
rules: [{name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", cells: [{attrs: all, to: "d:{attr}"}]}]`); p.Untyped("v") {
		t.Error("a sidecar tells types")
	}
}
