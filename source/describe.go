package source

import (
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tailrace-cdc/replicator/change"
)

const (
	// DefaultReadUnits is the read budget of an on-demand table, in capacity units a second.
	DefaultReadUnits = 500
	// DefaultReadPercent is the read budget of a provisioned table, in percent of its provisioned
	// capacity.
	DefaultReadPercent = 25
)

// TableInfo is DynamoDB's description of a table.
type TableInfo struct {
	Name, ARN   string
	ID          string // a re-created table has another ID
	Status      string // ACTIVE, CREATING, …
	StreamARN   string // of the latest stream; empty when there never was one
	Streaming   bool   // the latest stream is enabled
	View        string // NEW_AND_OLD_IMAGES, …
	Schema      change.KeySchema
	Indexes     map[string]IndexKey // keys of the secondary indexes, by name; see indexes
	TTLAttr     string              // empty: TTL is off
	TTLError    error               // the TTL setting is unknown: the call is not supported, or not permitted
	Created     time.Time
	Items       int64   // as of hours ago
	Bytes       int64   // as of hours ago
	BillingMode string  // PAY_PER_REQUEST or PROVISIONED
	ReadUnits   float64 // provisioned read capacity a second; 0: on demand
	Date        change.Millis
	Replicas    []string // regions of a global table; none for an ordinary one
}

// IndexKey is the key of a secondary index. A global index has up to four attributes in each part.
// Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html
type IndexKey struct {
	Partition []change.KeyAttr
	Sort      []change.KeyAttr // none: the items of a partition have no order
	Partial   bool             // its items do not have all attributes
}

// Attrs returns the attributes of the key in order.
func (k IndexKey) Attrs() []change.KeyAttr { return slices.Concat(k.Partition, k.Sort) }

// tableInfoOf copies a description. An error means that the key cannot be read. TTLAttr and Date
// are not part of a description.
func tableInfoOf(t *types.TableDescription) (TableInfo, error) {
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
	info.Indexes = indexes(t)
	var err error
	info.Schema, err = keySchema(t)
	return info, err
}

// billing returns the billing mode and the provisioned read capacity, 0 on demand. A table that was
// never on demand has no summary of its billing. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BillingModeSummary.html
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

// enabledWithin is how long after its table a stream was created that CreateTable has enabled: a
// table takes longer until it can be written to, or changed.
const enabledWithin = time.Second

// inStream is how old a table may be so that its stream has lost nothing yet, of the 24 hours that
// records live.
const inStream = 23 * time.Hour

// NewSince reports whether the table was created at or after a time of the service, and its stream
// holds every change since: it was enabled with the table, not later, and the table is younger than
// records live. after 0 is no such time. A replica of a global table is never new: DynamoDB makes
// it with its stream and fills it with the items of the other regions, and promises no records of
// these.
func (t *TableInfo) NewSince(after, now change.Millis) bool {
	enabled, known := change.StreamEnabled(t.StreamARN)
	created := change.MillisOf(t.Created)
	return len(t.Replicas) == 0 && known && after > 0 && created >= after &&
		now-created < change.Millis(inStream.Milliseconds()) && enabled-created <= change.Millis(enabledWithin.Milliseconds())
}

// ReadUnitsFor returns the rate of a Budget for the table: absolute units a second where that is
// given, else percent of the provisioned capacity, else the default. Percent of an on-demand table
// is an error, because there is no number that it could be a part of.
func (t *TableInfo) ReadUnitsFor(absolute, percent float64) (float64, error) {
	switch {
	case absolute > 0:
		return absolute, nil
	case percent > 0 && t.ReadUnits <= 0:
		return 0, fmt.Errorf("table %s is on demand, so %g %% of its provisioned capacity is nothing: "+
			"set read_units to capacity units a second, such as %d", t.Name, percent, DefaultReadUnits)
	case percent > 0:
		return t.ReadUnits * percent / 100, nil
	case t.ReadUnits > 0:
		return t.ReadUnits * DefaultReadPercent / 100, nil
	}
	return DefaultReadUnits, nil
}

// indexes returns the keys of the secondary indexes. It leaves out indexes that it cannot read,
// because they only serve to propose a mapping and to judge reads.
func indexes(t *types.TableDescription) map[string]IndexKey {
	all := map[string]IndexKey{}
	add := func(name *string, key []types.KeySchemaElement, p *types.Projection) {
		attrs, err := keyAttrs(t, key)
		if err != nil {
			return
		}
		n := slices.IndexFunc(key, func(e types.KeySchemaElement) bool { return e.KeyType != types.KeyTypeHash })
		if n < 0 {
			n = len(key)
		}
		all[aws.ToString(name)] = IndexKey{
			Partition: attrs[:n:n], Sort: attrs[n:], Partial: p == nil || p.ProjectionType != types.ProjectionTypeAll,
		}
	}
	for _, x := range t.GlobalSecondaryIndexes {
		add(x.IndexName, x.KeySchema, x.Projection)
	}
	for _, x := range t.LocalSecondaryIndexes {
		add(x.IndexName, x.KeySchema, x.Projection)
	}
	return all
}

// keyAttrs returns the attributes of a key in order, with their types. The first one is of the
// partition key.
func keyAttrs(t *types.TableDescription, key []types.KeySchemaElement) (attrs []change.KeyAttr, err error) {
	kinds := map[string]byte{}
	for _, a := range t.AttributeDefinitions {
		if len(a.AttributeType) == 1 {
			kinds[aws.ToString(a.AttributeName)] = a.AttributeType[0]
		}
	}
	for _, e := range key {
		attr := change.KeyAttr{Name: aws.ToString(e.AttributeName), Type: kinds[aws.ToString(e.AttributeName)]}
		if attr.Type == 0 {
			return nil, fmt.Errorf("key attribute %q has no type", attr.Name)
		}
		attrs = append(attrs, attr)
	}
	if len(key) == 0 || key[0].KeyType != types.KeyTypeHash {
		return nil, fmt.Errorf("no partition key")
	}
	return attrs, nil
}

// keySchema returns the key of a table: a partition key and maybe a sort key.
func keySchema(t *types.TableDescription) (k change.KeySchema, err error) {
	attrs, err := keyAttrs(t, t.KeySchema)
	switch {
	case err != nil:
		return k, err
	case len(attrs) > 2:
		return k, fmt.Errorf("the key has %d attributes", len(attrs))
	case len(attrs) == 2:
		k.Sort = &attrs[1]
	}
	k.Partition = attrs[0]
	return k, nil
}
