package test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/sandbox/fault"
	"github.com/tailrace-cdc/replicator/sandbox/nats"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// finds runs check, which must end with 3 and one error, of that code, whose words contain what.
func (w *world) finds(code, what string) {
	w.t.Helper()
	r := w.command("check", "--json", "--sample", "0")
	var report struct {
		Problems []struct{ Severity, Code, What, Hint string }
	}
	if err := json.Unmarshal([]byte(r.out), &report); err != nil {
		w.t.Fatalf("check: exit %d, %v\n%s%s", r.code, err, r.out, r.err)
	}
	var errs []string
	for _, p := range report.Problems {
		if p.Severity == "error" {
			errs = append(errs, p.Code+": "+p.What+" ("+p.Hint+")")
		}
	}
	if r.code != 3 || len(errs) != 1 || !strings.HasPrefix(errs[0], code+": ") || !strings.Contains(errs[0], what) {
		w.t.Errorf("check: exit %d, errors %q, want 3 and %s with %q", r.code, errs, code, what)
	}
}

// TestCheckRefusesWhatRunRefuses: a check that ends with 0 must not be followed by a run that halts.
func TestCheckRefusesWhatRunRefuses(t *testing.T) {
	w := newWorld(t, 241)
	w.admin = freePort(t)
	w.prepare("Orders")
	w.ok("check", "--sample", "0")
	if _, err := os.Stat(filepath.Join(w.dir, "data")); err == nil {
		t.Error("check made the directory of the queue")
	}
	w.Put("Orders", "hats", "fedora", `"n":{"N":"1"}`)
	d := w.run()
	d.settle("Orders")
	w.ok("check", "--sample", "0") // beside the daemon, which has the port, the store and the target
	if r := w.command("check", "--json", "--sample", "0"); strings.Contains(r.out, `"backfill"`) {
		t.Errorf("check warns that older items do not come, of a table whose whole life was carried\n%s", r.out)
	}
	d.stop()
	w.ok("check", "--sample", "0")

	ln, err := net.Listen("tcp", w.admin)
	if err != nil {
		t.Fatal(err)
	}
	w.finds("admin_port", "address already in use")
	_ = ln.Close()

	again := func(change func()) {
		t.Helper()
		start, queue, tables := w.start, w.queue, w.tables
		change()
		w.configure()
		w.start, w.queue, w.tables = start, queue, tables
	}
	refusedBoth := func(what string) {
		t.Helper()
		w.finds("stored_state", what)
		w.refused(3, what, "run")
	}
	again(func() { w.start = "latest" })
	refusedBoth("the pipeline started with trim_horizon")
	again(w.shareRows)
	w.shared = false
	refusedBoth("the mapping of Orders is not the one")
	w.write("file", "")
	again(func() { w.queue = "{dir: ./file, max_bytes: 64MiB}" })
	w.finds("queue_dir", "is not a directory")
	again(func() { w.queue = "{dir: ./elsewhere, max_bytes: 64MiB}" })
	w.finds("stored_state", "the log is empty or not there, although changes were read")
	again(func() {})

	if err := w.Faults.Inject(fault.Rule{Effect: fault.Error, Operation: "GetRecords", Code: "AccessDeniedException"}); err != nil {
		t.Fatal(err)
	}
	w.finds("stream", "GetRecords of arn:")
	w.Faults.Withdraw("", "")
	w.ok("check", "--sample", "0")

	w.Call("DeleteTable", `{"TableName":"Orders"}`)
	w.prepare("Orders")
	refusedBoth("deleted and created again")
}

func TestCheckFindsAnotherPipelineInTheTarget(t *testing.T) {
	w := newWorld(t, 242)
	w.prepare("Orders")
	c, err := bigtable.Open(t.Context(), bigtable.Options{Project: "local", Instance: "local", Endpoint: w.Bigtable.Addr(), Now: time.Now}, zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if owner, err := c.ClaimTarget(context.WithoutCancel(t.Context()), "other", "orders"); owner != "other" || err != nil {
		t.Fatalf("claim target: %q, %v", owner, err)
	}
	w.finds("foreign_target", `belongs to pipeline "other"`)
}

func TestCheckAsksTheServersOfTheLog(t *testing.T) {
	w := newWorld(t, 243)
	w.queue = `{url: "` + w.NATS.URL() + `", max_bytes: 64MiB}`
	w.prepare("Orders")
	w.ok("check", "--sample", "0")
	d := w.run() // without a word about replicas: one, on a single server
	w.Put("Orders", "hats", "fedora", `"n":{"N":"1"}`)
	d.settle("Orders")
	d.stop()
	w.queue = `{url: "` + w.NATS.URL() + `", replicas: 3, max_bytes: 64MiB}`
	w.configure()
	w.finds("replicas", "3 copies of each log need a cluster")
	small, err := nats.Open(nats.Options{Addr: "127.0.0.1:0", Dir: t.TempDir(), MaxPayload: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	w.write("tailrace.yaml", strings.ReplaceAll(strings.ReplaceAll(read(t, filepath.Join(w.dir, "tailrace.yaml")),
		w.NATS.URL(), small.URL()), "replicas: 3", "replicas: 1"))
	r := w.command("check", "--json", "--sample", "0")
	if r.code != 3 || !strings.Contains(r.out, `"code":"max_payload"`) || !strings.Contains(r.out, "although changes were read into it before") {
		t.Errorf("exit %d, want a server whose messages are too small, and a log that is another's\n%s", r.code, r.out)
	}
}

// TestCheckSaysAtOnceWhoIsAway: a refused connection is not a deadline that was exceeded.
func TestCheckSaysAtOnceWhoIsAway(t *testing.T) {
	w := newWorld(t, 244)
	w.prepare("Orders")
	away := freePort(t)
	whole := read(t, filepath.Join(w.dir, "tailrace.yaml"))
	for at, code := range map[string]string{w.dynamo.url: `"code":"table"`, w.bigtable.addr: `"code":"bigtable"`} {
		address := away
		if strings.HasPrefix(at, "http://") {
			address = "http://" + away
		}
		w.write("tailrace.yaml", strings.ReplaceAll(whole, at, address))
		r := w.command("check", "--json", "--sample", "0")
		if r.code != 3 || !strings.Contains(r.out, code) || !strings.Contains(r.out, away) || !strings.Contains(r.out, "connection refused") ||
			strings.Contains(r.out, "deadline exceeded") {
			t.Errorf("exit %d, want %s, the address and that it refuses\n%s", r.code, code, r.out)
		}
		w.refused(3, "connection refused", "schema", "--apply")
	}
}
