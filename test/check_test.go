package test

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/preflight"
	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
	"github.com/tailrace-cdc/replicator/sandbox/nats"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// checkFinds runs check, which must exit with 3 and report one error, with this code and with what
// in its text.
func (w *world) checkFinds(code, what string) {
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

// TestCheckRefusesWhatRunRefuses checks that a run does not halt after a check that exited with 0,
// and the other way.
func TestCheckRefusesWhatRunRefuses(t *testing.T) {
	w := newWorld(t, 241)
	w.admin = sandbox.FreeAddr(t)
	w.prepare("Orders")
	w.ok("check", "--sample", "0")
	if _, err := os.Stat(filepath.Join(w.dir, "data")); err == nil {
		t.Error("check made the directory of the queue")
	}
	w.Put("Orders", "hats", "fedora", `"n":{"N":"1"}`)
	d := w.run()
	d.settle("Orders")
	w.ok("check", "--sample", "0") // beside the daemon, which holds the port, the store and the target
	if r := w.command("check", "--json", "--sample", "0"); strings.Contains(r.out, `"backfill"`) {
		t.Errorf("check warns that older items are not copied, although the stream held the whole table\n%s", r.out)
	}
	d.stop()
	w.ok("check", "--sample", "0")

	ln, err := net.Listen("tcp", w.admin)
	if err != nil {
		t.Fatal(err)
	}
	w.checkFinds("admin_port", "address already in use")
	_ = ln.Close()

	withConfiguration := func(change func()) {
		t.Helper()
		start, queue, tables := w.start, w.queue, w.tables
		change()
		w.configure()
		w.start, w.queue, w.tables = start, queue, tables
	}
	refusedBoth := func(what string) {
		t.Helper()
		w.checkFinds("stored_state", what)
		w.refused(3, what, "run")
	}
	withConfiguration(func() { w.start = "latest" })
	refusedBoth("the pipeline started with trim_horizon")
	withConfiguration(w.shareRows)
	w.shared = false
	refusedBoth("the mapping of Orders is not the one")
	if r := w.command("check", "--json", "--sample", "0"); !strings.Contains(r.out, `"mapping_changed"`) {
		t.Errorf("check does not say what mapping diff says\n%s", r.out)
	}
	if r := w.command("mapping", "diff"); r.code != 4 || !strings.Contains(r.out, "another target than orders") {
		t.Errorf("mapping diff: exit %d\n%s%s", r.code, r.out, r.err)
	}
	w.write("file", "")
	withConfiguration(func() { w.queue = "{dir: ./file, max_bytes: 64MiB}" })
	w.checkFinds("queue_dir", "is not a directory")
	withConfiguration(func() { w.queue = "{dir: ./elsewhere, max_bytes: 64MiB}" })
	w.checkFinds("stored_state", "the log is empty or not there, although changes were read")
	withConfiguration(func() {})

	denied := fault.Rule{Effect: fault.Error, Operation: "GetRecords", Code: "AccessDeniedException"}
	if err := w.Faults.Inject(denied); err != nil {
		t.Fatal(err)
	}
	w.checkFinds("stream", "GetRecords of arn:")
	w.Faults.Withdraw("", "")
	w.ok("check", "--sample", "0")

	w.Call("DeleteTable", `{"TableName":"Orders"}`)
	w.prepare("Orders")
	refusedBoth("deleted and created again")
}

func TestCheckFindsAnotherPipelineInTheTarget(t *testing.T) {
	w := newWorld(t, 242)
	w.prepare("Orders")
	o := bigtable.Options{Project: "local", Instance: "local", Endpoint: w.Bigtable.Addr(), Now: time.Now}
	c, err := bigtable.Open(t.Context(), o, zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if owner, err := c.ClaimTarget(context.WithoutCancel(t.Context()), "other", "orders"); owner != "other" || err != nil {
		t.Fatalf("claim target: %q, %v", owner, err)
	}
	w.checkFinds("foreign_target", `belongs to pipeline "other"`)
}

func TestCheckAsksTheServersOfTheLog(t *testing.T) {
	w := newWorld(t, 243)
	w.queue = `{url: "` + w.NATS.URL() + `", max_bytes: 64MiB}`
	w.prepare("Orders")
	w.ok("check", "--sample", "0")
	d := w.run() // the default of replicas is one on a single server
	w.Put("Orders", "hats", "fedora", `"n":{"N":"1"}`)
	d.settle("Orders")
	d.stop()
	w.queue = `{url: "` + w.NATS.URL() + `", replicas: 3, max_bytes: 64MiB}`
	w.configure()
	w.checkFinds("replicas", "3 copies of each log need a cluster")
	small, err := nats.Open(nats.Options{Addr: "127.0.0.1:0", Dir: t.TempDir(), MaxPayload: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	w.write("tailrace.yaml", strings.ReplaceAll(strings.ReplaceAll(read(t, filepath.Join(w.dir, "tailrace.yaml")),
		w.NATS.URL(), small.URL()), "replicas: 3", "replicas: 1"))
	r := w.command("check", "--json", "--sample", "0")
	if r.code != 3 || !strings.Contains(r.out, `"code":"max_payload"`) ||
		!strings.Contains(r.out, "although changes were read into it before") {
		t.Errorf("exit %d, want errors about the server's message size and about the empty log\n%s", r.code, r.out)
	}
}

// TestCheckSaysAtOnceWhoIsAway checks that a refused connection is reported as such and does not
// wait for a deadline.
func TestCheckSaysAtOnceWhoIsAway(t *testing.T) {
	w := newWorld(t, 244)
	w.prepare("Orders")
	away := sandbox.FreeAddr(t)
	whole := read(t, filepath.Join(w.dir, "tailrace.yaml"))
	for at, code := range map[string]string{w.dynamo.url: `"code":"table"`, w.bigtable.addr: `"code":"bigtable"`} {
		address := away
		if strings.HasPrefix(at, "http://") {
			address = "http://" + away
		}
		w.write("tailrace.yaml", strings.ReplaceAll(whole, at, address))
		r := w.command("check", "--json", "--sample", "0")
		if r.code != 3 || !strings.Contains(r.out, code) || !strings.Contains(r.out, away) ||
			!strings.Contains(r.out, "connection refused") || strings.Contains(r.out, "deadline exceeded") {
			t.Errorf("exit %d, want %s, the address and that it refuses\n%s", r.code, code, r.out)
		}
		w.refused(3, "connection refused", "schema", "--apply")
	}
}

// TestCheckMeasuresWhatIsCarried: before the first start and beside a run, check --capacity
// measures and writes nothing. Without the target it reports what is missing.
func TestCheckMeasuresWhatIsCarried(t *testing.T) {
	w := newWorld(t, 246)
	w.CreateTable("Orders")
	w.configure()
	missing := w.command("check", "--capacity", "--json")
	if missing.code != 3 || !strings.Contains(missing.out, `"tables":[]`) ||
		!strings.Contains(missing.out, `"code":"schema"`) {
		t.Errorf("without a target: exit %d\n%s", missing.code, missing.out)
	}
	w.ok("schema", "--apply")
	w.Put("Orders", "hats", "fedora", `"n":{"N":"1"}`)
	d := w.run()
	d.settle("Orders")
	var report struct {
		OK bool
		preflight.Capacity
	}
	if err := json.Unmarshal([]byte(w.ok("check", "--capacity", "--json")), &report); err != nil {
		t.Fatal(err)
	}
	if !report.OK || len(report.Tables) != 1 {
		t.Fatalf("%+v", report)
	}
	c := report.Tables[0]
	lowest := slices.Min(slices.Collect(maps.Values(c.Ceilings)))
	if c.Changes != lowest || c.Changes == 0 || c.LimitedBy.Word() == "" || c.LatencyMS <= 0 || c.Shards == 0 ||
		c.RowsPerItem != 1 {
		t.Errorf("%+v", c)
	}
	if report.Memory.Usual == 0 || report.LogBytes == 0 || report.Cost.Nodes == 0 {
		t.Errorf("%+v", report.Capacity)
	}
	text := w.ok("check", "--capacity")
	for _, part := range []string{
		"Orders → orders: ", " changes a second, limited by ", "to raise it: ", "memory: about ",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	w.refused(2, "--capacity measures", "check", "--capacity", "--offline")
	d.stop()
	w.Equal("Orders")
}
