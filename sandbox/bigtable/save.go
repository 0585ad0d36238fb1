package bigtable

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/proto"
)

// format is the first line of a saved file.
const format = "tailrace-sandbox-bigtable 1\n"

// Save writes all tables with their rows. Each table is written as of one moment.
func (f *Front) Save(ctx context.Context, w io.Writer) error {
	if _, err := io.WriteString(w, format); err != nil {
		return fmt.Errorf("save bigtable: %w", err)
	}
	for _, name := range f.Tables() {
		if err := f.saveTable(ctx, w, name); err != nil {
			return fmt.Errorf("save bigtable: %w", err)
		}
	}
	return nil
}

// saveTable writes a table, then an entry for each of its rows, then an empty entry.
func (f *Front) saveTable(ctx context.Context, w io.Writer, name string) error {
	t, err := f.tableOf(name)
	if err != nil {
		return nil // deleted meanwhile
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	families := map[string]*btapb.ColumnFamily{}
	for family, holds := range t.families {
		families[family] = &btapb.ColumnFamily{GcRule: t.rules[family], ValueType: holds}
	}
	if err := put(w, &btapb.Table{Name: name, ColumnFamilies: families}); err != nil {
		return err
	}
	err = f.scan(ctx, &btpb.ReadRowsRequest{TableName: name}, func(key []byte, cols []column) error {
		e := &btpb.MutateRowsRequest_Entry{RowKey: key}
		for _, c := range cols {
			for i := range c.stamps {
				e.Mutations = append(e.Mutations, &btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
					FamilyName: c.family, ColumnQualifier: c.qualifier, TimestampMicros: c.stamps[i], Value: c.values[i],
				}}})
			}
		}
		return put(w, e)
	})
	if err != nil {
		return err
	}
	return put(w, &btpb.MutateRowsRequest_Entry{})
}

// Restore reads what Save wrote into a front without tables.
func (f *Front) Restore(ctx context.Context, r io.Reader) error {
	head := make([]byte, len(format))
	if _, err := io.ReadFull(r, head); err != nil || string(head) != format {
		return fmt.Errorf("restore bigtable: not a file of this version (%q, %w)", head, err)
	}
	for {
		full := &btapb.Table{}
		err := get(r, full)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = f.restoreTable(ctx, r, full)
		}
		if err != nil {
			return fmt.Errorf("restore bigtable: %w", err)
		}
	}
}

// restoreTable makes a table and writes its rows, up to the empty entry.
func (f *Front) restoreTable(ctx context.Context, r io.Reader, full *btapb.Table) error {
	parent, id, ok := cutTable(full.Name)
	if !ok {
		return fmt.Errorf("table name %q", full.Name)
	}
	t := &table{families: map[string]*btapb.Type{}, rules: map[string]*btapb.GcRule{}}
	for family, cf := range full.ColumnFamilies {
		t.recordFamily(family, cf)
	}
	req := &btapb.CreateTableRequest{Parent: parent, TableId: id, Table: &btapb.Table{ColumnFamilies: full.ColumnFamilies}}
	if _, err := btapb.NewBigtableTableAdminClient(f.conn).CreateTable(f.ownContext(ctx), req); err != nil {
		return fmt.Errorf("create %s: %w", full.Name, err)
	}
	f.mu.Lock()
	f.tables[full.Name] = t
	f.mu.Unlock()
	var batch []*btpb.MutateRowsRequest_Entry
	for {
		e := &btpb.MutateRowsRequest_Entry{}
		if err := get(r, e); err != nil {
			return fmt.Errorf("rows of %s: %w", full.Name, err)
		}
		if len(e.RowKey) > 0 {
			batch = append(batch, e)
			t.widths.add(e.RowKey, cellsSet(e.Mutations))
		}
		if len(e.RowKey) == 0 || len(batch) == batchRows {
			if err := f.mutate(ctx, full.Name, batch); err != nil {
				return err
			}
			batch = nil
		}
		if len(e.RowKey) == 0 {
			return nil
		}
	}
}

// cutTable splits a table's full name into its instance and its id.
func cutTable(full string) (parent, id string, ok bool) {
	at := strings.LastIndex(full, "/tables/")
	if at < 0 {
		return "", "", false
	}
	return full[:at], full[at+len("/tables/"):], true
}

// put writes a message after its length, four bytes.
func put(w io.Writer, m proto.Message) error {
	raw, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(raw))), raw...))
	return err
}

// get reads what put wrote; io.EOF means that there is no further message.
func get(r io.Reader, m proto.Message) error {
	var n [4]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return err
	}
	raw := make([]byte, binary.BigEndian.Uint32(n[:]))
	if _, err := io.ReadFull(r, raw); err != nil {
		return fmt.Errorf("message of %d bytes: %w", len(raw), err)
	}
	return proto.Unmarshal(raw, m)
}
