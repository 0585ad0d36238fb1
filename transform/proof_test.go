package transform

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/ir"
)

// mapsOf draws a mapping that is made to go wrong: templates over few letters, all segment modes,
// separators, filters, captures, index rows, and every form of emitter that writes a column of its
// own.
func mapsOf(t *rapid.T, sortType string) string {
	pick := func(o ...string) string { return rapid.SampledFrom(o).Draw(t, "pick") }
	chance := func(of int) bool { return rapid.IntRange(1, of).Draw(t, "chance") == 1 }
	d := pick("#", "#", "-", ".", "/")
	var sb strings.Builder
	fmt.Fprintf(&sb, "segments: %s\ndelimiter: %q\nfamilies: {a: {max_versions: 1}, b: {max_versions: 1}, h: "+
		"{max_versions: 9}}\nrules:\n", pick("strict", "strict", "escape", "ordered"), d)
	for i := range rapid.IntRange(1, 2).Draw(t, "rules") {
		pk := pick("{p}", "{p}", "{p:seg}", "{p:d}", "a{p}", "{p:seg}"+d+"{q}", "{q}"+d+"{p}", "{q:seg}"+d+"{p:d}")
		sk := pick("{s}", "{s}", "K#{s}", "K#{s:d}", "K#{s:seg}#{r}", "L#{s}", "{s:d}", "{=p}", "{s:seg}")
		if sortType == "N" {
			sk = pick("{s}", "{s}", "{s:d}", "-{s}")
		}
		known := []string{"p", "s"}
		for name, pattern := range map[string]string{"q": pk, "r": sk} {
			if strings.Contains(pattern, "{"+name) {
				known = append(known, name)
			}
		}
		slices.Sort(known)
		if sk == "{=p}" {
			known = slices.DeleteFunc(known, func(n string) bool { return n == "s" })
		}
		template := func() string {
			names := rapid.Permutation(known).Draw(t, "names")
			if chance(4) {
				names = names[:1]
			}
			if chance(4) {
				names = append(names, "site")
			}
			out := pick("", "", "", "x"+d, "y-", "a", "%2D", "1")
			for j, n := range names {
				if j > 0 {
					out += pick(d, d, d, "-", "::", "", "a", "1", "%", "0", d+d)
				}
				out += "{" + n + pick("", "", "", "", "|hex", "|b64", "|revstr", "|domain", "|pad(3)", "|ordnum", "|rev64",
					"|lower|hex", "|hex|revstr", "|revms(999)", "|int", "|s_ms") + "}"
			}
			return out
		}
		fmt.Fprintf(&sb, "- name: r%d\n  match: {pk: %q, sk: %q%s}\n  row: %q\n  cells:\n", i, pk, sk,
			pick("", "", ", site: {exists: true}", ", site: {equals: a}"), template())
		for range rapid.IntRange(1, 2).Draw(t, "cells") {
			column, family := pick("v", "{attr}", "{attr}", template(), template()+"/{attr}", "{attr}-"+template()),
				pick("a", "b")
			fixed := strings.ReplaceAll(column, "{attr}", "v")
			fmt.Fprintf(&sb, "  - %s\n", pick(
				fmt.Sprintf(`{attrs: [v, w], to: "%s:%s"}`, family, column),
				fmt.Sprintf(`{attr: v, to: "%s:%s"}`, family, column),
				fmt.Sprintf(`{attrs: all, except: [pk, sk], to: "%s:%s"}`, family, column),
				fmt.Sprintf(`{attr: v, to: "%s:%s", as: int64, fallback: %s}`, family, column, pick("a", "b", "h")),
				fmt.Sprintf(`{map: m, to: "%s:%s{key}", otherwise: "%s:%s"}`, family, fixed, pick("a", "b"),
					pick(fixed, template())),
				fmt.Sprintf(`{set: m, to: "%s:%s/{member}", otherwise: skip}`, family, fixed),
				fmt.Sprintf(`{attr: v, to: "h:%s", ts: "%s", cell_id: ts}`, column,
					pick("{s}", "{s|int}", "{p}", "{s|s_ms}", "1{s}", "{s}0", "{s|rev64}", "{s|revms(99999)}", "{p|int}{s|int}"))))
		}
		if chance(4) {
			fmt.Fprintf(&sb, "  index:\n  - {name: x, match: {site: \"{t}\"}, row: \"%s\", cells: [{attr: v, to: \"%s:%s\"}]}\n",
				pick(template(), "x{t}"+d+template()), pick("a", "b"), pick("v", template()))
		}
	}
	return sb.String()
}

