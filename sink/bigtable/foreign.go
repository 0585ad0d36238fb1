package bigtable

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tailrace-cdc/replicator/failure"
)

// DeleteCells deletes cells of a row, each at exactly its time. So it deletes nothing that is
// written meanwhile, and may be repeated.
func (c *Client) DeleteCells(ctx context.Context, target string, row []byte, cells []Cell) error {
	t := c.table(target)
	r := requests.Get().(*request)
	defer r.free()
	r.key, r.of = row, ofCopy
	r.body, r.skip = r.body[:0], r.skip[:0]
	for i := range cells {
		at := cells[i].Time.UnixMilli()
		r.body = append(r.body, deleteColumn(cells[i].Family, cells[i].Qualifier, at, at+1))
	}
	var err error
	nothing := &btpb.RowFilter{Filter: &btpb.RowFilter_BlockAllFilter{BlockAllFilter: true}} // so the body is executed
	if r.filter, err = proto.Marshal(nothing); err == nil {
		err = t.deliver(ctx, r, 0)
	}
	if err != nil {
		return t.counted(fmt.Errorf("delete cells: %w", asRejected(err)))
	}
	t.metrics.outcomes[failure.None].Inc()
	return nil
}
