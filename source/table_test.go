package source

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// TestBillingOfATable: a budget in percent needs the provisioned capacity, and must not take the
// leftover number of a table that is on demand now.
func TestBillingOfATable(t *testing.T) {
	w := newWorld(t)
	create := func(name string, mode types.BillingMode, capacity *types.ProvisionedThroughput) TableInfo {
		_, err := w.tables.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: &name, BillingMode: mode, ProvisionedThroughput: capacity,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: "S"}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: "HASH"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		info, err := w.Table(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	got := create("OnDemand", types.BillingModePayPerRequest, nil)
	if got.BillingMode != "PAY_PER_REQUEST" || got.ReadUnits != 0 {
		t.Errorf("%+v", got)
	}
	capacity := &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(400), WriteCapacityUnits: aws.Int64(5)}
	if got := create("Provisioned", types.BillingModeProvisioned, capacity); got.BillingMode != "PROVISIONED" ||
		got.ReadUnits != 400 {
		t.Errorf("%+v", got)
	}
}