var nasty = map[string][]string{
	"pk": {"a", "b", "a#b", "a-", "-", "A", "ab", "#", "a#", "%23", "a%", "1", "01", "a.b", "b.a", "x"},
	"S":  {"a", "b", "1", "01", "K#1", "K#01", "K#a", "K#a#b", "L#1", "K#", "-", "a-b", "#", "A", "a.b"},
	"N":  {"1", "-1", "0", "1.5", "-1.5", "10", "1000000000000", "100", "-10", "5"},
}

// TestWhatCompilesKeepsItemsApart: with no acknowledgement, no two items have a cell in common, and
// no row of class R belongs to two items.
func TestWhatCompilesKeepsItemsApart(t *testing.T) {
	taken := 0
	for _, sortType := range []string{"S", "N"} {
		rapid.Check(t, func(t *rapid.T) {
			text := mapsOf(t, sortType)
			m, problems := ParseMapping("m.yaml", []byte(text))
			if len(problems) > 0 {
				return
			}
			p, _ := Compile(Table{Pipeline: "p", Source: "T", Target: "t", Schema: schema("pk:S", "sk:"+sortType), Mapping: m})
			if p == nil {
				return
			}
			taken++
			for _, clash := range clashes(t, p, sortType) {
				t.Errorf("%s\n%s", clash, text)
			}
		})
	}
	if taken == 0 {
		t.Error("no mapping compiled: the test proves nothing")
	}
}

func clashes(t *rapid.T, p *Program, sortType string) (found []string) {
	cells, rows := map[string]string{}, map[string]string{}
	for _, pk := range nasty["pk"] {
		for n, sk := range nasty[sortType] {
			item := fmt.Sprintf(`{"pk":{"S":%q},"sk":{%q:%q},"v":{"S":"1"},"w":{"S":"2"},"v-":{"S":"3"},"m":%s}`, pk, sortType,
				sk,
				[]string{`{"M":{"k":{"S":"x"},"k/":{"S":"y"}}}`, `{"SS":["1","b"]}`, `{"S":"text"}`}[n%3])
			if n%2 == 0 {
				item = item[:len(item)-1] + fmt.Sprintf(`,"site":{"S":%q}}`, pk)
			}
			projected, err := p.Project(image(t, []byte(item)))
			if refused := (*Refusal)(nil); errors.As(err, &refused) {
				continue
			} else if err != nil {
				t.Fatalf("%s: %v", item, err)
			}
			for _, r := range projected {
				owner := pk + "|" + sk
				if other, taken := rows[string(r.Key)]; taken && other != owner && r.Class == ClassR {
					found = append(found, fmt.Sprintf("row %q of class R belongs to %s and %s", r.Key, other, owner))
				}
				if r.Class == ClassR {
					rows[string(r.Key)] = owner
				}
				for _, c := range r.Cells {
					at := fmt.Sprintf("%q %s:%q %v %d", r.Key, c.Family, c.Qualifier, c.Mapped, c.Time)
					if other, taken := cells[at]; taken {
						found = append(found, fmt.Sprintf("cell %s of %s and %s", at, other, owner))
					}
					cells[at] = owner
				}
			}
		}
	}
	return found
}

