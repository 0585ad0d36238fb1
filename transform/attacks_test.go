package transform

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/change"
)

func TestCoalescedMovesLeaveNoGhost(t *testing.T) {
	p := example(t, "10_regroup.yaml")
	at := func(site string) string { return `{"id":{"S":"x"},"site":{"S":"` + site + `"},"v":{"S":"1"}}` }
	m := newModel()
	m.apply(t, writeOf(t, p, step(t, p, 1, "", at("A"))))
	w := writeOf(t, p, step(t, p, 2, at("A"), at("B")), step(t, p, 3, at("B"), at("C")))
	checkWrite(t, w)
	m.apply(t, w)
	var keys []string
	for _, r := range w.Rows {
		keys = append(keys, string(r.Key))
	}
	if got := strings.Join(keys, " "); got != "C A B" {
		t.Errorf("rows of the united write: %s, want the new one first and both old ones", got)
	}
	if got := slices.Sorted(maps.Keys(m.plain(nil))); len(got) != 1 || got[0] != "C|d:x/v" {
		t.Errorf("the moved item is seen at %v", got)
	}
}

// TestALetterHealsWithTheNextChange drops random changes, as dead letters do, and then changes
// every item once more: rows that are functions of the key must come right.
func TestALetterHealsWithTheNextChange(t *testing.T) {
	eachHealing(t, func(t *rapid.T, p *Program, s scenario, h history) {
		m := newModel()
		version := int64(2_000_000)
		for _, c := range h.changes {
			if rapid.Bool().Draw(t, "letter") {
				continue
			}
			deliver(t, p, m, []*change.Change{c})
		}
		for _, k := range s.keys {
			old, now := h.items[k], "{"+k+suffix(s.body(t, k))+"}"
			version++
			w := writeOf(t, p, step(t, p, version, old, now))
			if len(w.Rows) > 0 && !w.Heals {
				t.Fatal("a write of a key-derived row does not say that it heals")
			}
			m.apply(t, w)
			h.items[k] = now
		}
		expectEqual(t, p, m, h, s.siblings)
	})
}

func TestSiblingsInOneColumnSurviveEachOther(t *testing.T) {
	for _, tt := range []struct{ mapping, a, b string }{
		{"02c_video_sk_time.yaml", `{"pk":{"S":"1"},"sk":{"S":"VideoComment#11"},"Content":{"S":"a"}}`,
			`{"pk":{"S":"1"},"sk":{"S":"VideoComment#22"},"Content":{"S":"b"}}`},
		{"05_versions.yaml", `{"pk":{"S":"o"},"sk":{"S":"v1_d"},"t":{"S":"a"}}`,
			`{"pk":{"S":"o"},"sk":{"S":"v2_d"},"t":{"S":"b"}}`},
	} {
		p := example(t, tt.mapping)
		m := newModel()
		m.apply(t, writeOf(t, p, step(t, p, 1, "", tt.a)))
		m.apply(t, writeOf(t, p, step(t, p, 2, "", tt.b)))
		if n := len(m.plain(map[string]bool{"Comments": true, "d": true})); n != 2 {
			t.Errorf("%s: %d of two siblings are there", tt.mapping, n)
		}
		m.apply(t, writeOf(t, p, step(t, p, 3, tt.a, "")))
		if n := len(m.plain(map[string]bool{"Comments": true, "d": true})); n != 1 {
			t.Errorf("%s: %d cells after one of two siblings was removed", tt.mapping, n)
		}
	}
}

func TestLateWriteWithMappedTimesDestroysNothing(t *testing.T) {
	p := example(t, "03_invoice.yaml")
	item := func(details string) string {
		return `{"pk":{"S":"Invoice-1"},"sk":{"S":"Payment-1"},"Details":{"S":"` + details +
			`"},"DateCreated":{"S":"2023-09-10"}}`
	}
	m := newModel()
	m.apply(t, writeOf(t, p, step(t, p, 9, item("old"), item("new"))))
	before := m.plain(nil)
	late := writeOf(t, p, step(t, p, 5, item("older"), item("old")))
	for _, d := range late.Rows[0].Deletes {
		if d.Versioned {
			t.Errorf("a delete in a column with mapped times may run when the write is skipped: %+v", d)
		}
	}
	m.apply(t, late)
	if after := m.plain(nil); !maps.Equal(before, after) {
		t.Errorf("v5 after v9 changed %v to %v", before, after)
	}
}

