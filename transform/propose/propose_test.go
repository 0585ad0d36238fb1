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