// TestMappingsThatWouldMixItemsAreRefused: each of these mixed or lost cells of two items, or of
// one.
func TestMappingsThatWouldMixItemsAreRefused(t *testing.T) {
	wide := func(cells string) string {
		return `- {name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}", cells: [` + cells + `]}`
	}
	own := func(cells string) string {
		return `- {name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", cells: [` + cells + `]}`
	}
	for name, c := range map[string]struct{ code, rules string }{
		"the other column of two items": {"not_injective",
			wide(`{map: m, to: "d:{s}/{key}", otherwise: "d:other"}`)},
		"the fallback of another rule's items": {"shared_cell",
			"- {name: a, match: {pk: \"{p}\", sk: \"A#{s}\"}, row: \"{p}\", cells: [{attr: v, to: \"d:{s}\", as: int64, " +
				"fallback: e}]}\n" +
				"- {name: b, match: {pk: \"{p}\", sk: \"B#{s}\"}, row: \"{p}\", cells: [{attr: v, to: \"e:{s}\"}]}"},
		"a fallback beside a fixed column": {"collision",
			own(`{attr: v, to: "d:x", as: int64, fallback: e}, {attr: w, to: "e:x"}`)},
		"a fallback that merges": {"aggregate", own(`{attr: v, to: "d:x", as: int64, fallback: top}`)},
		"types that merge": {"aggregate",
			`- {name: r, types: "top:t", match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", cells: [{attr: v, to: "d:x"}]}`},
		"an archive that merges": {"aggregate",
			`- {name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", cells: [{attr: v, to: "d:x"}],
    on_ttl_expiry: "archive:top"}`},
		"an archive among the data": {"shared_cell",
			`- {name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", cells: [{attr: v, to: "d:x"}],
    on_ttl_expiry: "archive:d"}`},
		"another column where it vanishes": {"expires_by_timestamp",
			own(`{map: m, to: "d:{key}", otherwise: "gone:m"}`)},
		"one item's key, another's key and text": {"not_injective",
			wide(`{attr: v, to: "d:{s}"}, {attr: w, to: "d:{s}#text"}`)},
		"one item's key, another's map": {"not_injective",
			wide(`{attr: v, to: "d:{s}"}, {map: m, to: "d:{s}/{key}"}`)},
		"two clocks of one column": {"not_injective",
			wide(`{attr: v, to: "h:x", ts: "{s|int}", cell_id: ts}, {attr: w, to: "h:x", ts: "1{s|int}", cell_id: ts}`)},
		"a time that forgets zeros": {"not_injective", wide(`{attr: v, to: "h:x", ts: "{s}", cell_id: ts}`)},
		"a time of two numbers": {"not_injective",
			`- {name: r, match: {pk: "{p}", sk: "{a:d}-{b:d}"}, row: "{p}",
    cells: [{attr: v, to: "h:x", ts: "{a|int}0{b|int}", cell_id: ts}]}`},
		"times in a family that keeps one":   {"gc", wide(`{attr: v, to: "d:x", ts: "{s|int}", cell_id: ts}`)},
		"leaves in one column":               {"to", own(`{attr: v, flatten: maps, to: "d:v"}`)},
		"a name that is taken":               {"collision", own(`{attrs: [v, w], rename: {v: w}, to: "d:{attr}"}`)},
		"two names that become one":          {"collision", own(`{attrs: all, rename: {v: x, w: x}, to: "d:{attr}"}`)},
		"what is left out and named":         {"option", own(`{attrs: [v, w], except: [w], to: "d:{attr}"}`)},
		"a version and a time in one column": {"collision", own(`{attr: v, to: "d:x"}, {attr: w, to: "d:x", ts: "{n}"}`)},
		"eight digits of a hash": {"not_injective",
			`- {name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p|hash(8)}#{s}", cells: [{attr: v, to: "d:x"}]}`},
		"an escape that is another's text": {"shared_cell",
			"- {name: neg, match: {pk: \"-{n:d}\", sk: \"{s}\"}, row: \"%2D5-{n}-{s}\", cells: [{attr: v, to: \"d:v\"}]}\n- " +
				"{name: b, match: {pk: \"{x}\", sk: \"{s}\"}, row: \"{x}-{s}\", cells: [{attr: v, to: \"d:v\"}]}"},
	} {
		t.Run(name, func(t *testing.T) {
			m, problems := ParseMapping("m.yaml", []byte("segments: escape\nfamilies: {d: {max_versions: 1}, e: "+
				"{max_versions: 1}, h: {max_versions: 9}, top: {aggregate: max}, gone: {max_age: 1s, expires_by_timestamp: "+
				"true}}\nrules:\n"+c.rules))
			_, more := Compile(Table{Pipeline: "p", Source: "T", Target: "t", Schema: schema("pk:S", "sk:S"), Mapping: m})
			problems = append(problems, more...)
			if !slices.ContainsFunc(problems, func(p Problem) bool {
				return p.Severity == "error" && p.Code == c.code &&
					p.Hint != ""
			}) {
				t.Errorf("no error %q with a hint in %v", c.code, problems)
			}
		})
	}
}

// TestTwoTablesMayNotArchiveIntoOneFamily: the columns are named by keys, which two tables may have
// in common.
func TestTwoTablesMayNotArchiveIntoOneFamily(t *testing.T) {
	var tables []Table
	for _, name := range []string{"A", "B"} {
		m, _ := ParseMapping(name, []byte(fmt.Sprintf(`
families: {d: {max_versions: 1}, arch: {max_age: 30d}}
rules: [{name: r, match: {pk: "{p}"}, row: "%s#{p}", cells: [{attr: v, to: "d:v"}],
  on_ttl_expiry: "archive:arch"}]`, name)))
		tables = append(tables, Table{Pipeline: "p", Source: name, Target: "t", Schema: schema("pk:S"), Mapping: m})
	}
	_, problems := CompileAll(tables)
	if !slices.ContainsFunc(problems, func(p Problem) bool {
		return p.Code == "shared_cell" && strings.Contains(p.What, "archives into family arch")
	}) {
		t.Errorf("problems %v", problems)
	}
}

