package sandbox_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
)

// A sandbox without a test: servers on free ports, a table with a stream, an item, and a fault.
// Tests begin with NewWorld instead, which ends with them, and clients of other languages with the
// lines of Env.
func ExampleStart() {
	s, err := sandbox.Start(sandbox.Options{Seed: 1, NoBigtable: true, NoNATS: true, NoS3: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = s.Close() }()
	ctx := context.Background()
	call := func(operation, body string) {
		_, err := s.Call(ctx, operation, body)
		var refused *sandbox.CallError
		switch {
		case errors.As(err, &refused):
			fmt.Println(operation, refused.Status, refused.Code)
		case err != nil:
			fmt.Println(err)
		default:
			fmt.Println(operation, "is done")
		}
	}
	call("CreateTable", `{"TableName": "Orders", "BillingMode": "PAY_PER_REQUEST",
		"AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
		"KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
		"StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"}}`)
	err = s.Faults.Inject(fault.Rule{
		Effect: fault.Error, Operation: "PutItem", Code: "ProvisionedThroughputExceededException", Times: 1,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	call("PutItem", `{"TableName": "Orders", "Item": {"pk": {"S": "hats"}}}`)
	call("PutItem", `{"TableName": "Orders", "Item": {"pk": {"S": "hats"}}}`)
	items, err := s.DynamoDB.Items("Orders") // faults do not apply
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", items)
	// Output:
	// CreateTable is done
	// PutItem 400 ProvisionedThroughputExceededException
	// PutItem is done
	// [{"pk":{"S":"hats"}}]
}