// TestRemovalOfARowWantsOneOrder: `on_remove: row` deletes other items' cells of any version, so
// only changes that come in one order may share such a row.
func TestRemovalOfARowWantsOneOrder(t *testing.T) {
	const video = `{name: v, match: {pk: "{id}", sk: Video}, row: "v#{id}", cells: [{attr: v, to: "a:v"}],
    on_remove: row, acknowledged: [cascade]}`
	table := func(source, rules string) Table {
		m, problems := ParseMapping("m.yaml",
			[]byte("families: {a: {max_versions: 1}, b: {max_versions: 1}}\nrules: ["+rules+"]"))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return Table{Pipeline: "p", Source: source, Target: "t", Schema: schema("pk:S", "sk:S"), Mapping: m}
	}
	comment := func(pk, row string) string {
		return `{name: c, match: {pk: "` + pk + `", sk: "C#{n}"}, row: "` + row + `", cells: [{attr: w, to: "b:{n}"}]}`
	}
	for name, c := range map[string]struct {
		tables []Table
		want   bool
	}{
		"one partition":            {[]Table{table("A", video+","+comment("{id}", "v#{id}"))}, true},
		"another row":              {[]Table{table("A", video+","+comment("{u}", "c#{u}#{n}"))}, true},
		"alone in its row":         {[]Table{table("A", video)}, true},
		"a partition by chance":    {[]Table{table("A", video+","+comment("C{id}", "v#{id}"))}, false},
		"a row by attribute":       {[]Table{table("A", video+","+comment("{u}", "v#{video}"))}, false},
		"another table":            {[]Table{table("A", video), table("B", comment("{id}", "v#{id}"))}, false},
		"another table, elsewhere": {[]Table{table("A", video), table("B", comment("{id}", "c#{id}"))}, true},
	} {
		t.Run(name, func(t *testing.T) {
			programs, problems := CompileAll(c.tables)
			refused := slices.ContainsFunc(problems, func(p Problem) bool {
				return p.Code == "cascade" &&
					p.Severity == "error"
			})
			if refused == c.want || (programs[0] != nil) != c.want {
				t.Errorf("compiled %v, want %v: %v", programs[0] != nil, c.want, problems)
			}
		})
	}
}

func TestRowsOfSeveralTablesAreNeverExclusive(t *testing.T) {
	mapping := func(rule string) *Mapping {
		m, problems := ParseMapping("m.yaml",
			[]byte("families: {a: {max_versions: 1}, b: {max_versions: 1}}\nrules:\n- "+rule))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return m
	}
	a := Table{Pipeline: "p", Source: "A", Target: "t", Schema: schema("pk:S"),
		Mapping: mapping(`{name: a, match: {pk: "{p}"}, row: "{p}", cells: [{attr: v, to: "a:v"}]}`)}
	b := Table{Pipeline: "p", Source: "B", Target: "t", Schema: schema("pk:S"),
		Mapping: mapping(`{name: b, match: {pk: "{p}"}, row: "{p}", cells: [{attr: v, to: "b:v"}]}`)}
	ps, problems := CompileAll([]Table{a, b})
	if ps[0] == nil || ps[1] == nil {
		t.Fatal(problems)
	}
	item := `{"pk":{"S":"x"},"v":{"S":"1"}}`
	wa, wb := put(t, ps[0], 1, []byte(item)), put(t, ps[1], 2, []byte(item))
	if wa.Rows[0].Class == ClassR || wb.Rows[0].Class == ClassR {
		t.Errorf("two tables write one row, but it has class %s and %s", wa.Rows[0].Class, wb.Rows[0].Class)
	}
	if wa.Item.Guard == wb.Item.Guard {
		t.Error("items of two tables share one guard")
	}
	alone, _ := Compile(a)
	if got := put(t, alone, 1, []byte(item)).Rows[0].Class; got != ClassR {
		t.Errorf("alone the table's rows have class %s, want R", got)
	}
	if alone.Hash() == ps[0].Hash() {
		t.Error("the hash does not show that the class, and with it the guard, differs")
	}
}

func TestRowFromANonKeyAttributeIsNotExclusive(t *testing.T) {
	p := example(t, "10_regroup.yaml")
	if r := p.Report()[0]; r.Class != "D" || !r.NeedsOld {
		t.Errorf("class %s, needs old image %v: %s", r.Class, r.NeedsOld, r.Why)
	}
}