// TestIndexSeesNothingOfItsNeighbour: what an index captures belongs to it, not to the next index
// or the next item.
func TestIndexSeesNothingOfItsNeighbour(t *testing.T) {
	const text = `
families: {d: {max_versions: 1}, x: {max_versions: 1}}
rules:
- name: r
  match: {pk: "{p}", sk: "{s}"}
  row: "m#{p}#{s}"
  cells: [{attr: v, to: "d:v"}]
  index:
  - {name: one, match: {state: "{st}"}, row: "x1#{st}#{p}#{s}", cells: [{const: "1", to: "x:k"}]}
  - {name: two, match: {kind: "{st}"}, row: "x2#{st}#{p}#{s}", cells: [{const: "1", to: "x:k"}]}`
	p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, text)
	w := new(Write)
	for _, item := range []struct{ body, want string }{
		{`"state":{"S":"open"}`, "m#a#b x1#open#a#b"}, {`"kind":{"S":"big"}`, "m#a#b x2#big#a#b"}, {`"v":{"S":"1"}`, "m#a#b"},
		{`"state":{"S":"shut"},"kind":{"S":"small"}`, "m#a#b x1#shut#a#b x2#small#a#b"},
	} {
		if err := p.Change(new(change.Decoder), step(t, p, 1, "", `{"pk":{"S":"a"},"sk":{"S":"b"},`+item.body+`}`),
			w); err != nil {
			t.Fatal(err)
		}
		var rows []string
		for _, r := range w.Rows {
			rows = append(rows, string(r.Key))
		}
		if got := strings.Join(rows, " "); got != item.want {
			t.Errorf("rows %q, want %q", got, item.want)
		}
	}
	m, problems := ParseMapping("m.yaml", []byte(strings.Replace(text, `match: {kind: "{st}"}, `, "", 1)))
	if p, _ := Compile(Table{Source: "T", Target: "t", Schema: schema("pk:S", "sk:S"), Mapping: m}); p != nil &&
		len(problems) == 0 && !slices.Contains(p.prog.Rules[0].Plans[2].Row.Attrs, "st") {
		t.Error("the second index reads what the first one captured")
	}
}

