package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

const portal = `mapping: 1
families: {u: {max_versions: 1}, s: {max_versions: 1}}
rules:
- name: user
  match: {PK: "USER#{uid}", SK: "USER#"}
  row: "USER#{uid}"
  cells: [{attrs: all, except: [PK, SK, data], to: "u:{attr}"}]
- name: subscription
  match: {PK: "USER#{uid}", SK: "SUB#{service}"}
  row: "USER#{uid}"
  cells: [{attr: since, to: "s:{service}"}]
  ignore: [data]
`

// sub is the explanation of an item of rule subscription.
const sub = `Rule subscription takes this item (line 8 of the mapping): service = "news", uid = "7".
  passed over: rule user, since SK does not match "USER#"

Row USER#7 of table portal (rule subscription)
  class K (by-key): other items write this row too: only this item's columns are touched, ` +
	`and its key determines which ones
    because several items share the row: its key does not determine {service}; all its columns are known from the key
  set     s:news = May
  cells without a time get that of the change

Left out on purpose: data

Written nowhere: note. Map them, or leave them out on purpose with ignore: [note]`

func TestExplanationNamesRuleRowAndLeftOutAttributes(t *testing.T) {
	m, problems := transform.ParseMapping("portal.yaml", []byte(portal))
	p, more := transform.Compile(transform.Table{Pipeline: "p", Source: "Portal", Target: "portal", Mapping: m,
		Schema: change.KeySchema{
			Partition: change.KeyAttr{Name: "PK", Type: 'S'}, Sort: &change.KeyAttr{Name: "SK", Type: 'S'},
		}})
	if p == nil {
		t.Fatal(problems, more)
	}
	for item, want := range map[string]string{
		`{"PK":{"S":"USER#7"},"SK":{"S":"SUB#news"},"since":{"S":"May"},"data":{"S":"x"},"note":{"S":"?"}}`: sub,
		`{"PK":{"S":"GROUP#7"},"SK":{"S":"x"}}`: `No rule takes this item.
  passed over: rule user, since PK does not match "USER#{uid}"
  passed over: rule subscription, since PK does not match "USER#{uid}"`,
	} {
		var d change.Decoder
		img, err := d.Image([]byte(item))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, Explain("portal", p.Explain(img))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", item, diff)
		}
	}
}

// TestLeftRowIsNotSaidToBeWrittenAnew: nothing is written to a row that the item leaves.
func TestLeftRowIsNotSaidToBeWrittenAnew(t *testing.T) {
	s := &transform.Steps{Rule: "user", Rows: []transform.StepRow{{
		Name: "rule user", Row: "7", Class: "R", Why: "it is so", Left: true, Wipes: true,
	}}}
	want := `Rule user takes this item.

Row 7 of table portal (rule user)
  the item leaves this row
  class R (replace-row): the row is this item's alone: it is deleted as a whole
    because it is so
  delete  the whole row`
	if diff := cmp.Diff(want, Explain("portal", s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
