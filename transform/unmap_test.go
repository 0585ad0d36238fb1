package transform

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/change"
)

func text2(t *rapid.T, label string) string {
	return rapid.StringN(0, 8, 20).Draw(t, label)
}

// drawValue draws a value of any type.
func drawValue(t *rapid.T, depth int) change.Value {
	number := func() change.Value {
		s := rapid.SampledFrom([]string{"0", "1", "-1.5", "12345678901234567890123456789012345678", "1E+100", "-7.25E-120",
			"100", "0.001"}).Draw(t, "number")
		return change.Value{Kind: change.KindNumber, S: s}
	}
	binary := func() change.Value {
		return change.Value{Kind: change.KindBinary, S: rapid.SampledFrom([]string{"AA==", "AP8=", "YWJj"}).Draw(t, "binary")}
	}
	kinds := 10
	if depth > 2 {
		kinds = 8
	}
	switch k := change.Kind(rapid.IntRange(0, kinds-1).Draw(t, "kind")); k {
	case change.KindBool:
		return change.Value{Kind: k, Bool: rapid.Bool().Draw(t, "bool")}
	case change.KindString:
		return change.Value{Kind: k, S: text2(t, "text")}
	case change.KindNumber:
		return number()
	case change.KindBinary:
		return binary()
	case change.KindStringSet:
		v := change.Value{Kind: k}
		for _, s := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"", "a", "$n", "#"}), 1, 3,
			rapid.ID[string]).Draw(t, "ss") {
			v.L = append(v.L, change.Value{Kind: change.KindString, S: s})
		}
		return v
	case change.KindNumberSet:
		return change.Value{Kind: k, L: []change.Value{number()}}
	case change.KindBinarySet:
		return change.Value{Kind: k, L: []change.Value{binary()}}
	case change.KindList:
		v := change.Value{Kind: k}
		for range rapid.IntRange(0, 3).Draw(t, "len") {
			v.L = append(v.L, drawValue(t, depth+1))
		}
		return v
	case change.KindMap:
		v := change.Value{Kind: k}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "$n", "$$x", "b.c", ""}), 0, 3,
			rapid.ID[string]).Draw(t, "names") {
			v.M = append(v.M, change.Attr{Name: name, Value: drawValue(t, depth+1)})
		}
		return v
	default:
		return change.Value{Kind: change.KindNull}
	}
}

var losslessMappings = map[string]string{
	"natural with sidecar": `
families: {d: {max_versions: 1}}
types: "d:_types"
rules:
- {name: item, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", segments: escape,
    cells: [{attrs: all, except: [pk, sk], to: "d:a/{attr}"}]}`,
	"wide row": `
families: {d: {max_versions: 1}, t: {max_versions: 1}}
rules:
- {name: item, match: {pk: "{p}", sk: "{s}"}, row: "{p}", segments: escape, types: "t:{s}",
    cells: [{attrs: all, except: [pk, sk], to: "d:{s}/{attr}"}]}`,
	"document": `preset: document`,
	"dynamo_json": `
families: {d: {max_versions: 1}}
rules:
- {name: item, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", segments: ordered,
    cells: [{attrs: all, except: [pk, sk], to: "d:{attr}", as: dynamo_json, null: empty}]}`,
}

func TestLosslessMappingsTurnBackIntoTheItem(t *testing.T) {
	for name, mapping := range losslessMappings {
		t.Run(name, func(t *testing.T) {
			p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, mapping)
			if ok, why := p.Lossless(); !ok {
				t.Fatalf("not lossless: %s", why)
			}
			rapid.Check(t, func(t *rapid.T) { turnBack(t, p, drawItem(t)) })
		})
	}
}

// drawItem draws an item with few attribute names, of which some are the columns of sidecars and
// constants.
func drawItem(t *rapid.T) change.Image {
	img := change.Image{{Name: "pk", Value: change.Value{Kind: change.KindString, S: text2(t, "pk") + "#"}},
		{Name: "sk", Value: change.Value{Kind: change.KindString, S: text2(t, "sk") + "s"}}}
	for _, n := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "m", "x", "b#", "c/d", "_types", "k", "other",
		"\x00", "1"}), 0, 5, rapid.ID[string]).Draw(t, "attributes") {
		img = append(img, change.Attr{Name: n, Value: drawValue(t, 0)})
	}
	return img
}

