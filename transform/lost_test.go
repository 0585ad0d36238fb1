package transform

import (
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
)

// TestWhyAnItemIsLostNamesItsRule: one rule loses an attribute, another does not.
func TestWhyAnItemIsLostNamesItsRule(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, `
types: "t:types"
families: {d: {max_versions: 1}, t: {max_versions: 1}}
rules:
- {name: part, match: {pk: "{p}", sk: "P#{s}"}, row: "p#{p}#{s}", cells: [{attrs: [a], to: "d:{attr}"}], ignore: [b]}
- name: whole
  match: {pk: "{p}", sk: "W#{s}"}
  row: "w#{p}#{s}"
  cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]`)
	for sk, want := range map[string]string{
		"P#1": "rule part: attributes that it does not name are not written", "W#1": "", "x": "no rule",
	} {
		keys := change.Image{
			{Name: "pk", Value: change.Value{Kind: change.KindString, S: "p"}},
			{Name: "sk", Value: change.Value{Kind: change.KindString, S: sk}},
		}
		if why := p.WhyLost(keys); why != want && (want == "" || !strings.Contains(why, want)) {
			t.Errorf("%s: %q, want %q", sk, why, want)
		}
	}
}
