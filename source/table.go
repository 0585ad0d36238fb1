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
)

// TableInfo is DynamoDB's description of a table.
type TableInfo struct {
	Name, ARN string
	ID        string // a re-created table has another ID
	Status    string // ACTIVE, CREATING, …
	StreamARN string // of the latest stream; empty when there never was one
	Streaming bool   // the latest stream is enabled
	View      string // NEW_AND_OLD_IMAGES, …
	Schema    change.KeySchema
	Indexes   map[string]change.KeySchema // secondary indexes, by name
	TTLAttr   string                      // empty: TTL is off
	TTLError  error                       // the TTL setting is unknown: the call is not supported, or not permitted
	Created   time.Time
	Items     int64 // as of hours ago
	Bytes     int64 // as of hours ago
	Date      change.Millis
	Replicas  []string // regions of a global table; none for an ordinary one
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
	for _, r := range t.Replicas {
		info.Replicas = append(info.Replicas, aws.ToString(r.RegionName))
	}
	if spec := t.StreamSpecification; spec != nil {
		info.Streaming, info.View = aws.ToBool(spec.StreamEnabled), string(spec.StreamViewType)
	}
	return info
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
