package transform

import (
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
		s := rapid.SampledFrom([]string{"0", "1", "-1.5", "12345678901234567890123456789012345678", "1E+100", "-7.25E-120", "100", "0.001"}).Draw(t, "number")
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
		for _, s := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"", "a", "$n", "#"}), 1, 3, rapid.ID[string]).Draw(t, "ss") {
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
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "$n", "$$x", "b.c", ""}), 0, 3, rapid.ID[string]).Draw(t, "names") {
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
- {name: item, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", segments: escape, cells: [{attrs: all, except: [pk, sk], to: "d:a/{attr}"}]}`,
	"wide row": `
families: {d: {max_versions: 1}, t: {max_versions: 1}}
rules:
- {name: item, match: {pk: "{p}", sk: "{s}"}, row: "{p}", segments: escape, types: "t:{s}", cells: [{attrs: all, except: [pk, sk], to: "d:{s}/{attr}"}]}`,
	"document": `preset: document`,
	"dynamo_json": `
families: {d: {max_versions: 1}}
rules:
- {name: item, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", segments: ordered, cells: [{attrs: all, except: [pk, sk], to: "d:{attr}", as: dynamo_json, null: empty}]}`,
}

func TestLosslessMappingsTurnBackIntoTheItem(t *testing.T) {
	for name, mapping := range losslessMappings {
		t.Run(name, func(t *testing.T) {
			p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, mapping)
			if ok, why := p.Lossless(); !ok {
				t.Fatalf("not lossless: %s", why)
			}
			rapid.Check(t, func(t *rapid.T) {
				img := change.Image{{Name: "pk", Value: change.Value{Kind: change.KindString, S: text2(t, "pk") + "#"}}, {Name: "sk", Value: change.Value{Kind: change.KindString, S: text2(t, "sk") + "s"}}}
				for _, n := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b#", "c/d", "_types", "\x00"}), 0, 4, rapid.ID[string]).Draw(t, "attributes") {
					img = append(img, change.Attr{Name: n, Value: drawValue(t, 0)})
				}
				rows, err := p.Project(img)
				if err != nil {
					t.Fatal(err)
				}
				back, err := p.Unmap(img[:2], rows[0].Cells)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(img.AppendJSON(nil)), string(back.AppendJSON(nil))); diff != "" {
					t.Fatalf("unmap(map(item)) differs (-item +back):\n%s", diff)
				}
			})
		})
	}
}

func TestMappingsThatLoseSomethingSaySo(t *testing.T) {
	for want, mapping := range map[string]string{
		"types are not kept":          `preset: default`,
		"does not keep the type":      `preset: google`,
		"attributes that it does not": "families: {d: {}}\nrules:\n- {name: r, match: {pk: \"{p}\", sk: \"{s}\"}, row: \"{p}#{s}\", cells: [{attr: a, to: \"d:a\", as: int64}]}",
	} {
		tab := Table{Schema: schema("pk:S", "sk:S")}
		if strings.Contains(mapping, "google") {
			tab.Schema = schema("pk:S")
		}
		if ok, why := compiled(t, tab, mapping).Lossless(); ok || !strings.Contains(why, want) && !strings.Contains(why, "cannot be put together") {
			t.Errorf("lossless %v, %q; want %q", ok, why, want)
		}
	}
}

func TestTwoKeysNeverShareACell(t *testing.T) {
	mappings := []string{"", `preset: document`, losslessMappings["natural with sidecar"], losslessMappings["wide row"], losslessMappings["dynamo_json"], `
families: {d: {max_versions: 1}}
rules:
- {name: item, match: {pk: "{p}", sk: "{s}"}, row: "{s}/x/{p}", cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]}`}
	for _, mapping := range mappings {
		p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, mapping)
		part := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "#", "%", "/", "x", "23", "\x00", "\x00\x01", "\xff"}), 1, 4)
		rapid.Check(t, func(t *rapid.T) {
			draw := func(n string) change.Image {
				pk, sk := strings.Join(part.Draw(t, n+" pk"), ""), strings.Join(part.Draw(t, n+" sk"), "")
				return change.Image{{Name: "pk", Value: change.Value{Kind: change.KindString, S: pk}}, {Name: "sk", Value: change.Value{Kind: change.KindString, S: sk}}, {Name: "v", Value: change.Value{Kind: change.KindString, S: "v"}}}
			}
			a, b := draw("a"), draw("b")
			ra, erra := p.Project(a)
			rb, errb := p.Project(b)
			same := string(a.AppendJSON(nil)) == string(b.AppendJSON(nil))
			if same || erra != nil || errb != nil {
				return
			}
			for _, x := range ra[0].Cells {
				if string(ra[0].Key) == string(rb[0].Key) && slices.ContainsFunc(rb[0].Cells, func(y Cell) bool { return x.Family == y.Family && string(x.Qualifier) == string(y.Qualifier) }) {
					t.Fatalf("%v and %v share cell %q %s:%q", a, b, ra[0].Key, x.Family, x.Qualifier)
				}
			}
		})
	}
}