// TestColumnOfAMissingAttributeIsLeftOut: and the rest of the item is written.
func TestColumnOfAMissingAttributeIsLeftOut(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S")}, `
families: {d: {max_versions: 1}}
rules: [{name: r, match: {pk: "{p}"}, row: "{p}", cells: [{attr: v, to: "d:v"}, {attr: w, to: "d:{site}/w"}]}]`)
	got := cellsOf(t, p, `{"pk":{"S":"a"},"v":{"S":"1"},"w":{"S":"2"}}`)
	if len(got["a"]) != 1 || got["a"]["d:v"] != "1" {
		t.Errorf("cells %v", got)
	}
}

// TestOnlyWholeNumbersExpire: DynamoDB never deletes an item whose attribute is of another type.
func TestOnlyWholeNumbersExpire(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S")}, `
families: {m: {max_age: 1s, expires_by_timestamp: true}}
rules: [{name: r, match: {pk: "{p}"}, row: "{p}",
  cells: [{attr: v, to: "m:v", ts: "{exp|s_ms}", ts_missing: never}], ignore: [exp]}]`)
	for value, want := range map[string]int64{`{"N":"1700000000"}`: 1700000000000, `{"N":"1.7E9"}`: 1700000000000,
		`{"S":"1700000000"}`: ir.NeverExpires, `{"N":"1700000000.5"}`: ir.NeverExpires,
		`{"N":"-1"}`: ir.NeverExpires, `{"M":{}}`: ir.NeverExpires, `{"NULL":true}`: ir.NeverExpires} {
		rows, err := p.Project(image(t, []byte(`{"pk":{"S":"a"},"v":{"S":"x"},"exp":`+value+`}`)))
		if err != nil || rows[0].Cells[0].Time != want {
			t.Errorf("%s: %v, %v, want %d", value, rows, err, want)
		}
	}
}

// TestRenamedAttributeOfADocumentIsNoSecondOne: a document with one name twice has lost an
// attribute.
func TestRenamedAttributeOfADocumentIsNoSecondOne(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S")}, `
families: {d: {max_versions: 1}}
rules: [{name: r, match: {pk: "{p}"}, row: "{p}", cells: [{doc: all, rename: {a: b}, to: "d:j"}]}]`)
	refused := (*Refusal)(nil)
	if _, err := p.Project(image(t, []byte(`{"pk":{"S":"x"},"a":{"S":"1"},"b":{"S":"2"}}`))); !errors.As(err, &refused) ||
		refused.Code != "collision" {
		t.Errorf("error %v", err)
	}
}

// TestEntriesThatWriteOtherAttributesDoNotCollide: {attr} is the name of the entry's own attribute,
// and in a document or a constant none.
func TestEntriesThatWriteOtherAttributesDoNotCollide(t *testing.T) {
	for _, cells := range []string{
		`{attr: x, to: "d:{attr}"}, {attr: y, to: "d:{attr}"}`,
		`{attr: x, to: "d:{attr}__{type}"}, {attr: y, to: "d:{attr}__{type}"}`,
		`{attr: x, to: "d:{attr}"}, {attrs: [y], to: "d:{attr}"}`,
		`{const: "1", to: "d:c{attr}"}, {attrs: [x, y], to: "d:{attr}"}`,
		`{const: "1", to: "d:{attr}"}, {attrs: [x, y], to: "d:{attr}"}`,
	} {
		p := compiled(t, Table{Schema: schema("pk:S")}, `
families: {d: {max_versions: 1}}
rules: [{name: r, match: {pk: "{p}"}, row: "{p}", cells: [`+cells+`]}]`)
		row := cellsOf(t, p, `{"pk":{"S":"a"},"x":{"S":"1"},"y":{"S":"2"}}`)["a"]
		if row["d:x"]+row["d:x__S"] != "1" || row["d:y"]+row["d:y__S"] != "2" || len(row) != 2 {
			t.Errorf("%s: %v", cells, row)
		}
	}
}

// TestOwnedKnowsTheOtherColumn: a resync deletes what the item may have left there.
func TestOwnedKnowsTheOtherColumn(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, `
families: {d: {max_versions: 1}, e: {max_versions: 1}}
rules: [{name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}",
  cells: [{map: m, to: "d:{s}/{key}", otherwise: "e:{s}"}]}]`)
	owned, err := p.Owned(image(t, []byte(`{"pk":{"S":"x"},"sk":{"S":"a"}}`)), []byte("x"))
	if ok, why := p.Resyncable(); err != nil || !ok {
		t.Fatal(err, why)
	}
	for column, want := range map[string]bool{"d:a/k": true, "e:a": true, "e:b": false, "d:b/k": false, "d:a": false} {
		family, qualifier, _ := strings.Cut(column, ":")
		if got := owned.Has(family, []byte(qualifier)); got != want {
			t.Errorf("%s is owned: %v", column, got)
		}
	}
}

// TestSensibleMappingsAreNotRefused: what these say is provable, and was refused by proofs that
// looked less closely.
func TestSensibleMappingsAreNotRefused(t *testing.T) {
	for name, c := range map[string]struct {
		class string
		rules string
	}{
		"a typed column beside the rest, behind digits of one length": {"D",
			`- {name: r, match: {pk: "{d}", sk: "{ms:d}"}, row: "{d}",
    cells: [{attr: temp, to: "d:{ms|pad(13)}/temp", as: int64},
    {attrs: all, except: [pk, sk, temp], to: "d:{ms|pad(13)}/{attr}"}]}`},
		"behind a part without the delimiter": {"D",
			`- {name: r, match: {pk: "{p}", sk: "{s:seg}"}, row: "{p}",
    cells: [{attr: price, to: "d:{s}#price"}, {attrs: all, except: [pk, sk, price], to: "d:{s}#{attr}"}]}`},
		"behind digits": {"D",
			`- {name: r, match: {pk: "{p}", sk: "{n:d}"}, row: "{p}",
    cells: [{attr: price, to: "d:{n}/price"}, {attrs: all, except: [pk, sk, price], to: "d:{n}/{attr}"}]}`},
		"with escapes": {"D",
			`- {name: r, segments: escape, match: {pk: "{p}", sk: "{s}"}, row: "{p}",
    cells: [{attr: price, to: "d:{s}/price"}, {attrs: all, except: [pk, sk, price], to: "d:{s}/{attr}"}]}`},
		"named attributes beside members": {"K", `- {name: chat, match: {pk: "{c}", sk: "META"}, row: "{c}",
    cells: [{attrs: [name, topic], to: "d:{attr}"}]}