// turnBack fails unless an item that the mapping takes comes back from its main row; it returns
// whether it was taken.
func turnBack(t tb, p *Program, img change.Image) bool {
	t.Helper()
	rows, err := p.Project(img)
	if err != nil {
		return false
	}
	back, err := p.Unmap(img[:2], rows[0].Cells)
	if err != nil {
		t.Fatalf("unmap %s: %v", img.AppendJSON(nil), err)
	}
	if diff := cmp.Diff(string(img.AppendJSON(nil)), string(back.AppendJSON(nil))); diff != "" {
		t.Fatalf("unmap(map(item)) differs (-item +back):\n%s", diff)
	}
	return true
}

// drawRow draws a rule of one to three sources of any form, columns with and without filters, and a
// sidecar.
func drawRow(t *rapid.T) string {
	pick := func(label string, options ...string) string { return rapid.SampledFrom(options).Draw(t, label) }
	var cells []string
	for range rapid.IntRange(0, 2).Draw(t, "sources") {
		to := pick("to", "d:", "d:", "e:", "d:p/", "e:p/{s}/")
		filter := pick("filter", "", "", "", "|hex", "|lower", "|b64", "|hash(8)", "/x", "/{s}")
		cells = append(cells, strings.NewReplacer("TO", to, "F}", filter+"}", "/x}", "}/x", "/{s}}",
			"}/{s}").Replace(pick("source",
			`{map: m, to: "TO{keyF}", as: dynamo_json, null: empty}`,
			`{map: m, to: "TO{key}", otherwise: skip, as: dynamo_json}`,
			`{list: m, to: "TO{iF}", as: dynamo_json, null: empty}`,
			`{list: m, to: "TO{i|pad(3)}", as: dynamo_json, null: empty}`, `{list: m, to: "TO{i}", as: dynamo_json}`,
			`{set: m, to: "TO{memberF}"}`, `{set: m, to: "TO{member}", otherwise: "e:other"}`, `{attr: x, to: "TOx"}`,
			`{attr: x, to: "TO{x}"}`, `{attr: x, to: "TO{type}"}`,
			`{attr: x, to: "TOk", as: decimal}`, `{attr: x, to: "TOx", as: int64, fallback: f}`,
			`{attr: x, to: "TO{attrF}", as: text}`, `{attr: x, to: "TOx", ts: "{a}", ts_missing: skip}`,
			`{attr: x, to: "TOx", ts: "{a}", ts_missing: version}`, `{const: "1", to: "TOk"}`,
			`{attrs: [m, x], rename: {m: k}, to: "TO{attrF}"}`, `{attrs: [m], to: "TOm", as: dynamo_json}`,
			`{doc: {attrs: [m, x]}, to: "TOj"}`)))
	}
	except := pick("except", "pk, sk", "pk, sk", "pk, sk, m, x", "pk, sk, m, x", "pk, sk, x", "pk, sk, m, x, k",
		"pk, sk, _types")
	filter := pick("filter", "", "", "", "|lower", "|hex", "|hash(8)", "|revstr")
	cells = append(cells, strings.NewReplacer("EX", except, "F}", filter+"}").Replace(pick("rest",
		`{attrs: all, except: [EX], to: "d:{attrF}"}`, `{attrs: all, except: [EX], to: "d:{attrF}", as: dynamo_json}`,
		`{attrs: all, except: [EX], to: "d:{attr}", as: dynamo_json, null: empty}`,
		`{attrs: all, except: [EX], to: "d:{s}/{attrF}"}`, `{attrs: all, except: [EX], to: "d:{attr}/{x}"}`,
		`{attrs: all, except: [EX], to: "d:{path}", flatten: maps}`,
		`{attrs: all, except: [EX], to: "d:{attr}", null: empty}`,
		`{attrs: all, except: [EX], rename: {a: k}, to: "d:{attr}"}`, `{doc: {attrs: all, except: [EX]}, to: "d:j"}`,
		`{doc: all, to: "d:j", format: raw}`, `{doc: all, rename: {a: k}, to: "d:j"}`,
		`{attrs: all, except: [EX], to: "d:{attr}", ts: "{a}", ts_missing: skip}`)))
	return fmt.Sprintf("segments: %s\nnull: %s\nfamilies: {d: {max_versions: 1}, e: {max_versions: 1}, f: "+
		"{max_versions: 1}, t: {max_versions: 1}}\n%srules:\n- {name: r, match: {pk: \"{p}\", sk: \"{s}\"}, row: \"%s\", "+
		"cells: [%s], ignore: [\"*\"]}",
		pick("segments", "escape", "strict", "ordered"), pick("null", "omit", "empty"),
		pick("types", "", "types: \"t:_types\"\n", "types: \"t:{s}\"\n", "types: \"d:_types\"\n"),
		pick("row", "{p}#{s}", "{p}"), strings.Join(cells, ", "))
}

