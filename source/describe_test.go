package source

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
)

// TestTableThatWasNeverOnDemandIsProvisioned: its description has no summary of its billing.
func TestTableThatWasNeverOnDemandIsProvisioned(t *testing.T) {
	for _, d := range []*types.TableDescription{
		{ProvisionedThroughput: &types.ProvisionedThroughputDescription{ReadCapacityUnits: aws.Int64(7)}},
		{BillingModeSummary: &types.BillingModeSummary{BillingMode: types.BillingModePayPerRequest},
			ProvisionedThroughput: &types.ProvisionedThroughputDescription{ReadCapacityUnits: aws.Int64(7)}},
	} {
		want := 7.0
		if d.BillingModeSummary != nil {
			want = 0
		}
		if info, _ := tableInfoOf(d); info.ReadUnits != want {
			t.Errorf("%+v: %v units", d, info.ReadUnits)
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

// TestNewTableIsWholeInItsStream: only then nothing need be copied.
func TestNewTableIsWholeInItsStream(t *testing.T) {
	created := time.Date(2026, 3, 4, 10, 0, 0, 500e6, time.UTC)
	stream := func(after time.Duration) string {
		return "arn:aws:dynamodb:eu-west-1:1:table/T/stream/" + created.Add(after).Format("2006-01-02T15:04:05.000")
	}
	began := change.MillisOf(created.Add(-time.Minute))
	for name, c := range map[string]struct {
		arn   string
		after change.Millis
		age   time.Duration
		want  bool
	}{
		"with its stream":          {stream(200 * time.Millisecond), began, time.Minute, true},
		"of the same moment":       {stream(0), change.MillisOf(created), time.Minute, true},
		"older than the pipeline":  {stream(0), change.MillisOf(created) + 1, time.Minute, false},
		"the pipeline's first":     {stream(0), 0, time.Minute, false},
		"a later stream":           {stream(10 * time.Second), began, time.Minute, false},
		"trimmed":                  {stream(0), began, 24 * time.Hour, false},
		"no stream":                {"", began, time.Minute, false},
		"a stream of another form": {"arn:aws:dynamodb:eu-west-1:1:table/T/stream/x", began, time.Minute, false},
	} {
		info := TableInfo{Created: created, StreamARN: c.arn}
		if got := info.NewSince(c.after, change.MillisOf(created.Add(c.age))); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if info.Replicas = []string{"us-east-1"}; info.NewSince(c.after, change.MillisOf(created.Add(c.age))) {
			t.Errorf("%s, a replica of a global table", name)
		}
	}
}

// TestKeysOfIndexesKeepTheirOrder: the key of a global index has up to four attributes of each type.
func TestKeysOfIndexesKeepTheirOrder(t *testing.T) {
	elements := func(names ...string) (key []types.KeySchemaElement) {
		for _, name := range names {
			name, kind, _ := strings.Cut(name, ":")
			key = append(key, types.KeySchemaElement{AttributeName: &name, KeyType: types.KeyType(kind)})
		}
		return key
	}
	all := &types.Projection{ProjectionType: types.ProjectionTypeAll}
	d := &types.TableDescription{
		KeySchema: elements("pk:HASH"),
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndexDescription{
			{
				IndexName: aws.String("byTenant"), Projection: all,
				KeySchema: elements("tenant:HASH", "region:HASH", "status:RANGE", "at:RANGE"),
			},
			{
				IndexName: aws.String("byRegion"), KeySchema: elements("region:HASH"),
				Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
			},
			{IndexName: aws.String("odd"), KeySchema: elements("untyped:HASH")}},
		LocalSecondaryIndexes: []types.LocalSecondaryIndexDescription{
			{IndexName: aws.String("byStatus"), KeySchema: elements("pk:HASH", "status:RANGE"), Projection: all}},
	}
	for _, name := range []string{"pk", "tenant", "region", "status", "at"} {
		kind := types.ScalarAttributeTypeS
		if name == "at" {
			kind = types.ScalarAttributeTypeN
		}
		d.AttributeDefinitions = append(d.AttributeDefinitions,
			types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: kind})
	}
	info, err := tableInfoOf(d)
	if err != nil {
		t.Fatal(err)
	}
	text := func(name string) change.KeyAttr { return change.KeyAttr{Name: name, Type: 'S'} }
	want := map[string]IndexKey{
		"byTenant": {
			Partition: []change.KeyAttr{text("tenant"), text("region")},
			Sort:      []change.KeyAttr{text("status"), {Name: "at", Type: 'N'}},
		},
		"byStatus": {Partition: []change.KeyAttr{text("pk")}, Sort: []change.KeyAttr{text("status")}},
		"byRegion": {Partition: []change.KeyAttr{text("region")}, Sort: []change.KeyAttr{}, Partial: true},
	}
	if diff := cmp.Diff(want, info.Indexes); diff != "" {
		t.Errorf("indexes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(change.KeySchema{Partition: text("pk")}, info.Schema); diff != "" {
		t.Errorf("key (-want +got):\n%s", diff)
	}
}