- {name: member, match: {pk: "{c}", sk: "MEMBER#{u}"}, row: "{c}", cells: [{attr: role, to: "d:member#{u}"}]}`},
		"kinds distinguished by an attribute": {"R", `- {name: customer, match: {Type: {equals: Customer}}, row: "{pk}#{sk}",
    cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]}
- {name: order, match: {Type: {equals: Order}}, row: "{pk}#{sk}",
    cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, "families: {d: {max_versions: 1}}\nrules:\n"+c.rules)
			for _, r := range p.Report() {
				if r.Class != c.class {
					t.Errorf("%s is of class %s, want %s: %s", r.Name, r.Class, c.class, r.Why)
				}
			}
		})
	}
}

// TestRowsThatMayBeTheSameHaveOneGuard: an item that passes from one rule to the other finds its
// own marker.
func TestRowsThatMayBeTheSameHaveOneGuard(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, `
families: {d: {max_versions: 1}, top: {aggregate: max}}
rules:
- {name: a, match: {kind: {equals: a}}, row: "{pk}#{sk}", cells: [{attr: v, to: "d:v"}]}
- {name: b, match: {kind: {equals: b}}, row: "{pk}#{sk}", cells: [{attr: v, to: "top:v", as: int64, ts: "0"}]}
- {name: c, match: {kind: {equals: c}}, row: "c#{pk}#{sk}", owns: cells, cells: [{attr: w, to: "d:w"}]}`)
	if r := p.Report(); r[0].Class == "R" || r[1].Class == "R" {
		t.Errorf("classes %s and %s", r[0].Class, r[1].Class)
	}
	// Without rule c only the guard is in the way: a and b give one row to one item.
	p = compiled(t, Table{Schema: schema("pk:S", "sk:S")}, `
families: {d: {max_versions: 1}, top: {aggregate: max}}
rules:
- {name: a, match: {kind: {equals: a}}, row: "{pk}#{sk}", cells: [{attr: v, to: "d:v"}]}
- {name: b, match: {kind: {equals: b}}, row: "{pk}#{sk}", cells: [{attr: v, to: "top:v", as: int64, ts: "0"}]}`)
	if r := p.Report(); r[0].Class == "R" || !strings.Contains(r[0].Why, "rule b can produce the same row") {
		t.Errorf("rule a: class %s, %s", r[0].Class, r[0].Why)
	}
}

// TestFixedColumnWithBracesIsComparedAsItIsWritten: what is left out by name is the attribute, not
// the template's text.
func TestFixedColumnWithBracesIsComparedAsItIsWritten(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S")}, `
families: {d: {max_versions: 1}}
rules: [{name: r, match: {pk: "{p}"}, row: "{p}", cells: [{attr: v, to: "d:{{a}}"},
  {attrs: all, except: [pk, v, "{{a}}"], to: "d:{attr}"}], ignore: ["*"]}]`)
	refused := (*Refusal)(nil)
	if rows, err := p.Project(image(t, []byte(`{"pk":{"S":"x"},"v":{"S":"1"},"{a}":{"S":"2"}}`))); !errors.As(err,
		&refused) || refused.Code != "collision" {
		t.Errorf("rows %v, error %v", rows, err)
	}
}

// TestAllErrorsOfARuleAreNamedAtOnce: a row, a condition and columns with mistakes, in one look.
func TestAllErrorsOfARuleAreNamedAtOnce(t *testing.T) {
	table := Table{Source: "T", Target: "t", Schema: schema("pk:S", "sk:S")}
	problems := problemsOf(t, table, `families: {d: {max_versions: 1}}
rules:
- name: r
  match: {pk: "{p", sk: "{s}"}
  row: "{s|nonsense}"
  when: "item.x =="
  cells: [{attr: v, to: "x:v"}, {attr: w, to: "d"}, {attr: y, to: "d:{s|nonsense}"}]
`)
	got := map[string]int{}
	for _, p := range problems {
		got[p.Code]++
	}
	if got["pattern"] != 1 || got["when"] != 1 || got["family"] != 1 || got["to"] != 1 || got["template"] != 2 {
		t.Errorf("problems %v: %v", got, problems)
	}
}
