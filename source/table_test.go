package source

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// TestBillingOfATable: a budget in percent needs the provisioned capacity, and must not take the leftover number of a
// table that is on demand now.
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
	for _, d := range []*types.TableDescription{
		{ProvisionedThroughput: &types.ProvisionedThroughputDescription{ReadCapacityUnits: aws.Int64(7)}},
		{BillingModeSummary: &types.BillingModeSummary{BillingMode: types.BillingModePayPerRequest},
			ProvisionedThroughput: &types.ProvisionedThroughputDescription{ReadCapacityUnits: aws.Int64(7)}},
	} {
		want := 7.0
		if d.BillingModeSummary != nil {
			want = 0
		}
		if _, units := billing(d); units != want {
			t.Errorf("%+v: %v units", d, units)
		}
	}
}

func TestBudgetOfATable(t *testing.T) {
	provisioned, onDemand := TableInfo{Name: "P", ReadUnits: 4000}, TableInfo{Name: "D"}
	for _, c := range []struct {
		info              TableInfo
		absolute, percent float64
		want              float64
	}{
		{provisioned, 100, 0, 100}, {provisioned, 0, 50, 2000}, {provisioned, 0, 0, 1000},
		{onDemand, 100, 0, 100}, {onDemand, 0, 0, DefaultReadUnits},
	} {
		if got, err := c.info.ReadUnitsFor(c.absolute, c.percent); err != nil || got != c.want {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
	if _, err := onDemand.ReadUnitsFor(0, 25); err == nil || !strings.Contains(err.Error(), "read_units") {
		t.Error(err)
	}
}
