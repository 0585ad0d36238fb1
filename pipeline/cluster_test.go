package pipeline_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	cloud "cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
)

// TestFailOverToAnotherClusterResyncsTheTable: replication between clusters lags, so the other
// cluster may lack the last changes and their guards.
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

// TestFailOverIsNoticedAfterARefusal, Rule 13: that the app profile may not be read, or routes to
// several clusters, ends no watch: the fail-over that follows is noticed.
func TestFailOverIsNoticedAfterARefusal(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 1, 20)
	r.settle()
	w.front.Faults.RefuseSettings(codes.PermissionDenied, -1)
	r.until("the profile may not be read", func() bool { return w.saidOf("bigtable.appProfiles.get") > 0 })
	w.front.Faults.RefuseSettings(codes.PermissionDenied, 0)
	w.front.Faults.MultiCluster("default")
	r.until("it routes to several clusters", func() bool { return r.table("Orders").Code == "premise" })
	w.front.Faults.Calm()
	r.until("the table goes on with nothing to write", func() bool { return r.table("Orders").State == "running" })
	r.until("the cluster is noted", func() bool {
		row, err := r.sink.LoadState(t.Context(), "shop", "Orders")
		return err == nil && row.Cluster == "sandbox"
	})
	r.loseRow("Orders", slices.Sorted(maps.Keys(r.stored("Orders")))[0]) // what the other cluster lacks
	w.front.Faults.FailOver("second")
	r.hastenUntil("the table is resynced", func() bool {
		last := r.fold("Orders").LastResync
		return last != nil && strings.Contains(last.ID, "second")
	})
	r.equal()
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