func TestSameBytesOnEveryRun(t *testing.T) {
	again := map[string]*Program{}
	for _, s := range scenarios {
		again[s.mapping] = example(t, s.mapping)
	}
	eachScenario(t, func(t *rapid.T, p *Program, s scenario, h history) {
		a, b := writeOf(t, p, h.changes[0]), writeOf(t, again[s.mapping], h.changes[0])
		if diff := diffWrites(a, b); diff != "" {
			t.Fatalf("two runs differ:\n%s", diff)
		}
	})
}

func TestAttributeNamedLikeACaptureIsKept(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S")}, `
families: {d: {max_versions: 1}}
rules:
- {name: r, match: {pk: "{site}"}, row: "{site}", cells: [{attr: site, to: "d:site"}, {attr: v, to: "d:v"}]}`)
	w := put(t, p, 1, []byte(`{"pk":{"S":"a"},"site":{"S":"s"},"v":{"S":"x"}}`))
	if n := len(w.Rows[0].Cells); n != 2 {
		t.Errorf("%d of two cells written", n)
	}
}

func TestLimitsAreEnforcedBeforeTheWire(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, "")
	wide := compiled(t, Table{Schema: schema("pk:S")},
		"families: {s: {max_versions: 1}}\nrules:\n- {name: r, match: {pk: \"{p}\"}, row: \"{p}\", cells: [{set: s, to: "+
			"\"s:{member}\"}]}")
	var members []string
	for i := range 100_001 {
		members = append(members, `"`+string(rune('a'+i%26))+strings.Repeat("x", i/26%7)+strings.Repeat("y",
			i%5)+strings.TrimLeft(strings.Repeat("0", 3)+itoa(i), "")+`"`)
	}
	for _, tt := range []struct {
		p          *Program
		item, code string
	}{
		{p, `{"pk":{"S":"` + strings.Repeat("#", 1400) + `"},"sk":{"S":"x"}}`, "row_key_size"},
		{p, `{"pk":{"S":"a"},"sk":{"S":"x"},"` + strings.Repeat("n", 16<<10+1) + `":{"S":"v"}}`, "qualifier_size"},
		{wide, `{"pk":{"S":"a"},"s":{"SS":[` + strings.Join(members, ",") + `]}}`, "mutations"},
	} {
		err := tt.p.Change(new(change.Decoder), insertion(t, tt.p, 1, []byte(tt.item)), new(Write))
		r := (*Refusal)(nil)
		if !errors.As(err, &r) || r.Code != tt.code {
			t.Errorf("refused with %v, want code %s", err, tt.code)
		} else if len(r.What) > 300 {
			t.Errorf("the reason holds the item: %d bytes", len(r.What))
		}
	}
}

func TestViewTypeMustHaveTheImagesThatTheMappingNeeds(t *testing.T) {
	shared := "families: {d: {max_versions: 1}}\nrules:\n- {name: r, match: {pk: \"{p}\", sk: \"{s}\"}, row: \"{p}\", " +
		"cells: [{attrs: all, except: [pk, sk], to: \"d:{s}/{attr}\"}]}"
	for _, tt := range []struct {
		view, mapping string
		ok            bool
	}{
		{"NEW_AND_OLD_IMAGES", shared, true},
		{"NEW_IMAGE", shared, false},
		{"NEW_IMAGE", "preset: default", true},
		{"NEW_IMAGE", "preset: default\nfamilies: {d: {max_versions: 3}}", false},
		{"KEYS_ONLY", "preset: default", false},
		{"OLD_IMAGE", "preset: default", false},
	} {
		m, _ := ParseMapping("m.yaml", []byte(tt.mapping))
		p, problems := Compile(Table{Source: "T", Target: "t", Schema: schema("pk:S", "sk:S"), View: tt.view, Mapping: m})
		if (p != nil) != tt.ok {
			t.Errorf("view %s taken: %v, want %v: %v", tt.view, p != nil, tt.ok, problems)
		}
	}
}

