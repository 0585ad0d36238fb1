package transform_test

import (
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// orders is the table of the examples.
var orders = change.KeySchema{
	Partition: change.KeyAttr{Name: "pk", Type: 'S'}, Sort: &change.KeyAttr{Name: "sk", Type: 'S'},
}

// A mapping is compiled for one table. What is wrong with it comes as a list of problems, each with
// its line and a hint.
func ExampleCompile() {
	mapping, problems := transform.ParseMapping("orders.yaml", []byte(`
mapping: 1
families: {o: {max_versions: 1}}
rules:
- name: order
  match: {pk: "CUSTOMER#{c}", sk: "ORDER#{o:d}"}
  row: "{c}#{o|pad(6)}"
  cells:
  - {attr: total, to: "o:total"}
`))
	program, more := transform.Compile(transform.Table{
		Source: "Orders", Target: "orders", Schema: orders, View: "NEW_AND_OLD_IMAGES", Mapping: mapping,
	})
	for _, p := range append(problems, more...) {
		fmt.Println(p)
	}
	if program == nil {
		return
	}
	var d change.Decoder
	item, err := d.Image([]byte(
		`{"pk": {"S": "CUSTOMER#7"}, "sk": {"S": "ORDER#42"}, "total": {"N": "12.50"}, "note": {"S": "gift"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	rows, err := program.Project(item)
	if err != nil { // a *Refusal: the mapping does not take the item
		fmt.Println(err)
		return
	}
	for _, row := range rows {
		for _, cell := range row.Cells {
			fmt.Printf("%s %s:%s = %s\n", row.Key, cell.Family, cell.Qualifier, cell.Value)
		}
	}
	// Output:
	// 7#000042 o:total = 12.5
}

// What one change does: the rows that the item enters first, then those that it leaves. Without a
// mapping an item is one row, named by its key.
func ExampleProgram_Change() {
	program, problems := transform.Compile(transform.Table{
		Source: "Orders", Target: "orders", Schema: orders, View: "NEW_AND_OLD_IMAGES",
	})
	if program == nil {
		fmt.Println(problems)
		return
	}
	var d change.Decoder
	var w transform.Write // one is used for many changes
	err := program.Change(&d, &change.Change{
		Op: change.Remove, Version: 1_790_000_000_001,
		Keys: []byte(`{"pk": {"S": "CUSTOMER#7"}, "sk": {"S": "ORDER#42"}}`),
		Old:  []byte(`{"pk": {"S": "CUSTOMER#7"}, "sk": {"S": "ORDER#42"}, "total": {"N": "12.50"}}`),
	}, &w)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range w.Rows {
		fmt.Printf("row %s at %d: left %v, class %v, %d cells\n", row.Key, w.Version, row.Left, row.Class, len(row.Cells))
	}
	// Output:
	// row CUSTOMER%237#ORDER#42 at 1790000000001: left true, class R, 0 cells
}
