package main

import (
	"errors"
	"testing"
	"time"

	cloud "cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tailrace-cdc/replicator/bulk/worker"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/delegation"
)

// TestAttemptsEndWithTheOrder: when the order is closed, a write that is tried again ends, and the
// file gets no mark.
func TestAttemptsEndWithTheOrder(t *testing.T) {
	w := newWorld(t, 40, 1, func(int) bool { return false })
	w.open("c.1")
	x, err := worker.Open(t.Context(), worker.Place{
		Project: "local", Instance: "local", Pipeline: "shop", Table: tableName, Order: "c.1",
		AWSRegion: "us-east-1", Scratch: t.TempDir(), Endpoint: w.Bigtable.Addr(), S3Endpoint: w.S3.URL(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = x.Close() }()
	client, err := cloud.NewClient(t.Context(), "local", "local", option.WithEndpoint(w.Bigtable.Addr()),
		option.WithoutAuthentication(), option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	rows := func(prefix string) (n int) {
		all := cloud.PrefixRange(prefix)
		err := client.Open("orders").ReadRows(t.Context(), all, func(cloud.Row) bool { n++; return true })
		if err != nil {
			t.Error(err)
		}
		return n
	}
	w.Bigtable.Faults.RefuseRow([]byte("c1"), codes.Unavailable, -1)
	ended := make(chan error, 1)
	go func() {
		_, err := x.File(t.Context(), 0)
		ended <- err
	}()
	w.Until("the other rows are written", func() bool { return rows("c") > 20 })
	closed := delegation.Closing(w.order, "c.1", w.order.Life, delegation.CloseCancel, change.MillisOf(w.Clock.Now()))
	w.swap(w.order, closed)
	select {
	case err = <-ended:
	case <-time.After(2 * delegation.ReadEvery): // it has read the order since
		w.Bigtable.Faults.Calm()
		err = <-ended
	}
	if !errors.Is(err, worker.ErrClosed) {
		t.Errorf("the file ended with %v", err)
	}
	if n := rows("c1"); n > 0 || len(w.marks()) > 0 {
		t.Errorf("%d rows and %d marks were written under the closed order", n, len(w.marks()))
	}
}
