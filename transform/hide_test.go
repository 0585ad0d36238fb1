package transform

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestExplanationWithoutDataShowsOnlyWhatTheKeyTells marks every content with a word and looks for
// it.
func TestExplanationWithoutDataShowsOnlyWhatTheKeyTells(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, `
families: {d: {max_versions: 1}, t: {max_versions: 1}, o: {max_versions: 1}, x: {max_versions: 1}}
rules:
- name: r
  match: {pk: "{id}", sk: "{kind}", owner: "{first}-{rest}"}
  row: "{id}#{kind}"
  cells:
  - {attrs: all, except: [pk, sk, tags, opts, state, when], to: "d:{attr}"}
  - {attr: state, to: "d:{kind}/state", ts: "{when|int}"}
  - {set: tags, to: "t:{member}"}
  - {map: opts, to: "o:{key}"}
  - {attr: state, to: "d:by/{first}"}
  index: [{name: owners, row: "x#{rest}#{id}#{kind}", cells: [{const: "0x00", to: "x:k"}]}]
  ignore: ["*"]`)
	img := image(t, []byte(`{"pk":{"S":"key"},"sk":{"S":"sort"},"owner":{"S":"secretA-secretB"},"state":{"S":"secretC"},
		"when":{"N":"77777"},
		"tags":{"SS":["secretD"]},"opts":{"M":{"secretE":{"S":"secretF"}}},"n":{"S":"secretG"}}`))
	steps := p.Explain(img)
	if text := said(t, steps); strings.Count(text, "secret") < 10 || !strings.Contains(text, "77777") {
		t.Fatalf("the whole explanation shows too little: %s", text)
	}
	p.Hide(steps, img)
	text := said(t, steps)
	if strings.Contains(text, "secret") || strings.Contains(text, "77777") {
		t.Errorf("content shows: %s", text)
	}
	for _, known := range []string{`"id":"key"`, `"row":"key#sort"`, `"qualifier":"n"`, `"qualifier":"sort/state"`,
		"(7 bytes; --show-data prints them), at a time of its own", "(1 byte; --show-data prints it)"} {
		if !strings.Contains(text, known) {
			t.Errorf("%s is not shown: %s", known, text)
		}
	}
}

// TestRefusedItemIsExplainedWithoutItsData: what refused it may be any of its attributes.
func TestRefusedItemIsExplainedWithoutItsData(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S")}, `
families: {d: {max_versions: 1}}
rules: [{name: r, match: {pk: "{id}", owner: "{who}"}, row: "{id}", cells: [{attr: n, to: "d:{who}", as: int64}]}]`)
	img := image(t, []byte(`{"pk":{"S":"key"},"owner":{"S":"secret"},"n":{"S":"secret too"}}`))
	steps := p.Explain(img)
	p.Hide(steps, img)
	if text := said(t, steps); steps.Code == "" || strings.Contains(text, "secret") {
		t.Errorf("refused as %q: %s", steps.Code, text)
	}
}

// TestKeyIsShownOfRefusedAndAcceptedItemsAlike: whoever asked for the item knows its key.
func TestKeyIsShownOfRefusedAndAcceptedItemsAlike(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S")}, `
families: {d: {max_versions: 1}}
rules: [{name: r, match: {pk: "u#{id}", owner: "{who}"}, row: "{id}", cells: [{attr: n, to: "d:n", as: int64}]}]`)
	for _, n := range []string{`{"N":"1"}`, `{"S":"refused"}`} {
		img := image(t, []byte(`{"pk":{"S":"u#7"},"owner":{"S":"secret"},"n":`+n+`}`))
		steps := p.Explain(img)
		p.Hide(steps, img)
		if text := said(t, steps); !strings.Contains(text, `"id":"7"`) || strings.Contains(text, "secret") {
			t.Errorf("refused %q: %s", steps.Code, text)
		}
	}
}

func said(t *testing.T, s *Steps) string {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
