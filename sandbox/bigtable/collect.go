package bigtable

import (
	"context"
	"fmt"
	"sort"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// Collect deletes the cells that the tables' garbage-collection rules no longer keep, by the
// sandbox's clock, and returns their number. Nothing else collects garbage: as in the service, such
// cells stay readable until then.
func (f *Front) Collect(ctx context.Context) (int, error) {
	total := 0
	for _, name := range f.Tables() {
		n, err := f.collect(ctx, name)
		total += n
		if err != nil {
			return total, fmt.Errorf("collect garbage of %s: %w", name, err)
		}
	}
	return total, nil
}

// Tables returns the full names of all tables, sorted.
func (f *Front) Tables() []string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	names := make([]string, 0, len(f.tables))
	for name := range f.tables {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// collect is Collect for one table.
func (f *Front) collect(ctx context.Context, name string) (int, error) {
	t, err := f.tableOf(name)
	if err != nil {
		return 0, nil // deleted meanwhile
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now, total := f.clock.Now(), 0
	var entries []*btpb.MutateRowsRequest_Entry
	err = f.scan(ctx, &btpb.ReadRowsRequest{TableName: name}, func(key []byte, cols []column) error {
		var ms []*btpb.Mutation
		for _, c := range cols {
			for i, ts := range c.stamps {
				if expired(t.rules[c.family], i, ts, now) {
					ms = append(ms, deleteCell(c, ts))
				}
			}
		}
		if total += len(ms); len(ms) > 0 {
			entries = append(entries, &btpb.MutateRowsRequest_Entry{RowKey: key, Mutations: ms})
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return total, f.mutate(ctx, name, entries)
}

// expired reports whether a rule no longer keeps a cell. at is the index of the cell in its column,
// newest first.
func expired(rule *btapb.GcRule, at int, micros int64, now time.Time) bool {
	switch r := rule.GetRule().(type) {
	case *btapb.GcRule_MaxNumVersions:
		return at >= int(r.MaxNumVersions)
	case *btapb.GcRule_MaxAge:
		return micros < now.Add(-r.MaxAge.AsDuration()).UnixMicro()
	case *btapb.GcRule_Union_:
		for _, one := range r.Union.Rules {
			if expired(one, at, micros, now) {
				return true
			}
		}
	case *btapb.GcRule_Intersection_:
		for _, one := range r.Intersection.Rules {
			if !expired(one, at, micros, now) {
				return false
			}
		}
		return len(r.Intersection.Rules) > 0
	}
	return false
}

// deleteCell returns the mutation that deletes one cell.
func deleteCell(c column, ts int64) *btpb.Mutation {
	return &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromColumn_{DeleteFromColumn: &btpb.Mutation_DeleteFromColumn{
		FamilyName: c.family, ColumnQualifier: c.qualifier,
		TimeRange: &btpb.TimestampRange{StartTimestampMicros: ts, EndTimestampMicros: ts + 1000},
	}}}
}
