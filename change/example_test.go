package change_test

import (
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
)

// A page of a shard: the records are found in the body of a reply without decoding them, each gets
// its version, and only what a caller asks for is decoded.
func ExampleScanPage() {
	body := []byte(`{"Records": [
		{"eventName": "INSERT", "dynamodb": {"ApproximateCreationDateTime": 1790000000,
			"SequenceNumber": "100000000000000000001", "Keys": {"pk": {"S": "hats"}},
			"NewImage": {"pk": {"S": "hats"}, "price": {"N": "12.50"}}}},
		{"eventName": "REMOVE", "dynamodb": {"ApproximateCreationDateTime": 1790000000,
			"SequenceNumber": "100000000000000000002", "Keys": {"pk": {"S": "hats"}},
			"OldImage": {"pk": {"S": "hats"}, "price": {"N": "12.50"}}}}
	], "NextShardIterator": "there"}`)
	records, next, err := change.ScanPage(body, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	var clock change.Clock // of the shard; the log stores it with the page
	var d change.Decoder
	for i := range records {
		r := &records[i]
		r.Version = clock.Next(r.Created)
		fmt.Println(r.Op, string(r.Keys), r.Version)
		if image, err := d.Image(r.New); err == nil && r.New != nil {
			fmt.Println("price", image.Get("price").S)
		}
	}
	fmt.Printf("the shard goes on at %q\n", next)
	// Output:
	// INSERT {"pk": {"S": "hats"}} 1790000000000
	// price 12.50
	// REMOVE {"pk": {"S": "hats"}} 1790000000001
	// the shard goes on at "there"
}

// The canonical key names an item, however a record writes it.
func ExampleKeySchema_Canonical() {
	schema := change.KeySchema{
		Partition: change.KeyAttr{Name: "pk", Type: 'S'}, Sort: &change.KeyAttr{Name: "n", Type: 'N'},
	}
	var d change.Decoder
	for _, keys := range []string{
		`{"pk":{"S":"hats"},"n":{"N":"1.50"}}`, `{"n": {"N": "15E-1"}, "pk": {"S": "\u0068ats"}}`,
	} {
		image, err := d.Image([]byte(keys))
		if err != nil {
			fmt.Println(err)
			return
		}
		key, err := schema.Canonical(nil, image)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s %016x\n", key, change.HashKey(key))
	}
	// Output:
	// {"pk":{"S":"hats"},"n":{"N":"1.5"}} 1dfa5188432edd51
	// {"pk":{"S":"hats"},"n":{"N":"1.5"}} 1dfa5188432edd51
}
