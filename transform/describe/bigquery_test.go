package describe

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

func compiled(t *testing.T, text string) *transform.Program {
	t.Helper()
	m, problems := transform.ParseMapping("m.yaml", []byte(text))
	if m == nil {
		t.Fatal(problems)
	}
	p, problems := transform.Compile(transform.Table{
		Source: "Orders", Target: "orders", Mapping: m, View: "NEW_AND_OLD_IMAGES",
		Schema: change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'}},
	})
	if p == nil {
		t.Fatal(problems)
	}
	return p
}

// TestExternalTableHasTypesAndNoGuards: columns have the types of their encodings, names that BigQuery
// does not take get another, families of guards and aggregates are left out.
func TestExternalTableHasTypesAndNoGuards(t *testing.T) {
	p := compiled(t, `
families: {d: {max_versions: 1}, h: {max_versions: 5}, m: {max_versions: 1, aggregate: max}}
rules:
- name: order
  match: {pk: "o{id}"}
  row: "o#{id}"
  cells:
  - {attrs: all, except: [pk, n, total, seen, text], to: "d:{attr}"}
  - {attr: n, to: "d:n", as: int64}
  - {attr: total, to: "h:order total"}
  - {attr: seen, to: "m:seen", as: int64, ts: "{day|s_ms}"}
  - {attr: text, to: "d:0x"}
- name: other
  match: {pk: "x{id}"}
  row: "x#{id}"
  cells: [{attrs: [n, z], to: "d:{attr}"}]
  ignore: ["*"]`)
	want := External{
		SourceFormat: "BIGTABLE",
		SourceURIs:   []string{"https://googleapis.com/bigtable/projects/p/instances/i/tables/orders"},
		Options: BigtableOptions{IgnoreUnspecified: true, ReadRowkeyAsString: true, Families: []ExternalFamily{
			{ID: "d", Type: "STRING", Encoding: "TEXT", OnlyLatest: true, Columns: []ExternalColumn{
				{Qualifier: "0x", Field: "c_0x", Type: "STRING", Encoding: "TEXT", OnlyLatest: true},
				{Qualifier: "n", Type: "BYTES", Encoding: "BINARY", OnlyLatest: true}, // text in one rule, int64 in the other
				{Qualifier: "z", Type: "STRING", Encoding: "TEXT", OnlyLatest: true},
			}},
			{ID: "h", Type: "STRING", Encoding: "TEXT", Columns: []ExternalColumn{
				{Qualifier: "order total", Field: "c_order_total", Type: "STRING", Encoding: "TEXT"},
			}},
		}},
	}
	if diff := cmp.Diff(want, BigQuery(BigtableURI("p", "i", "orders"), p)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
