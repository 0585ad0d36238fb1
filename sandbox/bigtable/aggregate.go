package bigtable

import (
	"bytes"
	"context"
	"encoding/binary"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// The emulator computes sums, but for a maximum or a minimum it stores the last value. The front
// computes these two under the table's lock and sets the result. For a count of distinct values the
// last value is stored too, where the service stores a sketch.

// mergeOf returns the function with which a family merges two values; nil when the emulator merges
// them.
func mergeOf(t *btapb.Type) func(have, add int64) int64 {
	switch t.GetAggregateType().GetAggregator().(type) {
	case *btapb.Type_Aggregate_Max_:
		return func(have, add int64) int64 { return max(have, add) }
	case *btapb.Type_Aggregate_Min_:
		return func(have, add int64) int64 { return min(have, add) }
	}
	return nil
}

// merges reports whether the front has to merge for some of the mutations. The caller holds the
// table's lock.
func (t *table) merges(branches ...[]*btpb.Mutation) bool {
	for _, ms := range branches {
		for _, m := range ms {
			if add := m.GetAddToCell(); add != nil && mergeOf(t.families[add.FamilyName]) != nil {
				return true
			}
		}
	}
	return false
}

// lock takes the table's lock, exclusively when asked to or when a mutation merges, which reads
// before it writes.
func (t *table) lock(exclusive bool, branches ...[]*btpb.Mutation) (unlock func()) {
	if !exclusive {
		t.mu.RLock()
		if !t.merges(branches...) {
			return t.mu.RUnlock
		}
		t.mu.RUnlock()
	}
	t.mu.Lock()
	return t.mu.Unlock
}

// merge replaces additions to a maximum or minimum by the merged values. The caller holds the
// table's lock exclusively.
func (f *Front) merge(ctx context.Context, name string, t *table, key []byte, ms []*btpb.Mutation) error {
	var merged []*btpb.Mutation_SetCell // cells that these mutations have set so far
	emptied := false
	for i, m := range ms {
		emptied = emptied || m.GetDeleteFromRow() != nil
		add := m.GetAddToCell()
		if add == nil || mergeOf(t.families[add.FamilyName]) == nil {
			continue
		}
		set := &btpb.Mutation_SetCell{FamilyName: add.FamilyName, ColumnQualifier: add.ColumnQualifier.GetRawValue(),
			TimestampMicros: add.Timestamp.GetRawTimestampMicros()}
		have, err := f.cell(ctx, name, key, set)
		if err != nil {
			return err
		}
		if emptied {
			have = nil
		}
		for _, s := range merged {
			if s.FamilyName == set.FamilyName && bytes.Equal(s.ColumnQualifier, set.ColumnQualifier) &&
				s.TimestampMicros == set.TimestampMicros {
				have = s.Value
			}
		}
		value := add.Input.GetIntValue()
		if len(have) == 8 {
			value = mergeOf(t.families[add.FamilyName])(int64(binary.BigEndian.Uint64(have)), value)
		}
		set.Value = binary.BigEndian.AppendUint64(nil, uint64(value))
		merged = append(merged, set)
		ms[i] = &btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: set}}
	}
	return nil
}

// cell returns the value of the cell that a mutation is about to set, nil if there is none.
func (f *Front) cell(ctx context.Context, name string, key []byte, at *btpb.Mutation_SetCell) (value []byte,
	err error) {
	within := &btpb.ColumnRange{FamilyName: at.FamilyName,
		StartQualifier: &btpb.ColumnRange_StartQualifierClosed{StartQualifierClosed: at.ColumnQualifier},
		EndQualifier:   &btpb.ColumnRange_EndQualifierClosed{EndQualifierClosed: at.ColumnQualifier}}
	req := &btpb.ReadRowsRequest{TableName: name, Rows: &btpb.RowSet{RowKeys: [][]byte{key}},
		Filter: &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnRangeFilter{ColumnRangeFilter: within}}}
	err = f.scan(ctx, req, func(_ []byte, cols []column) error {
		for _, c := range cols {
			for i, ts := range c.stamps {
				if ts == at.TimestampMicros {
					value = c.values[i]
				}
			}
		}
		return nil
	})
	return value, err
}
