package test

import (
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
)

// freePort reserves an address for the admin server, so that commands find it in the configuration.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// statusExitCode returns what `status --json --exit-code` prints, and its exit code.
func (w *world) statusExitCode() (s pipeline.Status, code int) {
	w.t.Helper()
	r := w.command("status", "--json", "--exit-code")
	if err := json.Unmarshal([]byte(r.out), &s); err != nil || len(s.Tables) == 0 {
		w.t.Fatalf("status: exit %d, %v\n%s%s", r.code, err, r.out, r.err)
	}
	return s, r.code
}

func TestStatusTellsAHaltedTableFromADeadDaemon(t *testing.T) {
	long(t, "12 s")
	w := newWorld(t, 231)
	w.admin = freePort(t)
	w.testing = periods("4s")
	w.prepare("Orders")
	denied := func(op string) {
		if err := w.Faults.Inject(fault.Rule{Effect: fault.Error, Operation: op, Code: "AccessDeniedException"}); err != nil {
			t.Fatal(err)
		}
	}
	denied("DescribeTable")
	d := w.run()
	d.until("it halts before it has a log", func() bool { return d.table("Orders").State == "halted" })
	s, code := w.statusExitCode()
	if why := strings.Join(s.Reasons, "; "); code != 1 || s.Ready || s.Tables[0].State != "halted" ||
		!strings.Contains(why, "AccessDenied") || strings.Contains(why, "not run") || strings.Contains(why, "no owner") {
		t.Errorf("exit %d, %+v: want a table that is halted because a permission is missing", code, s)
	}
	w.Faults.Withdraw("", "")
	d.settle("Orders")
	d.checkClean()
	if s, code := w.statusExitCode(); code != 0 || !s.Ready || s.Tables[0].State != "running" {
		t.Errorf("exit %d, %+v, want ready", code, s)
	}
	denied("GetRecords")
	d.until("it halts, and lets the log go", func() bool { return d.table("Orders").State == "halted" })
	if s, code := w.statusExitCode(); code != 1 || s.Tables[0].State != "halted" ||
		strings.Contains(strings.Join(s.Reasons, "; "), "no owner") {
		t.Errorf("exit %d, %+v, want halted, by a daemon that runs", code, s)
	}
	// A sink that ends because reading ends must not be reported.
	if st := d.table("Orders"); !strings.Contains(st.Halt, "GetRecords on its stream") ||
		len(st.Halts) > 1 || st.Halts["bigtable"] != "" {
		t.Errorf("halted because %q, by %v, want the missing permission, and nothing about Bigtable", st.Halt, st.Halts)
	}
	w.Faults.Withdraw("", "")
	d.settle("Orders")
	d.kill()
	w.Until("the silence is noticed", func() bool {
		s, code := w.statusExitCode()
		return code == 1 && s.Tables[0].State == "waiting" && strings.Contains(s.Reasons[0], "no sign of life of the owner")
	})
}

func TestStatusSpeaksForADaemonWhoseQueueIsAway(t *testing.T) {
	long(t, "8 s")
	w := newWorld(t, 232)
	w.admin = freePort(t)
	nats := newRelay(t, strings.TrimPrefix(w.NATS.URL(), "nats://"))
	w.queue = `{url: "nats://` + nats.addr + `", replicas: 1, max_bytes: 64MiB}`
	w.shutdown = 2 * time.Second
	w.prepare("Orders")
	d := w.run()
	d.settle("Orders")
	d.checkClean()
	nats.cut()
	d.until("the daemon reports that NATS fails", func() bool { s, ok := d.status(); return ok && len(s.Failing) > 0 })
	r := w.command("status", "--json", "--exit-code", "--timeout", "1s")
	if r.code != 1 || !strings.Contains(r.out, `"failing":["NATS fails since `) || !strings.Contains(r.out, nats.addr) {
		t.Errorf("exit %d, want the daemon's report that NATS fails\n%s%s", r.code, r.out, r.err)
	}
	d.signal()
	d.exit()
	if log := d.output.String(); strings.Contains(log, "marks are saved") ||
		!strings.Contains(log, "without saving all marks") {
		t.Error("the daemon logs that the marks are saved, although it could not save them")
	}
	if r := w.command("status", "--timeout", "1s"); r.code != 3 {
		t.Errorf("exit %d, want 3 where neither the queue nor a daemon answers\n%s", r.code, r.err)
	}
	w.Put("Orders", "hats", "fedora", `"n":{"N":"1"}`)
	nats.restore()
	d = w.run()
	d.settle("Orders")
	w.Equal("Orders")
}

func TestStandByIsNeitherRedNorSilent(t *testing.T) {
	long(t, "5 s")
	w := newWorld(t, 233)
	w.queue = `{url: "` + w.NATS.URL() + `", replicas: 1, max_bytes: 64MiB}`
	w.prepare("Orders")
	d := w.run()
	d.settle("Orders")
	d.checkClean()
	second := w.run()
	second.until("it stands by, and says for whom", func() bool {
		st := second.table("Orders")
		return st.State == status.StandBy && st.Owner == d.table("Orders").Owner
	})
	if code, why := second.get("/readyz"); code != 200 {
		t.Errorf("a replicator that stands by is red: %d %s", code, why)
	}
	_, text := second.get("/metrics")
	if metrics := string(text); !strings.Contains(metrics, `tailrace_table_owner{table="Orders"} 0`) ||
		strings.Contains(metrics, "tailrace_source_lag_seconds{") {
		t.Error("a replicator that stands by shows the lag of a table that it does not read, or that it owns it")
	}
	d.kill()
	second.until("it takes over", func() bool {
		s, ok := second.status()
		return ok && s.Ready && s.Tables[0].State == "running"
	})
}