func TestCapturesOfDroppedRulesAndIndexesHaveRoom(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, `
families: {d: {max_versions: 1}, x: {max_versions: 1}}
rules:
- {name: drop, match: {pk: "{a}-{b}-{c}", sk: "{d}-{e}"}, drop: true}
- name: r
  match: {pk: "{p}", sk: "{s}"}
  row: "i#{p}#{s}"
  cells: [{attr: v, to: "d:v"}]
  index:
  - {name: i, match: {sk: "{kind}/{rest}", state: "{st}"}, row: "x{st}/{kind}#{p}#{s}",
    cells: [{const: "0x00", to: "x:k"}]}`)
	for _, r := range p.Report()[1:] {
		if r.Class != "R" {
			t.Errorf("%s has class %s: %s", r.Name, r.Class, r.Why)
		}
	}
	got := cellsOf(t, p, `{"pk":{"S":"a"},"sk":{"S":"k/1"},"state":{"S":"on"},"v":{"S":"x"}}`)
	if len(got) != 2 || got["xon/k#a#k/1"] == nil {
		t.Errorf("rows %v", got)
	}
	if w := writeOf(t, p, step(t, p, 1, "", `{"pk":{"S":"1-2-3"},"sk":{"S":"4-5"}}`)); len(w.Rows) != 0 {
		t.Errorf("a dropped item has rows: %+v", w.Rows)
	}
}

func TestProgramsServeManyLanesAtOnce(t *testing.T) {
	p := example(t, "06_erd.yaml")
	c := step(t, p, 1, "", `{"PK":{"S":"USER#1"},"SK":{"S":"SUBSCRIBE#s#NEWS#7"},"data":{"S":"SUBSCRIBE_USER"}}`)
	want := writeOf(t, p, c)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			w := new(Write)
			for range 200 {
				if err := p.Change(new(change.Decoder), c, w); err != nil || diffWrites(want, w) != "" {
					t.Errorf("a lane got another write: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestVariablesDoNotStandForKeys: a map's {key} is not the key attribute called key.
func TestVariablesDoNotStandForKeys(t *testing.T) {
	for _, mapping := range []string{
		`{name: r, match: {pk: "{p}", key: "{k}"}, row: "{p}", cells: [{map: m, to: "d:{key}"}]}`,
		`{name: r, match: {pk: "{p}", key: "{key}"}, row: "{p}#{key}", cells: [{map: m, to: "d:{key}"}]}`,
		`{name: r, match: {pk: "{p}", key: "{k}"}, row: "{p}#{k}", cells: [{attr: m, to: "d:m"}], index: [{name: i,
    match: {m: "{key}"}, row: "x{p}#{key}", cells: [{attr: n, to: "e:n"}]}]}`,
		`{name: r, match: {pk: "{p}", key: "{k}"}, row: "{p}2{k}", segments: escape, cells: [{attr: m, to: "d:m"}]}`,
		`{name: r, match: {pk: "{p}", key: "{k}"}, row: "{p}#{k}",
    cells: [{attrs: all, to: "d:{path}", flatten: maps, join: "2"}]}`,
	} {
		m, problems := ParseMapping("m.yaml",
			[]byte("families: {d: {max_versions: 1}, e: {max_versions: 1}}\nrules:\n- "+mapping))
		p, more := Compile(Table{Source: "T", Target: "t", Schema: schema("pk:S", "key:S"), Mapping: m})
		if p != nil {
			t.Errorf("taken: %s: %v", mapping, append(problems, more...))
		}
	}
}

func TestHashFollowsTheMeaning(t *testing.T) {
	const plain = `
secrets: {k1: "${KEY}"}
families: {d: {max_versions: 1}}
rules: [{name: r, match: {pk: "{id}"}, row: "{id|hmac(k1,16)}", cells: [{attrs: all, to: "d:{attr}"}]}]`
	hash := func(mapping, secret string) [16]byte {
		return compiled(t, Table{Schema: schema("pk:S"), Getenv: func(string) string { return secret }}, mapping).Hash()
	}
	one := hash(plain, "a")
	for name, other := range map[string][16]byte{
		"a comment":         hash("# x"+plain, "a"),
		"an access pattern": hash(plain+"\nreads: [{name: all, prefix: \"{id}\"}]", "a"),
		"a view":            hash(plain+"\nviews: [{name: v, key: [\"d:x\"]}]", "a"),
	} {
		if other != one {
			t.Errorf("%s changed the hash", name)
		}
	}
	for name, other := range map[string][16]byte{
		"another secret": hash(plain, "b"),
		"another family": hash(strings.ReplaceAll(plain, "d:", "e:"), "a"),
	} {
		if other == one {
			t.Errorf("%s did not change the hash", name)
		}
	}
}
