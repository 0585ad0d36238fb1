package transform

import (
	"strings"
	"testing"
)

// TestBackReferencesToOtherPartsAreOtherPatterns: two rules may differ in nothing but what {=x}
// refers to.
func TestBackReferencesToOtherPartsAreOtherPatterns(t *testing.T) {
	const mapping = `
families: {d: {max_versions: 1}}
rules:
- {name: a, match: {pk: "{a}-{b}", sk: "{=a}"}, row: "a#{a}-{b}",
    cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]}
- {name: b, match: {pk: "{x}-{y}", sk: "{=%}"}, row: "b#{x}-{y}",
    cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]}`
	for of, want := range map[string]string{"x": "unreachable", "y": ""} {
		var got []string
		for _, p := range problemsOf(t, Table{Source: "T", Target: "t", Schema: schema("pk:S", "sk:S")},
			strings.Replace(mapping, "%", of, 1)) {
			got = append(got, p.Code)
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("{=%s}: problems %q, want %q", of, g, want)
		}
	}
}

// TestNamesThatAreMeantAsAttributesStayQuiet: index rows and moves refer to attributes, and a rule
// that names one elsewhere means it.
func TestNamesThatAreMeantAsAttributesStayQuiet(t *testing.T) {
	for name, mapping := range map[string]string{
		"a move, tested": `{name: r, match: {pk: "{id}", site: {exists: true}}, row: "{site}#{id}",
    cells: [{attrs: all, except: [pk], to: "d:{attr}"}]}`,
		"a move, by expression": `{name: r, match: {pk: "{id}"}, when: "has(item.site)", row: "{site}#{id}",
    cells: [{attrs: all, except: [pk], to: "d:{attr}"}]}`,
		"a move, written too": `{name: r, match: {pk: "{id}"}, row: "{site}#{id}", cells: [{attr: site, to: "d:site"}]}`,
		"an index": `{name: r, match: {pk: "{id}"}, row: "{id}", cells: [{attr: a, to: "d:a"}],
    index: [{name: i, row: "i#{site}#{id}", cells: [{const: x, to: "d:x"}]}]}`,
		"near a capture, but so": `{name: r, match: {pk: "{user}", users: {exists: true}}, row: "{user}",
    cells: [{attr: a, to: "d:{users}"}]}`,
		"a key attribute by name": `{name: r, match: {pk: "{p}"}, row: "{pk}", cells: [{attr: a, to: "d:{pk}"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, p := range problemsOf(t, Table{Source: "T", Target: "t", Schema: schema("pk:S")},
				"families: {d: {max_versions: 1}}\nrules:\n- "+mapping) {
				if p.Code == "attribute" || p.Code == "not_injective" && name == "a key attribute by name" {
					t.Error(p)
				}
			}
		})
	}
}

// TestFixedColumnKeepsItsText: only columns of several parts have separators.
func TestFixedColumnKeepsItsText(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, `
segments: ordered
families: {d: {max_versions: 1}}
rules: [{name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}",
  cells: [{attr: a, to: "d:a#b"}, {attr: b, to: "d:{s}#b"}]}]`)
	got := cellsOf(t, p, `{"pk":{"S":"1"},"sk":{"S":"2"},"a":{"S":"x"},"b":{"S":"y"}}`)["1\x00\x012"]
	if len(got) != 2 || got["d:a#b"] != "x" || got["d:2\x00\x01b"] != "y" {
		t.Errorf("cells %q", got)
	}
}
