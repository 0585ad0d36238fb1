package table

import (
	"cmp"
	"time"

	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// Shown is what a description has beside the table's definition and items.
type Shown struct {
	ARN, Status            string
	StreamARN, StreamLabel string // "" when there never was a stream
	StreamView             string
	StreamOn               bool        // the stream is enabled
	Def                    *Definition // instead of the table's; nil: the table's
}

// AppendTime appends a field with a time as the service writes it: seconds with milliseconds.
func AppendTime(b []byte, name string, t time.Time) []byte {
	return wire.AppendFloat(b, name, float64(t.UnixMilli())/1000)
}

// AppendDescription appends a TableDescription.
func (t *Table) AppendDescription(b []byte, s Shown) []byte {
	d := cmp.Or(s.Def, &t.Def)
	b = append(b, '{')
	b = append(wire.AppendField(b, "AttributeDefinitions"), '[')
	for i, a := range d.Attributes {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendText(append(b, '{'), "AttributeName", a.AttributeName)
		b = append(wire.AppendText(b, "AttributeType", a.AttributeType), '}')
	}
	b = append(b, ']')
	b = wire.AppendText(b, "TableName", d.Name)
	b = AppendKeys(wire.AppendField(b, "KeySchema"), d.Keys)
	b = wire.AppendText(b, "TableStatus", s.Status)
	b = AppendTime(b, "CreationDateTime", d.Created)
	b = d.appendThroughput(b)
	b = wire.AppendInt(b, "TableSizeBytes", t.counts().Bytes)
	b = wire.AppendInt(b, "ItemCount", t.counts().Items)
	b = wire.AppendText(b, "TableArn", s.ARN)
	b = wire.AppendText(b, "TableId", d.ID)
	b = d.appendBilling(b)
	b = appendIndexes(b, s.ARN, "LocalSecondaryIndexes", d.Local, false)
	b = appendIndexes(b, s.ARN, "GlobalSecondaryIndexes", d.Global, true)
	b = s.appendStream(b)
	return append(d.appendClass(b), '}')
}

// AppendDeleted appends the shorter TableDescription that DeleteTable returns.
func (t *Table) AppendDeleted(b []byte, s Shown) []byte {
	d := &t.Def
	b = wire.AppendText(append(b, '{'), "TableName", d.Name)
	b = wire.AppendText(b, "TableStatus", s.Status)
	b = d.appendThroughput(b)
	b = wire.AppendInt(b, "TableSizeBytes", t.counts().Bytes)
	b = wire.AppendInt(b, "ItemCount", t.counts().Items)
	b = wire.AppendText(b, "TableArn", s.ARN)
	b = wire.AppendText(b, "TableId", d.ID)
	return append(d.appendClass(d.appendBilling(b)), '}')
}

// appendBilling appends the billing mode, which is shown for tables that are or once were on
// demand.
func (d *Definition) appendBilling(b []byte) []byte {
	mode, at := "PROVISIONED", d.OnDemandSince
	if d.OnDemand {
		mode = "PAY_PER_REQUEST"
		if at.IsZero() {
			at = d.Created
		}
	}
	if at.IsZero() {
		return b
	}
	b = append(wire.AppendField(b, "BillingModeSummary"), '{')
	b = wire.AppendText(b, "BillingMode", mode)
	return append(AppendTime(b, "LastUpdateToPayPerRequestDateTime", at), '}')
}

// appendClass appends the table class and deletion protection.
func (d *Definition) appendClass(b []byte) []byte {
	if d.Class != "" {
		b = wire.AppendText(append(wire.AppendField(b, "TableClassSummary"), '{'), "TableClass", d.Class)
		b = append(b, '}')
	}
	return wire.AppendBool(b, "DeletionProtectionEnabled", d.Protected)
}

// appendThroughput appends the provisioned capacity and its changes.
func (d *Definition) appendThroughput(b []byte) []byte {
	b = append(wire.AppendField(b, "ProvisionedThroughput"), '{')
	if !d.increased.IsZero() {
		b = AppendTime(b, "LastIncreaseDateTime", d.increased)
	}
	if !d.reduced.IsZero() {
		b = AppendTime(b, "LastDecreaseDateTime", d.reduced)
	}
	b = wire.AppendInt(b, "NumberOfDecreasesToday", d.decreases)
	b = wire.AppendInt(b, "ReadCapacityUnits", d.Read)
	return append(wire.AppendInt(b, "WriteCapacityUnits", d.Write), '}')
}

// AppendKeys appends a key schema.
func AppendKeys(b []byte, keys []KeyElement) []byte {
	b = append(b, '[')
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendText(append(b, '{'), "AttributeName", k.AttributeName)
		b = append(wire.AppendText(b, "KeyType", k.KeyType), '}')
	}
	return append(b, ']')
}

// appendIndexes appends a list of secondary indexes, if there are any.
func appendIndexes(b []byte, arn, field string, all []Index, global bool) []byte {
	if len(all) == 0 {
		return b
	}
	b = append(wire.AppendField(b, field), '[')
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendIndex(b, arn, &all[i], global)
	}
	return append(b, ']')
}

// appendIndex appends one index. Only global ones have a status and a capacity.
func appendIndex(b []byte, arn string, ix *Index, global bool) []byte {
	b = wire.AppendText(append(b, '{'), "IndexName", ix.Name)
	b = AppendKeys(wire.AppendField(b, "KeySchema"), ix.Keys)
	b = append(wire.AppendField(b, "Projection"), '{')
	b = wire.AppendText(b, "ProjectionType", ix.Projection)
	if len(ix.NonKey) > 0 {
		b = append(wire.AppendField(b, "NonKeyAttributes"), '[')
		for i, n := range ix.NonKey {
			if i > 0 {
				b = append(b, ',')
			}
			b = wire.AppendString(b, n)
		}
		b = append(b, ']')
	}
	b = append(b, '}')
	if global {
		b = wire.AppendText(b, "IndexStatus", cmp.Or(ix.status, "ACTIVE"))
		if ix.building {
			b = wire.AppendBool(b, "Backfilling", false)
		}
		b = append(wire.AppendField(b, "ProvisionedThroughput"), '{')
		b = wire.AppendInt(b, "NumberOfDecreasesToday", 0)
		b = wire.AppendInt(b, "ReadCapacityUnits", ix.Read)
		b = append(wire.AppendInt(b, "WriteCapacityUnits", ix.Write), '}')
	}
	b = wire.AppendInt(b, "IndexSizeBytes", 0)
	b = wire.AppendInt(b, "ItemCount", 0)
	b = wire.AppendText(b, "IndexArn", arn+"/index/"+ix.Name)
	return append(b, '}')
}

// appendStream appends the newest stream, if there is one.
func (s *Shown) appendStream(b []byte) []byte {
	if s.StreamOn {
		b = append(wire.AppendField(b, "StreamSpecification"), '{')
		b = wire.AppendBool(b, "StreamEnabled", true)
		b = append(wire.AppendText(b, "StreamViewType", s.StreamView), '}')
	}
	if s.StreamARN != "" {
		b = wire.AppendText(b, "LatestStreamLabel", s.StreamLabel)
		b = wire.AppendText(b, "LatestStreamArn", s.StreamARN)
	}
	return b
}
