package transform

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestExplainTellsEveryStep(t *testing.T) {
	p := example(t, "06_erd.yaml")
	old := `{"PK":{"S":"USER#1"},"SK":{"S":"SUBSCRIBE#s#NEWS#7"},"data":{"S":"SUBSCRIBE_USER"}}`
	steps, err := p.ExplainChange(step(t, p, 7, old, ""))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(steps, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want := `{
 "passed": [
  {
   "rule": "user",
   "why": "SK does not match \"USER#\""
  },
  {
   "rule": "personal",
   "why": "SK does not match \"PERSONAL#{svc:seg}#{type}\""
  }
 ],
 "rule": "subscribe_user",
 "line": 14,
 "captures": {
  "cid": "7",
  "ct": "NEWS",
  "svc": "s",
  "uid": "1"
 },
 "rows": [
  {
   "name": "rule subscribe_user",
   "row": "USER#1",
   "class": "K",
   "why": "several items share the row: its key does not determine {svc}, {ct}, {cid}; ` +
		`all its columns are known from the key",
   "left": true,
   "cells": null,
   "deletes": [
    {
     "family": "s",
     "qualifier": "s#NEWS#7",
     "why": "an earlier version of the item may have left it; deleted before the new cells are set"
    }
   ]
  },
  {
   "name": "index users_by_subscription of rule subscribe_user",
   "row": "SUBSCRIBE_USER#s#NEWS#7#1",
   "class": "R",
   "why": "the row's key determines the whole primary key and nothing else writes it",
   "left": true,
   "wipes": true,
   "cells": null
  }
 ]
}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLeftRowHasTheNameOfWhatWroteIt: the row of the old image may be one of an index, or of
// another rule.
func TestLeftRowHasTheNameOfWhatWroteIt(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S")}, `
families: {d: {max_versions: 1}}
rules:
- {name: gone, match: {pk: "{p}", state: gone}, row: "gone#{p}", cells: [{attr: v, to: "d:v"}]}
- name: item
  match: {pk: "{p}"}
  row: "item#{p}"
  cells: [{attr: v, to: "d:v"}]
  index: [{name: by_state, match: {state: "{st}"}, row: "state#{st}#{p}", cells: [{const: "1", to: "d:i"}]}]`)
	item := func(state string) string { return fmt.Sprintf(`{"pk":{"S":"1"},"state":{"S":%q}}`, state) }
	for state, want := range map[string][]string{
		"shut": {"rule item item#1", "index by_state of rule item state#shut#1",
			"index by_state of rule item state#open#1 left"},
		"gone": {"rule gone gone#1", "rule item item#1 left", "index by_state of rule item state#open#1 left"},
	} {
		steps, err := p.ExplainChange(step(t, p, 7, item("open"), item(state)))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range steps.Rows {
			name := r.Name + " " + r.Row
			if r.Left {
				name += " left"
			}
			got = append(got, name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("to %s (-want +got):\n%s", state, diff)
		}
	}
}

func TestExplainSaysWhyAnItemIsRefused(t *testing.T) {
	p := example(t, "01_catalog.yaml")
	s := p.Explain(image(t, []byte(`{"pk":{"S":"a#b"},"sk":{"S":"c"},"v":{"S":"x"}}`)))
	if s.Rule != "sku" || s.Code != "segment" {
		t.Errorf("rule %q, code %q: %s", s.Rule, s.Code, s.Refused)
	}
	want := []Use{{Attr: "pk", Use: "key", By: "sku"}, {Attr: "sk", Use: "key", By: "sku"},
		{Attr: "v", Use: "mapped", By: "sku"}}
	if diff := cmp.Diff(want, s.Coverage); diff != "" {
		t.Error(diff)
	}
}

func TestOwnedColumnsAreExactlyTheItems(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, `
families: {d: {max_versions: 1}, e: {max_versions: 1}}
rules:
- name: r
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}"
  cells:
  - {attrs: all, except: [pk, sk, tags], to: "d:{s}/{attr}"}
  - {set: tags, to: "e:{member}/{s}"}`)
	if ok, why := p.Resyncable(); !ok {
		t.Fatal(why)
	}
	part := rapid.SampledFrom([]string{"a", "b", "a/b", "ab", "b/a"})
	rapid.Check(t, func(t *rapid.T) {
		item := func(s string) string {
			return fmt.Sprintf(`{"pk":{"S":"x"},"sk":{"S":%q},%q:{"S":"v"},"tags":{"SS":[%q]}}`, s, part.Draw(t, "attr"),
				part.Draw(t, "tag"))
		}
		s, other := part.Draw(t, "s"), part.Draw(t, "other")
		img := image(t, []byte(item(s)))
		rows, err := p.Project(img)
		if err != nil {
			return
		}
		for _, key := range []string{s, other} {
			keys := image(t, []byte(fmt.Sprintf(`{"pk":{"S":"x"},"sk":{"S":%q}}`, key)))
			owned, err := p.Owned(keys, []byte("x"))
			if err != nil {
				continue
			}
			for _, c := range rows[0].Cells {
				if got := owned.Has(c.Family, c.Qualifier); got != (key == s) {
					t.Fatalf("column %s:%s of item %q: owned by %q is %v", c.Family, c.Qualifier, s, key, got)
				}
			}
		}
	})
	// A last part may hold the separator: the column b/b/a is that of item b/a, not of item a.
	p = compiled(t, Table{Schema: schema("pk:S", "sk:S")}, `
families: {e: {max_versions: 1}}
rules:
- {name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}", cells: [{set: tags, to: "e:{member}/{s}"}]}`)
	for item, want := range map[string]bool{"a": false, "b/a": true} {
		owned, err := p.Owned(image(t, []byte(fmt.Sprintf(`{"pk":{"S":"x"},"sk":{"S":%q}}`, item))), []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		if got := owned.Has("e", []byte("b/b/a")); got != want {
			t.Errorf("column e:b/b/a is owned by item %q: %v", item, got)
		}
	}
	if ok, _ := example(t, "02_video.yaml").Resyncable(); ok {
		t.Error("comments that only their times distinguish count as resyncable")
	}
}
