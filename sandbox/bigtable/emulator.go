package bigtable

import (
	"context"
	"errors"
	"fmt"
	"io"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"google.golang.org/grpc/metadata"
)

// passHeader is the header by which the front recognises its own calls.
const passHeader = "sandbox-pass"

// isOwnCall reports whether a call is the front's own. Such a call goes to the emulator without
// faults or limits.
func (f *Front) isOwnCall(ctx context.Context) bool {
	got := metadata.ValueFromIncomingContext(ctx, passHeader)
	return len(got) == 1 && got[0] == f.pass
}

// ownContext returns a context that marks calls as the front's own.
func (f *Front) ownContext(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, passHeader, f.pass)
}

// column is one column of a row, with the timestamps and values of its cells, newest first.
type column struct {
	family    string
	qualifier []byte
	stamps    []int64
	values    [][]byte
}

// scan calls each for every row that a request selects. The caller holds the table's lock
// exclusively.
func (f *Front) scan(ctx context.Context, req *btpb.ReadRowsRequest, each func(key []byte, cols []column) error) error {
	ctx, cancel := context.WithCancel(f.ownContext(ctx))
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

// addCell adds a chunk of a reply to the columns of its row. A chunk without family or qualifier
// repeats the last.
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

// batchRows is how many rows one call of mutate writes.
const batchRows = 1000

// mutate applies entries to a table. The caller holds the table's lock exclusively, or is its only
// user.
func (f *Front) mutate(ctx context.Context, name string, entries []*btpb.MutateRowsRequest_Entry) error {
	client := btpb.NewBigtableClient(f.conn)
	for len(entries) > 0 {
		n := min(batchRows, len(entries))
		stream, err := client.MutateRows(f.ownContext(ctx), &btpb.MutateRowsRequest{TableName: name, Entries: entries[:n]})
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
