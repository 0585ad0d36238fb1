package bigtable

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/metadata"
)

// Latency returns the median time of n reads of a row that does not exist, one after the other,
// over the connection and with the app profile of the writes. A conditional write takes at least as
// long. A read before them opens the connection and does not count. Reads that would begin later
// than within are left out, but not the first that counts. The error of a target that does not
// exist names it.
func (c *Client) Latency(ctx context.Context, target string, n int, within time.Duration) (time.Duration, error) {
	var took []time.Duration
	end := time.Now().Add(within)
	if err := c.readNothing(ctx, target); err != nil {
		return 0, err
	}
	for len(took) == 0 || len(took) < n && time.Now().Before(end) {
		begin := time.Now()
		if err := c.readNothing(ctx, target); err != nil {
			return 0, err
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// noRow is a key that no mapping makes. A row that another program wrote there changes nothing.
var noRow = []byte{0}

func (c *Client) readNothing(ctx context.Context, target string) error {
	t := c.table(target)
	call, cancel := context.WithTimeout(metadata.NewOutgoingContext(ctx, t.headers[ofStream]), c.opt.Timeout)
	defer cancel()
	rows, err := btpb.NewBigtableClient(c.conn).ReadRows(call, &btpb.ReadRowsRequest{
		TableName: t.name, AppProfileId: c.opt.AppProfile, RowsLimit: 1,
		Rows: &btpb.RowSet{RowKeys: [][]byte{noRow}}, Filter: latest(),
	})
	for err == nil {
		_, err = rows.Recv()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	if ctx.Err() != nil {
		return interrupted(ctx, err)
	}
	return err
}