// TestWhatIsCalledLosslessIs draws mappings of every form: one that says that its rows can be
// turned back must do it with every item that it takes.
func TestWhatIsCalledLosslessIs(t *testing.T) {
	lossless, turned, items := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for range 8 {
			text := drawRow(t)
			m, problems := ParseMapping("m.yaml", []byte(text))
			if len(problems) > 0 {
				t.Fatalf("%v\n%s", problems, text)
			}
			p, _ := Compile(Table{Pipeline: "p", Source: "T", Target: "t", Schema: schema("pk:S", "sk:S"), Mapping: m})
			if p == nil {
				continue
			}
			if ok, _ := p.Lossless(); !ok {
				continue
			}
			lossless++
			defer func() {
				if t.Failed() {
					t.Log(text)
				}
			}()
			for range 6 {
				items++
				if turnBack(t, p, drawItem(t)) {
					turned++
				}
			}
		}
	})
	t.Logf("%d mappings lossless, %d of %d items turned back", lossless, turned, items)
	if lossless == 0 || turned*4 < items {
		t.Error("the test proves nothing")
	}
}

// TestColumnWithTheOldNameOfARenamedAttributeIsNotItsOwn: another entry writes it, in another
// encoding.
func TestColumnWithTheOldNameOfARenamedAttributeIsNotItsOwn(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, `
types: "t:_types"
families: {d: {max_versions: 1}, e: {max_versions: 1}, t: {max_versions: 1}}
rules: [{name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", cells: [
  {attrs: [m, x], rename: {m: k}, to: "e:{attr}"}, {attrs: [m], to: "e:m", as: dynamo_json},
  {attrs: all, except: [pk, sk], to: "d:{attr}"}]}]`)
	if ok, why := p.Lossless(); !ok {
		t.Fatal(why)
	}
	item := change.Image{
		{Name: "pk", Value: change.Value{Kind: change.KindString, S: "p"}},
		{Name: "sk", Value: change.Value{Kind: change.KindString, S: "s"}},
		{Name: "m", Value: change.Value{Kind: change.KindBool}},
	}
	if !turnBack(t, p, item) {
		t.Error("the item was not taken")
	}
}

