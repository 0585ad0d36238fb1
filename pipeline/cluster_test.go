package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	cloud "cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// TestFailOverToAnotherClusterResyncsTheTable: replication between clusters lags, so the other cluster may lack the
// last changes and their guards.
func TestFailOverToAnotherClusterResyncsTheTable(t *testing.T) {
	long(t, "starts a pipeline twice")
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	for i := range 20 {
		w.put("Orders", fmt.Sprint("p", i), "s", `"v":{"N":"1"}`)
	}
	r.settle()
	cluster := func() string {
		row, err := r.sink.LoadState(t.Context(), "shop", "Orders")
		if err != nil {
			t.Fatal(err)
		}
		return row.Cluster
	}
	r.until("the cluster is noted", func() bool { return cluster() == "sandbox" })
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r = w.openAs(false, "Orders")
	r.loseRow("Orders", "p3#s") // what the other cluster lacks
	w.front.Faults.FailOver("second")
	r.begin()
	r.until("the table is red because of it", func() bool {
		st := r.table("Orders")
		return st.State == "healing" && strings.Contains(strings.Join(st.Reasons, " "), "another cluster")
	})
	if got := cluster(); got != "sandbox" {
		t.Errorf("the row names %q before the resync is complete", got)
	}
	w.put("Orders", "during", "s", `"v":{"N":"1"}`)
	r.healed()
	r.until("the new cluster is noted", func() bool { return cluster() == "second" })
	if n := r.fold("Orders").LastResync.Result.Written; n != 1 {
		t.Errorf("%d items were written, want the one that was lost", n)
	}
}

// loseRow deletes a row of a target with its guards, behind the pipeline's back.
func (w *world) loseRow(table, key string) {
	w.t.Helper()
	client, err := cloud.NewClient(w.t.Context(), "local", "local", option.WithEndpoint(w.front.Addr()),
		option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		w.t.Fatal(err)
	}
	defer client.Close()
	m := cloud.NewMutation()
	m.DeleteRow()
	if err := client.Open(target(table)).Apply(w.t.Context(), key, m); err != nil {
		w.t.Fatal(err)
	}
}
