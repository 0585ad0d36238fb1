package dynamo

import (
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/wire"
)

func (s *Server) arn(name string) string {
	return "arn:aws:dynamodb:" + s.o.Region + ":" + s.o.Account + ":table/" + name
}

func appendTime(b []byte, name string, t time.Time) []byte {
	return wire.AppendFloat(b, name, float64(t.UnixMilli())/1000)
}

// appendTable writes a TableDescription. The caller holds the table's lock.
func (s *Server) appendTable(b []byte, t *Table, status string) []byte {
	d := &t.def
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
	b = appendKeys(wire.AppendField(b, "KeySchema"), d.Keys)
	b = wire.AppendText(b, "TableStatus", status)
	b = appendTime(b, "CreationDateTime", d.Created)
	b = d.appendThroughput(b)
	b = wire.AppendInt(b, "TableSizeBytes", t.items.Bytes())
	b = wire.AppendInt(b, "ItemCount", int64(t.items.Len()))
	b = wire.AppendText(b, "TableArn", s.arn(d.Name))
	b = wire.AppendText(b, "TableId", d.ID)
	if d.OnDemand {
		b = append(wire.AppendField(b, "BillingModeSummary"), '{')
		b = wire.AppendText(b, "BillingMode", "PAY_PER_REQUEST")
		b = append(appendTime(b, "LastUpdateToPayPerRequestDateTime", d.Created), '}')
	}
	b = s.appendIndexes(b, "LocalSecondaryIndexes", d, d.Local, false)
	b = s.appendIndexes(b, "GlobalSecondaryIndexes", d, d.Global, true)
	b = s.appendStream(b, d.Name)
	if d.Class != "" {
		b = wire.AppendText(append(wire.AppendField(b, "TableClassSummary"), '{'), "TableClass", d.Class)
		b = append(b, '}')
	}
	b = wire.AppendBool(b, "DeletionProtectionEnabled", d.Protected)
	return append(b, '}')
}

func (d *Definition) appendThroughput(b []byte) []byte {
	b = append(wire.AppendField(b, "ProvisionedThroughput"), '{')
	if !d.increased.IsZero() {
		b = appendTime(b, "LastIncreaseDateTime", d.increased)
	}
	if !d.reduced.IsZero() {
		b = appendTime(b, "LastDecreaseDateTime", d.reduced)
	}
	b = wire.AppendInt(b, "NumberOfDecreasesToday", d.decreases)
	b = wire.AppendInt(b, "ReadCapacityUnits", d.Read)
	return append(wire.AppendInt(b, "WriteCapacityUnits", d.Write), '}')
}

func appendKeys(b []byte, keys []KeyElement) []byte {
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

func (s *Server) appendIndexes(b []byte, field string, d *Definition, all []Index, global bool) []byte {
	if len(all) == 0 {
		return b
	}
	b = append(wire.AppendField(b, field), '[')
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = s.appendIndex(b, d.Name, &all[i], global)
	}
	return append(b, ']')
}

func (s *Server) appendIndex(b []byte, tableName string, ix *Index, global bool) []byte {
	b = wire.AppendText(append(b, '{'), "IndexName", ix.Name)
	b = appendKeys(wire.AppendField(b, "KeySchema"), ix.Keys)
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
		b = wire.AppendText(b, "IndexStatus", "ACTIVE")
		b = append(wire.AppendField(b, "ProvisionedThroughput"), '{')
		b = wire.AppendInt(b, "NumberOfDecreasesToday", 0)
		b = wire.AppendInt(b, "ReadCapacityUnits", ix.Read)
		b = append(wire.AppendInt(b, "WriteCapacityUnits", ix.Write), '}')
	}
	b = wire.AppendInt(b, "IndexSizeBytes", 0)
	b = wire.AppendInt(b, "ItemCount", 0)
	b = wire.AppendText(b, "IndexArn", s.arn(tableName)+"/index/"+ix.Name)
	return append(b, '}')
}

func (s *Server) appendStream(b []byte, name string) []byte {
	arn, label, view, enabled := s.o.Stream.Describe(name)
	if enabled {
		b = append(wire.AppendField(b, "StreamSpecification"), '{')
		b = wire.AppendBool(b, "StreamEnabled", true)
		b = append(wire.AppendText(b, "StreamViewType", view), '}')
	}
	if arn != "" {
		b = wire.AppendText(b, "LatestStreamLabel", label)
		b = wire.AppendText(b, "LatestStreamArn", arn)
	}
	return b
}
