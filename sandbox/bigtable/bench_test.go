package bigtable_test

import (
	"fmt"
	"testing"

	"cloud.google.com/go/bigtable"
	"golang.org/x/sync/errgroup"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"cloud.google.com/go/bigtable/bttest"
	front "github.com/tailrace-cdc/replicator/sandbox/bigtable"
)

// BenchmarkCheckAndMutateRow compares the front with the bare emulator.
func BenchmarkCheckAndMutateRow(b *testing.B) {
	b.Run("front", func(b *testing.B) {
		f, err := front.Open(front.Options{Addr: "127.0.0.1:0"})
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		benchmarkGuarded(b, f.Addr())
	})
	b.Run("bare", func(b *testing.B) {
		s, err := bttest.NewServer("127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		benchmarkGuarded(b, s.Addr)
	})
}

func benchmarkGuarded(b *testing.B, addr string) {
	b.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	admin, err := bigtable.NewAdminClient(b.Context(), "p", "i", option.WithGRPCConn(conn))
	if err != nil {
		b.Fatal(err)
	}
	conf := &bigtable.TableConf{TableID: "orders",
		Families: map[string]bigtable.GCPolicy{"d": bigtable.MaxVersionsPolicy(1), "t": bigtable.NoGcPolicy()}}
	if err := admin.CreateTableFromConf(b.Context(), conf); err != nil {
		b.Fatal(err)
	}
	cfg := bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}, DisableSession: true}
	client, err := bigtable.NewClientWithConfig(b.Context(), "p", "i", cfg, option.WithGRPCConn(conn))
	if err != nil {
		b.Fatal(err)
	}
	table := client.Open("orders")
	var calls errgroup.Group
	calls.SetLimit(64)
	n := 0
	for b.Loop() {
		n++
		key := fmt.Sprint("row", n%10000)
		calls.Go(func() error { return table.Apply(b.Context(), key, guarded(set(1, "value"))) })
	}
	if err := calls.Wait(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
}
