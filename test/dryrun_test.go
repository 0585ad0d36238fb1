package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tailrace-cdc/replicator/pipeline/dryrun"
	"github.com/tailrace-cdc/replicator/sandbox"
)

// TestDryRunWritesNothing: it needs neither Bigtable nor a directory for the log, makes only calls
// that read, and leaves the log of a running replicator as it is. --json prints one object.
func TestDryRunWritesNothing(t *testing.T) {
	w := newWorld(t, 1)
	w.tables = []string{"{source: Orders, target: orders, backfill: none}"}
	w.prepare("Orders")
	w.Put("Orders", "hats", "fedora", `"price":{"N":"12.50"}`)
	x := w.dryRun()
	if x.Schema != 1 || x.From != "trim_horizon" || len(x.Tables) != 1 || x.Tables[0].Records != 1 ||
		x.Tables[0].Rows != 1 || x.Estimate.Nodes != 1 {
		t.Errorf("%+v", x)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "data")); !os.IsNotExist(err) {
		t.Errorf("the directory of the log: %v", err)
	}
	d := w.run()
	d.settle("Orders")
	before := w.status().Tables[0]
	if x := w.dryRun(); x.Tables[0].Records != 1 || len(x.Warnings) == 0 {
		t.Errorf("beside the owner: %+v", x)
	}
	d.settle("Orders")
	after := w.status().Tables[0]
	if after.Epoch != before.Epoch || after.Owner != before.Owner || after.Changes != before.Changes {
		t.Errorf("the log was owned by %s in epoch %d; then %+v", before.Owner, before.Epoch, after)
	}
	w.Equal("Orders")
	w.refused(2, "belong to --dry-run", "run", "--duration", "1s")
	w.refused(2, "not a start of a dry run", "run", "--dry-run", "--from", "yesterday")
}

// dryRun runs `run --dry-run` from the trim horizon until it has counted all records that the
// stream of Orders holds, and returns its report. Its configuration is that of the world, but no
// Bigtable listens there, and its calls to DynamoDB are its own: none but reads.
func (w *world) dryRun() (report dryrun.Report) {
	w.t.Helper()
	own := &traps{}
	var mu sync.Mutex
	calls := map[string]int{}
	own.watch(func(at point) {
		mu.Lock()
		defer mu.Unlock()
		calls[at.op]++
	})
	tap := newHTTPTap(w.t, own, w.DynamoDB)
	text, err := os.ReadFile(filepath.Join(w.dir, "tailrace.yaml"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.write("dry.yaml", strings.NewReplacer(w.dynamo.url, tap.url, w.bigtable.addr, sandbox.FreeAddr(w.t)).
		Replace(string(text)))
	read := own.set(pageRead, 1, false)
	d := w.run("-c", "dry.yaml", "--dry-run", "--from", "trim_horizon", "--json")
	d.untilHit(read)
	// A shard's children are looked for when its last page was received; what was received is
	// counted.
	listed := own.set(point{op: "DescribeStream"}, w.Stream.Rotate("Orders"), false)
	d.untilHit(listed)
	if err := d.cmd.Process.Signal(syscall.SIGINT); err != nil {
		w.t.Fatal(err)
	}
	if code := d.exit(); code != 0 {
		w.t.Fatalf("exit %d\n%s", code, d.output)
	}
	if err := json.Unmarshal([]byte(tail(d.output.String(), 1)), &report); err != nil {
		w.t.Fatalf("%v\n%s", err, d.output)
	}
	mu.Lock()
	defer mu.Unlock()
	for op, n := range calls {
		if op != "GetRecords" && op != "GetShardIterator" && !strings.HasPrefix(op, "Describe") {
			w.t.Errorf("%d calls of %s", n, op)
		}
	}
	return report
}
