package source

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source/capacity"
)

const (
	// DefaultReadUnits is the read budget of an on-demand table, in capacity units a second.
	DefaultReadUnits = 500
	// DefaultReadPercent is the read budget of a provisioned table, in percent of its provisioned capacity.
	DefaultReadPercent = 25
)

// Budget limits the read capacity that all readers of one table consume together.
type Budget = capacity.Budget

// BudgetUsage is how much of a Budget was used.
type BudgetUsage = capacity.Usage

// NewBudget makes a budget of so many read capacity units a second. 0 stops all readers until SetRate.
func NewBudget(units float64) *Budget { return capacity.New(units) }

// TableInfo is DynamoDB's description of a table.
type TableInfo struct {
	Name, ARN   string
	ID          string // a re-created table has another ID
	Status      string // ACTIVE, CREATING, …
	StreamARN   string // of the latest stream; empty when there never was one
	Streaming   bool   // the latest stream is enabled
	View        string // NEW_AND_OLD_IMAGES, …
	Schema      change.KeySchema
	Indexes     map[string]change.KeySchema // secondary indexes, by name
	TTLAttr     string                      // empty: TTL is off
	TTLError    error                       // the TTL setting is unknown: the call is not supported, or not permitted
	Created     time.Time
	Items       int64   // as of hours ago
	Bytes       int64   // as of hours ago
	BillingMode string  // PAY_PER_REQUEST or PROVISIONED
	ReadUnits   float64 // provisioned read capacity a second; 0: on demand
	Date        change.Millis
	Replicas    []string // regions of a global table; none for an ordinary one
}

// Table describes a table: its identity, stream and key. An error with class Gone means that it does not exist.
func (s *Source) Table(ctx context.Context, name string) (TableInfo, error) {
	call, cancel := context.WithTimeout(ctx, s.callDeadline())
	defer cancel()
	start := time.Now()
	out, err := s.tables.DescribeTable(call, &dynamodb.DescribeTableInput{TableName: &name})
	s.metrics.callEnded(ctx, "DescribeTable", start, err)
	if err != nil {
		return TableInfo{}, s.wrap(ctx, "describe table "+name, err)
	}
	info := tableInfo(out.Table)
	info.Date = s.observeCall(out.ResultMetadata, start)
	if info.Schema, err = keySchema(out.Table, out.Table.KeySchema); err != nil {
		return TableInfo{}, &Error{Op: "describe table " + name, Class: failure.Fatal, Err: err}
	}
	s.noteSchema(name, info.Schema)
	info.Indexes = indexes(out.Table)
	info.TTLAttr, info.TTLError = s.ttl(ctx, name)
	return info, nil
}

// ttl returns the name of the TTL attribute, or "" when TTL is off.
func (s *Source) ttl(ctx context.Context, name string) (string, error) {
	call, cancel := context.WithTimeout(ctx, s.callDeadline())
	defer cancel()
	start := time.Now()
	out, err := s.tables.DescribeTimeToLive(call, &dynamodb.DescribeTimeToLiveInput{TableName: &name})
	s.metrics.callEnded(ctx, "DescribeTimeToLive", start, err)
	if err != nil {
		return "", s.wrap(ctx, "describe time to live of "+name, err)
	}
	d := out.TimeToLiveDescription
	if d == nil {
		return "", nil
	}
	switch d.TimeToLiveStatus {
	case types.TimeToLiveStatusEnabled, types.TimeToLiveStatusEnabling:
		return aws.ToString(d.AttributeName), nil
	}
	return "", nil
}

// tableInfo copies a description, without the keys.
func tableInfo(t *types.TableDescription) TableInfo {
	info := TableInfo{
		Name: aws.ToString(t.TableName), ARN: aws.ToString(t.TableArn), ID: aws.ToString(t.TableId),
		Status:    string(t.TableStatus),
		StreamARN: aws.ToString(t.LatestStreamArn), Created: aws.ToTime(t.CreationDateTime),
		Items: aws.ToInt64(t.ItemCount), Bytes: aws.ToInt64(t.TableSizeBytes),
	}
	info.BillingMode, info.ReadUnits = billing(t)
	for _, r := range t.Replicas {
		info.Replicas = append(info.Replicas, aws.ToString(r.RegionName))
	}
	if spec := t.StreamSpecification; spec != nil {
		info.Streaming, info.View = aws.ToBool(spec.StreamEnabled), string(spec.StreamViewType)
	}
	return info
}

// billing returns the billing mode and the provisioned read capacity, 0 on demand. A table that was never on demand has
// no summary of its billing.
// Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BillingModeSummary.html
func billing(t *types.TableDescription) (mode string, readUnits float64) {
	mode = string(types.BillingModeProvisioned)
	if t.BillingModeSummary != nil && t.BillingModeSummary.BillingMode != "" {
		mode = string(t.BillingModeSummary.BillingMode)
	}
	if mode == string(types.BillingModeProvisioned) && t.ProvisionedThroughput != nil {
		readUnits = float64(aws.ToInt64(t.ProvisionedThroughput.ReadCapacityUnits))
	}
	return mode, readUnits
}

// ReadUnitsFor returns the rate of a Budget for the table: absolute units a second where that is given, else percent of
// the provisioned capacity, else the default. Percent of an on-demand table is an error, because there is no number
// that it could be a part of.
func (i *TableInfo) ReadUnitsFor(absolute, percent float64) (float64, error) {
	switch {
	case absolute > 0:
		return absolute, nil
	case percent > 0 && i.ReadUnits <= 0:
		return 0, fmt.Errorf("table %s is on demand, so %g %% of its provisioned capacity is nothing: "+
			"set read_units to capacity units a second, such as %d", i.Name, percent, DefaultReadUnits)
	case percent > 0:
		return i.ReadUnits * percent / 100, nil
	case i.ReadUnits > 0:
		return i.ReadUnits * DefaultReadPercent / 100, nil
	}
	return DefaultReadUnits, nil
}

// indexes returns the keys of the secondary indexes. It leaves out those that it cannot read, because they only serve
// to propose a mapping.
func indexes(t *types.TableDescription) map[string]change.KeySchema {
	all := map[string]change.KeySchema{}
	for _, x := range t.GlobalSecondaryIndexes {
		if k, err := keySchema(t, x.KeySchema); err == nil {
			all[aws.ToString(x.IndexName)] = k
		}
	}
	for _, x := range t.LocalSecondaryIndexes {
		if k, err := keySchema(t, x.KeySchema); err == nil {
			all[aws.ToString(x.IndexName)] = k
		}
	}
	return all
}

// keySchema returns a key with the types of its attributes.
func keySchema(t *types.TableDescription, key []types.KeySchemaElement) (k change.KeySchema, err error) {
	kinds := map[string]byte{}
	for _, a := range t.AttributeDefinitions {
		if len(a.AttributeType) == 1 {
			kinds[aws.ToString(a.AttributeName)] = a.AttributeType[0]
		}
	}
	for _, e := range key {
		attr := change.KeyAttr{Name: aws.ToString(e.AttributeName), Type: kinds[aws.ToString(e.AttributeName)]}
		if attr.Type == 0 {
			return k, fmt.Errorf("key attribute %q has no type", attr.Name)
		}
		if e.KeyType == types.KeyTypeHash {
			k.Partition = attr
		} else {
			k.Sort = &attr
		}
	}
	if k.Partition.Name == "" {
		return k, fmt.Errorf("no partition key")
	}
	return k, nil
}