func TestMappingsThatLoseSomethingSaySo(t *testing.T) {
	rest := `, {attrs: all, except: [pk, sk, m], to: "d:{attr}"}`
	for _, tt := range []struct{ cells, want string }{
		{`{attrs: all, except: [pk, sk], to: "d:{attr}", as: dynamo_json}`, ""},
		{`{set: m, to: "d:tag.{member}"}` + rest, "may write the same columns"},
		{`{const: "1", to: "d:kind"}, {attrs: all, except: [pk, sk], to: "d:{attr}"}`, "may write the same columns"},
		{`{map: m, to: "e:{key}", as: dynamo_json}` + rest, "members that are NULL leave no cell"},
		{`{map: m, to: "e:{key}", null: empty}` + rest, "the types of its members are not kept"},
		{`{map: m, to: "e:{key|b64}", as: dynamo_json, null: empty}` + rest, "does not show {key} as it is"},
		{`{list: m, to: "e:{i|pad(3)}", as: dynamo_json, null: empty}` + rest, ""},
		{`{list: m, to: "e:{i|revstr}", as: dynamo_json, null: empty}` + rest, "does not show {i} as it is"},
		{`{attrs: all, except: [pk, sk], to: "d:{attr|lower}"}`, "does not show {attr} as it is"},
		{`{attrs: all, except: [pk, sk], to: "d:{attr}/{x}"}`, "named by attributes"},
		{`{attrs: all, except: [pk, sk], to: "d:{attr}", ts: "{n}", ts_missing: skip}`, "leaves no cell"},
		{`{attrs: all, except: [pk, sk, m], to: "d:{attr}"}`, `attribute "m" is not written`},
		{`{attrs: [m], to: "d:{attr}"}`, "attributes that it does not name"},
		{`{attrs: all, except: [pk, sk], to: "old:{attr}"}`, "age away"},
		{`{attrs: all, except: [pk, sk], to: "d:{attr}", as: json}`, "as: json is not read back"},
		{`{attr: m, to: "d:m", as: int64, fallback: e}` + rest, ""},
		{`{attr: m, to: "all:m", ts: "{s|int}", cell_id: ts}` + rest, "several items share its column"},
	} {
		p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, `
types: "t:types"
families: {d: {max_versions: 1}, e: {max_versions: 1}, t: {max_versions: 1}, old: {max_age: 30d},
  all: {max_versions: all}}
rules: [{name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", cells: [`+tt.cells+`], ignore: [m]}]`)
		if ok, why := p.Lossless(); ok != (tt.want == "") || !strings.Contains(why, tt.want) {
			t.Errorf("%s: lossless %v, %q; want %q", tt.cells, ok, why, tt.want)
		}
	}
	for want, mapping := range map[string]string{
		"add `types: \"family:column\"`": `preset: default`,
		"`attrs: all`: the type sidecar may write the same columns; give one of them a family": "types: \"d:_types\"\n" +
			"families: {d: {}}\nrules:\n" +
			"- {name: r, match: {pk: \"{p}\", sk: \"{s}\"}, row: \"{p}#{s}\", cells: [{attrs: all, to: \"d:{attr}\"}]}",
		"its items are dropped": "families: {d: {}}\nrules:\n- {name: r, match: {pk: \"{p}\", sk: \"{s}\"}, drop: " +
			"true}",
		"tests more than key": "families: {d: {}}\nrules:\n- {name: r, match: {pk: \"{p}\", sk: \"{s}\", x: a}, " +
			"row: \"{p}#{s}\", cells: [{doc: all, to: \"d:j\"}]}",
		"another rule may write its c": "families: {d: {}}\nrules:\n- {name: r, match: {pk: \"{p}\", sk: \"{s}\"}, row: " +
			"\"{p}#{s}\", cells: [{doc: all, to: \"d:j\"}], may_share_cells_with: [r]}",
	} {
		if ok, why := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, mapping).Lossless(); ok ||
			!strings.Contains(why, want) {
			t.Errorf("lossless %v, %q; want %q", ok, why, want)
		}
	}
}

// TestColumnBesideAListIsNoElementOfIt: it has as many digits as no position has.
func TestColumnBesideAListIsNoElementOfIt(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, `
types: "t:types"
null: empty
families: {d: {max_versions: 1}, e: {max_versions: 1}, t: {max_versions: 1}}
rules:
- name: r
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}#{s}"
  cells:
  - {list: m, to: "e:{i|pad(3)}", as: dynamo_json}
  - {attr: x, to: "e:0001", as: dynamo_json}
  - {attrs: all, except: [pk, sk, m, x], to: "d:{attr}"}`)
	if ok, why := p.Lossless(); !ok {
		t.Fatal(why)
	}
	if !turnBack(t, p, image(t, []byte(`{"pk":{"S":"1"},"sk":{"S":"2"},"m":{"L":[{"S":"a"}]},"x":{"S":"b"}}`))) {
		t.Error("refused")
	}
}

