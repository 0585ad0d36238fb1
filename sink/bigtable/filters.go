package bigtable

import (
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
	"github.com/tailrace-cdc/replicator/transform"
)

func chain(filters ...*btpb.RowFilter) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: filters}}}
}

// latest selects the newest cell of each column.
func latest() *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerColumnLimitFilter{CellsPerColumnLimitFilter: 1}}
}

// columnOf selects the cells of one column.
func columnOf(family string, qualifier []byte) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnRangeFilter{ColumnRangeFilter: &btpb.ColumnRange{
		FamilyName:     family,
		StartQualifier: &btpb.ColumnRange_StartQualifierClosed{StartQualifierClosed: qualifier},
		EndQualifier:   &btpb.ColumnRange_EndQualifierClosed{EndQualifierClosed: qualifier},
	}}}
}

// cellValue selects the newest cell of a column of the state table if it has this value.
func cellValue(qualifier string, value []byte) *btpb.RowFilter {
	equal := &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRangeFilter{ValueRangeFilter: &btpb.ValueRange{
		StartValue: &btpb.ValueRange_StartValueClosed{StartValueClosed: value},
		EndValue:   &btpb.ValueRange_EndValueClosed{EndValueClosed: value},
	}}}
	return chain(columnOf(tableschema.StateFamily, []byte(qualifier)), latest(), equal)
}

// atTime selects the cells with a time in ms.
func atTime(ms int64) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_TimestampRangeFilter{TimestampRangeFilter: &btpb.TimestampRange{
		StartTimestampMicros: ms * 1000, EndTimestampMicros: (ms + 1) * 1000,
	}}}
}

// exactGuard selects the newest guard of an item, if it has exactly this version.
func exactGuard(qualifier []byte, version change.Version) *btpb.RowFilter {
	at := atTime(int64(version))
	newest := func(family string) *btpb.RowFilter { return chain(columnOf(family, qualifier), latest(), at) }
	return &btpb.RowFilter{Filter: &btpb.RowFilter_Interleave_{Interleave: &btpb.RowFilter_Interleave{
		Filters: []*btpb.RowFilter{newest(transform.LiveFamily), newest(transform.DeadFamily)},
	}}}
}
