package verify

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const twoRules = `
mapping: 1
families: {d: {max_versions: 1}, e: {max_versions: 1}}
rules:
- name: users
  match: {pk: "user#{id}", sk: "{s}"}
  row: "u#{id}"
  cells: [{attrs: all, except: [pk, sk], to: "d:{s}/{attr}"}]
- name: any
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}#{s}"
  segments: escape
  cells: [{attrs: all, except: [pk, sk], to: "e:{attr}"}]
`

// TestDifferencesNameCellRuleAndEntry: every kind that the settling of an item can find, in rows of
// two rules.
func TestDifferencesNameCellRuleAndEntry(t *testing.T) {
	e := newEngine(t, twoRules)
	for _, sk := range []string{"value", "stale", "extra", "guard"} {
		e.put("p", sk, `"x":{"S":"1"}`)
		e.put("user#1", sk, `"x":{"S":"1"}`)
	}
	for _, pk := range []string{"p", "user#1"} {
		e.lose(pk, "value", `"x":{"S":"a longer value than is shown"},"y":{"S":"2"}`)
		e.lose(pk, "missing", `"x":{"S":"1"}`)
		e.lose(pk, "stale", "")
	}
	e.foreign("p#extra", "e", "z", "9")
	e.foreign("u#1", "d", "extra/z", "9")
	e.guardAt("p#guard", keyOf("p", "guard"), int64(e.now())+7_200_000)
	s := e.settler()
	s.Cells, s.Values = 10, 4
	var got []string
	var keys []Candidate
	for _, pk := range []string{"p", "user#1"} {
		for _, sk := range []string{"value", "missing", "stale", "extra", "guard"} {
			row := "p#" + sk
			if pk != "p" {
				row = "u#1"
			}
			keys = append(keys, Candidate{Key: keyOf(pk, sk), Rows: [][]byte{[]byte(row)}})
		}
	}
	verdicts, err := s.Settle(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range verdicts {
		for _, c := range v.Cells {
			line := []string{string(c.Kind), string(c.Row), c.Rule, c.Entry, c.Family + ":" + string(c.Qualifier)}
			for _, x := range []*Content{c.Want, c.Have} {
				if x == nil {
					line = append(line, "-")
				} else {
					line = append(line, string(x.Value))
				}
			}
			got = append(got, strings.Join(line, ", "))
		}
	}
	want := []string{
		"value, p#value, rule any, attrs: all → e:{attr}, e:x, a lo, 1",
		"missing_cell, p#value, rule any, attrs: all → e:{attr}, e:y, 2, -",
		"missing_row, p#missing, rule any, attrs: all → e:{attr}, e:x, 1, -",
		"stale, p#stale, rule any, , :, -, -",
		"extra_cell, p#stale, rule any, attrs: all → e:{attr}, e:x, -, 1",
		"extra_cell, p#extra, rule any, attrs: all → e:{attr}, e:z, -, 9",
		"future, p#guard, rule any, , :, -, -",
		"value, u#1, rule users, attrs: all → d:{s}/{attr}, d:value/x, a lo, 1",
		"missing_cell, u#1, rule users, attrs: all → d:{s}/{attr}, d:value/y, 2, -",
		"missing_cell, u#1, rule users, attrs: all → d:{s}/{attr}, d:missing/x, 1, -",
		"stale, u#1, rule users, , :, -, -",
		"extra_cell, u#1, rule users, attrs: all → d:{s}/{attr}, d:stale/x, -, 1",
		"extra_cell, u#1, rule users, attrs: all → d:{s}/{attr}, d:extra/z, -, 9",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.Cells, s.Values = 1, 0
	if verdicts, err = s.Settle(t.Context(), keys[:1]); err != nil || len(verdicts[0].Cells) != 1 {
		t.Fatalf("%+v: %v", verdicts, err)
	}
	c := verdicts[0].Cells[0]
	if c.Want.Bytes != len("a longer value than is shown") || len(c.Want.Value)+len(c.Have.Value) > 0 {
		t.Errorf("want %+v, have %+v: want a length and no value", c.Want, c.Have)
	}
}
