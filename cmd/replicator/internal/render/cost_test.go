package render_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/price"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// costsOf returns what `status --cost` knows of tables.
func costsOf(tables ...pipeline.TableStatus) *render.Costs {
	r := &render.Costs{Total: status.Total(tables), Prices: price.Assumed()}
	for i := range tables {
		t := render.TableCost{Source: tables[i].Source, Cost: tables[i].Cost, Idle: price.IdleOf(44, time.Second, 1)}
		r.Idle.Shards, r.Idle.Dollars = r.Idle.Shards+44, r.Idle.Dollars+t.Idle.Dollars
		r.Tables = append(r.Tables, t)
	}
	return r
}

func measured(name string, seconds float64, streamReads uint64) pipeline.TableStatus {
	now := status.CostCounts{StreamReads: streamReads, ReadUnits: 2 * seconds, Writes: uint64(100 * seconds)}
	return pipeline.TableStatus{Source: name, Target: name, Cost: status.CostBetween(status.CostCounts{}, now, seconds)}
}

// TestCostOfAMonthIsPrinted: 44 shards that are read once a second, 2 read units and 100 writes.
func TestCostOfAMonthIsPrinted(t *testing.T) {
	orders, users := measured("Orders", 3600, 44*3600), measured("Users", 180, 180)
	users.Cost.Passing = true
	r := costsOf(orders, users, pipeline.TableStatus{Source: "Old", Target: "old"})
	r.Bytes, r.Storages = 10e12, price.Choices(r.Total.Writes, 10e12)
	r.Instance = &render.InstanceCost{Dollars: 1423.5, Instance: bigtable.Instance{
		Name: "main", Edition: "enterprise_plus", Clusters: []bigtable.Cluster{{Name: "c1", Nodes: 3, Storage: "SSD"}},
	}}
	out := &strings.Builder{}
	if err := render.Cost(out, r); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	want := []string{
		"About 42.62 dollars a month, as measured for 3 min, for 2 of 3 tables; " +
			"that includes a copy or a resync, which ends.",
		"",
		"TABLE MEASURED STREAM READS/S READ UNITS/S WRITES/S ROWS READ/S NODES $ READS $ UNITS $ NODES $ A MONTH WHILE IDLE",
		"Orders 60 min 44.00 2.00 100.00 0.00 0.02 23.13 0.66 8.83 32.61 44 shards, read every 1s: 23.13",
		"Users 3 min 1.00 2.00 100.00 0.00 0.02 0.53 0.66 8.83 10.01 44 shards, read every 1s: 23.13",
		"Old – – – – – – – – – – 44 shards, read every 1s: 23.13",
		"together 3 min 45.00 4.00 200.00 0.00 0.04 23.65 1.31 17.66 42.62 132 shards: 69.39",
		"",
		"Not measured here: Old; the replicator that carries a table measures it.",
		"With a copy or a resync in the last hour: Users.",
		"An account has 2,500,000 stream reads a month free (0.50 dollars); they are not taken off. " +
			"Of a provisioned table read units cost nothing more.",
		"Instance main (enterprise plus): 3 nodes of SSD in c1, 1,423.50 dollars a month, whatever is used of them.",
		"A node of Enterprise Plus costs more than the price that is built in.",
		"Bigtable for 9.1 TiB, as DynamoDB counts them, by kind of storage:",
		"STORAGE NODES $ NODES $ STORAGE READING ALL ROWS ONCE",
		"SSD 2 949.00 1,583.25 6.3 hours of all nodes, 8.21 dollars",
		"HDD 1 474.50 242.14 15 hours of all nodes, 10.03 dollars",
		"tiered, Enterprise 1 474.50 not built in 77 hours of all nodes, 50.15 dollars",
		"tiered, Enterprise Plus 1 474.50 not built in 77 hours of all nodes, 50.15 dollars",
	}
	for i := range lines { // the columns are as wide as their widest cell
		lines[i] = strings.Join(strings.Fields(lines[i]), " ")
	}
	if d := cmp.Diff(want, lines[:min(len(want), len(lines))]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestNothingMeasuredIsNoNumber: the idle cost is computed all the same.
func TestNothingMeasuredIsNoNumber(t *testing.T) {
	out := &strings.Builder{}
	if err := render.Cost(out, costsOf(pipeline.TableStatus{Source: "Orders"})); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"Nothing is measured: no replicator answers", "44 shards, read every 1s: 23.13",
		"a whole node is 474.50 dollars"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("no %q in\n%s", part, out)
		}
	}
	for _, part := range []string{"About", "together", "Not measured here", "Bigtable for"} {
		if strings.Contains(out.String(), part) {
			t.Errorf("%q in\n%s", part, out)
		}
	}
}
