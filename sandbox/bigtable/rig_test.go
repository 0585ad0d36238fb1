package bigtable_test

import (
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	front "github.com/tailrace-cdc/replicator/sandbox/bigtable"
	"github.com/tailrace-cdc/replicator/sandbox/clock"
)

// rig is a front with the service's own clients.
type rig struct {
	t     *testing.T
	front *front.Front
	clock *clock.Clock
	data  *bigtable.Client
	admin *bigtable.AdminClient
	table *bigtable.Table
}

func newRig(t *testing.T) *rig {
	t.Helper()
	c := clock.NewVirtual(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	r := &rig{t: t, front: openFront(t, c), clock: c}
	r.connect()
	err := r.admin.CreateTableFromConf(t.Context(), &bigtable.TableConf{TableID: "orders",
		Families: map[string]bigtable.GCPolicy{
			"d": bigtable.MaxVersionsPolicy(1), "t": bigtable.MaxAgePolicy(7 * 24 * time.Hour),
		}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func openFront(t *testing.T, c *clock.Clock) *front.Front {
	t.Helper()
	f, err := front.Open(front.Options{Addr: "127.0.0.1:0", Seed: 1, Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func (r *rig) connect() {
	r.t.Helper()
	conn, err := grpc.NewClient(r.front.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	cfg := bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}, DisableSession: true}
	if r.data, err = bigtable.NewClientWithConfig(r.t.Context(), "p", "i", cfg, option.WithGRPCConn(conn)); err != nil {
		r.t.Fatal(err)
	}
	if r.admin, err = bigtable.NewAdminClient(r.t.Context(), "p", "i", option.WithGRPCConn(conn)); err != nil {
		r.t.Fatal(err)
	}
	r.table = r.data.Open("orders")
}

func set(ts int64, value string) *bigtable.Mutation {
	m := bigtable.NewMutation()
	m.Set("d", "a", bigtable.Timestamp(ts*1000), []byte(value))
	return m
}

// guarded returns the conditional form of a mutation.
func guarded(m *bigtable.Mutation) *bigtable.Mutation {
	return bigtable.NewCondMutation(bigtable.ChainFilters(bigtable.FamilyFilter("t"), bigtable.LatestNFilter(1)), nil, m)
}

func (r *rig) value(key string) string {
	r.t.Helper()
	row, err := r.table.ReadRow(r.t.Context(), key, bigtable.RowFilter(bigtable.LatestNFilter(1)))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, items := range row {
		return string(items[0].Value)
	}
	return ""
}

func wantCode(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("code %v (%v), want %v", got, err, want)
	}
}
