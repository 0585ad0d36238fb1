package bigtable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// column is a column of a row with its cells, newest first.
type column struct {
	family    string
	qualifier []byte
	stamps    []int64
	values    [][]byte
}

// scan calls each with every row that a request asks for, past the front. The caller holds
// the table's lock alone.
func (f *Front) scan(ctx context.Context, req *btpb.ReadRowsRequest, each func(key []byte, cols []column) error) error {
	ctx, cancel := context.WithCancel(f.self(ctx))
	defer cancel()
	rows, err := btpb.NewBigtableClient(f.conn).ReadRows(ctx, req)
	if err != nil {
		return fmt.Errorf("read %s: %w", req.TableName, err)
	}
	var key []byte
	var cols []column
	for {
		res, err := rows.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", req.TableName, err)
		}
		for _, chunk := range res.Chunks {
			if len(chunk.RowKey) > 0 {
				key = chunk.RowKey
			}
			cols = addCell(cols, chunk)
			if chunk.GetCommitRow() {
				if err := each(key, cols); err != nil {
					return err
				}
				cols = nil
			}
		}
	}
}

func addCell(cols []column, chunk *btpb.ReadRowsResponse_CellChunk) []column {
	if k := len(cols); chunk.FamilyName != nil || chunk.Qualifier != nil || k == 0 {
		next := column{qualifier: chunk.Qualifier.GetValue()}
		switch {
		case chunk.FamilyName != nil:
			next.family = chunk.FamilyName.GetValue()
		case k > 0:
			next.family = cols[k-1].family
		}
		if k == 0 || cols[k-1].family != next.family || string(cols[k-1].qualifier) != string(next.qualifier) {
			cols = append(cols, next)
		}
	}
	c := &cols[len(cols)-1]
	c.stamps, c.values = append(c.stamps, chunk.TimestampMicros), append(c.values, chunk.Value)
	return cols
}

// Collect deletes what the tables' garbage-collection rules give up at the sandbox's
// present, and returns how many cells that were. Nothing else ever collects: like the
// service, the front leaves garbage readable until then.
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

// expired decides about the at-newest cell of a column (from 0).
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

func deleteCell(c column, ts int64) *btpb.Mutation {
	return &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromColumn_{DeleteFromColumn: &btpb.Mutation_DeleteFromColumn{
		FamilyName: c.family, ColumnQualifier: c.qualifier,
		TimeRange: &btpb.TimestampRange{StartTimestampMicros: ts, EndTimestampMicros: ts + 1000},
	}}}
}

const batchRows = 1000

// mutate writes entries past the front.
func (f *Front) mutate(ctx context.Context, name string, entries []*btpb.MutateRowsRequest_Entry) error {
	client := btpb.NewBigtableClient(f.conn)
	for len(entries) > 0 {
		n := min(batchRows, len(entries))
		stream, err := client.MutateRows(f.self(ctx), &btpb.MutateRowsRequest{TableName: name, Entries: entries[:n]})
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		for {
			res, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return fmt.Errorf("write %s: %w", name, err)
			}
			for _, e := range res.Entries {
				if e.Status.GetCode() != 0 {
					return fmt.Errorf("write %s: %s", name, e.Status.GetMessage())
				}
			}
		}
		entries = entries[n:]
	}
	return nil
}