// TestEachRuleSaysWhetherItsRowsTurnBack: one rule of a file may, another may not.
func TestEachRuleSaysWhetherItsRowsTurnBack(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, `
families: {d: {max_versions: 1}, x: {max_versions: 1}}
rules:
- name: whole
  match: {pk: "{p}", sk: "A#{s}"}
  row: "a#{p}#{s}"
  cells: [{doc: all, to: "d:j"}]
  index: [{name: by, row: "x#{v}#{p}#{s}", cells: [{const: "", to: "x:k"}]}]
- {name: part, match: {pk: "{p}", sk: "{s}"}, row: "b#{p}#{s}", cells: [{attrs: [v], to: "d:{attr}"}]}`)
	var got []string
	for _, r := range p.Report() {
		got = append(got, fmt.Sprintf("%s %v %s", r.Name, r.Lossless, r.WhyNot))
	}
	want := []string{"rule whole true ", "index by of rule whole false an index row: items are turned back from their " +
		"main row", "rule part false attributes that it does not name are not written"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	img := image(t, []byte(`{"pk":{"S":"1"},"sk":{"S":"A#2"},"v":{"S":"x"},"w":{"SS":["x"]}}`))
	if !turnBack(t, p, img) {
		t.Error("refused")
	}
}

// TestFilteredColumnsDoNotDetermineTheirItem: a filter cannot be inverted; a resync learns that
// beforehand.
func TestFilteredColumnsDoNotDetermineTheirItem(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, `
families: {d: {max_versions: 1}}
rules: [{name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}", cells: [{list: m, to: "d:{s}/{i|pad(3)}"}]}]`)
	if ok, why := p.Resyncable(); ok || !strings.Contains(why, "does not show") {
		t.Errorf("resyncable %v, %q", ok, why)
	}
	owned, err := p.Owned(image(t, []byte(`{"pk":{"S":"a"},"sk":{"S":"b"}}`)), []byte("a"))
	if err != nil {
		t.Fatal(err)
	}
	if owned.Has("d", []byte("b/001")) || !owned.MayHave("d") || owned.MayHave("e") {
		t.Error("a column that does not show its item is not told from those of others")
	}
}

// TestRawDocumentsAreTheWholeImage, also where attributes of global tables are left out elsewhere:
// a projection that left them out would differ from what changes write.
func TestRawDocumentsAreTheWholeImage(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S"), StripGlobal: true}, `
families: {d: {max_versions: 1}}
rules: [{name: r, match: {pk: "{p}"}, row: "{p}", cells: [{doc: all, to: "d:j", format: raw},
  {attrs: all, to: "d:a/{attr}"}]}]`)
	item := `{"aws:rep:x":{"S":"eu"},"pk":{"S":"1"}}`
	rows, err := p.Project(image(t, []byte(item)))
	if err != nil {
		t.Fatal(err)
	}
	if c := rows[0].Cells; len(c) != 2 || string(c[0].Value) != item || !c[0].RawJSON || c[1].RawJSON {
		t.Errorf("cells %+v", c)
	}
}

func TestTwoKeysNeverShareACell(t *testing.T) {
	mappings := []string{"", `preset: document`, losslessMappings["natural with sidecar"], losslessMappings["wide row"],
		losslessMappings["dynamo_json"], `
families: {d: {max_versions: 1}}
rules:
- {name: item, match: {pk: "{p}", sk: "{s}"}, row: "{s}/x/{p}",
    cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]}`}
	for _, mapping := range mappings {
		p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, mapping)
		part := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "#", "%", "/", "x", "23", "\x00", "\x00\x01", "\xff"}), 1, 4)
		rapid.Check(t, func(t *rapid.T) {
			draw := func(n string) change.Image {
				pk, sk := strings.Join(part.Draw(t, n+" pk"), ""), strings.Join(part.Draw(t, n+" sk"), "")
				return change.Image{{Name: "pk", Value: change.Value{Kind: change.KindString, S: pk}},
					{Name: "sk", Value: change.Value{Kind: change.KindString, S: sk}},
					{Name: "v", Value: change.Value{Kind: change.KindString, S: "v"}}}
			}
			a, b := draw("a"), draw("b")
			ra, erra := p.Project(a)
			rb, errb := p.Project(b)
			same := string(a.AppendJSON(nil)) == string(b.AppendJSON(nil))
			if same || erra != nil || errb != nil {
				return
			}
			for _, x := range ra[0].Cells {
				if string(ra[0].Key) == string(rb[0].Key) && slices.ContainsFunc(rb[0].Cells,
					func(y Cell) bool { return x.Family == y.Family && string(x.Qualifier) == string(y.Qualifier) }) {
					t.Fatalf("%v and %v share cell %q %s:%q", a, b, ra[0].Key, x.Family, x.Qualifier)
				}
			}
		})
	}
}
