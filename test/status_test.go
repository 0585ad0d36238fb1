package test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
)

// untilStatus waits until `status --json --exit-code` prints what it should: each retry of a halted
// table may end its halt for a moment.
func (w *world) untilStatus(what string, is func(s pipeline.Status, code int) bool) {
	w.t.Helper()
	var r result
	defer func() {
		if w.t.Failed() {
			w.t.Logf("the last status: exit %d\n%s%s", r.code, r.out, r.err)
		}
	}()
	w.Until(what, func() bool {
		r = w.command("status", "--json", "--exit-code")
		var s pipeline.Status
		return json.Unmarshal([]byte(r.out), &s) == nil && len(s.Tables) > 0 && is(s, r.code)
	})
}

func TestStatusTellsAHaltedTableFromADeadDaemon(t *testing.T) {
	long(t, "12 s")
	w := newWorld(t, 231)
	w.admin = sandbox.FreeAddr(t)
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
	w.untilStatus("status shows a table that is halted because a permission is missing",
		func(s pipeline.Status, code int) bool {
			why := strings.Join(s.Reasons, "; ")
			return code == 1 && !s.Ready && s.Tables[0].State == "halted" && strings.Contains(why, "AccessDenied") &&
				!strings.Contains(why, "not run") && !strings.Contains(why, "no owner")
		})
	w.Faults.Withdraw("", "")
	d.settle("Orders")
	d.checkClean()
	w.untilStatus("status shows that it is ready", func(s pipeline.Status, code int) bool {
		return code == 0 && s.Ready && s.Tables[0].State == "running"
	})
	denied("GetRecords")
	d.until("it halts, and lets the log go", func() bool { return d.table("Orders").State == "halted" })
	w.untilStatus("status shows that it is halted, by a daemon that runs", func(s pipeline.Status, code int) bool {
		return code == 1 && s.Tables[0].State == "halted" && !strings.Contains(strings.Join(s.Reasons, "; "), "no owner")
	})
	d.until("it is halted because of the missing permission", func() bool {
		st := d.table("Orders")
		if len(st.Halts) > 1 || st.Halts["bigtable"] != "" { // a sink that ends because reading ends must not be reported
			t.Fatalf("halts %v, want none of Bigtable", st.Halts)
		}
		return strings.Contains(st.Halt, "GetRecords on its stream")
	})
	w.Faults.Withdraw("", "")
	d.settle("Orders")
	d.kill()
	w.untilStatus("the death is noticed", func(s pipeline.Status, code int) bool { // its store is open in no process
		return code == 1 && s.Tables[0].State == "waiting" &&
			strings.Contains(s.Reasons[0], "no owner: no replicator carries")
	})
	w.write("keys.jsonl", `{"pk":"p","sk":"s"}`+"\n")
	w.refused(3, "no replicator owns table Orders", "verify", "--sample", "5")
	w.refused(3, "no replicator owns table Orders", "repair", "--table", "Orders", "--keys", "keys.jsonl")
	r := w.command("repair", "--table", "Orders", "--no-wait")
	if r.code != 0 || !strings.Contains(r.err, "No replicator runs") {
		t.Errorf("an order without an owner: exit %d\n%s%s", r.code, r.out, r.err)
	}
}

func TestStatusSpeaksForADaemonWhoseQueueIsAway(t *testing.T) {
	long(t, "8 s")
	w := newWorld(t, 232)
	w.admin = sandbox.FreeAddr(t)
	nats := newRelay(t, strings.TrimPrefix(w.NATS.URL(), "nats://"))
	w.queue = `{url: "nats://` + nats.addr + `", replicas: 1, max_bytes: 64MiB}`
	w.shutdown = 2 * time.Second
	w.prepare("Orders")
	d := w.run()
	d.settle("Orders")
	d.checkClean()
	nats.cut()
	d.until("the daemon reports that NATS fails", func() bool { s, ok := d.status(); return ok && len(s.Failing) > 0 })
	d.until("status prints the daemon's report that NATS fails", func() bool {
		r := w.command("status", "--json", "--exit-code", "--timeout", "1s")
		return r.code == 1 && strings.Contains(r.out, `"failing":["NATS fails since `) && strings.Contains(r.out, nats.addr)
	})
	d.signal()
	d.exit()
	if log := d.output.String(); strings.Contains(log, "each log that it owned is released") ||
		!strings.Contains(log, "logs are not released with their newest marks") {
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
	// The first one must not lose the log because its beats are late on a busy machine.
	w.testing = strings.Replace(w.testing, "claim_ttl: 2s", "claim_ttl: 6s", 1)
	w.prepare("Orders")
	d := w.run()
	d.settle("Orders")
	d.checkClean()
	second := w.run()
	second.until("it stands by, and says for whom", func() bool {
		st := second.table("Orders")
		return st.State == status.StandBy && st.Owner == d.table("Orders").Owner
	})
	second.until("it is not red because of that", func() bool { code, _ := second.get("/readyz"); return code == 200 })
	second.until("its metrics show neither that it owns the table nor a lag", func() bool {
		code, text := second.get("/metrics")
		return code == 200 && strings.Contains(string(text), `tailrace_table_owner{table="Orders",target="orders"} 0`) &&
			!strings.Contains(string(text), "tailrace_source_lag_seconds{")
	})
	third := w.run()
	third.until("it stands by", func() bool { return third.table("Orders").State == status.StandBy })
	d.kill()
	second.until("one takes over, and the other stands by for that one", func() bool {
		owner, other := second.table("Orders"), third.table("Orders")
		if other.State == "running" {
			owner, other = other, owner
		}
		return owner.State == "running" && len(owner.Reasons) == 0 && other.State == status.StandBy &&
			other.Owner == owner.Owner && other.Epoch == owner.Epoch
	})
}

// TestReplicaThatStandsByIsNotHealthy: the owner of a table knows of a dead letter, the other
// replica sees that the log grows. Its page must not say that all is well: whoever forwards a port
// gets one of the two.
func TestReplicaThatStandsByIsNotHealthy(t *testing.T) {
	long(t, "5 s")
	w := newWorld(t, 1704)
	w.queue = `{url: "` + w.NATS.URL() + `", replicas: 1, max_bytes: 64MiB}`
	w.write("orders.yaml", `families: {d: {max_versions: 1}}
rules:
- name: item
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}#{s}"
  cells: [{attr: n, to: "d:n", as: int64}]
`)
	w.tables = []string{"{source: Orders, target: orders, mapping: orders.yaml, backfill: none}"}
	w.prepare("Orders")
	owner := w.run()
	owner.settle("Orders")
	other := w.run()
	other.until("it stands by", func() bool { return other.table("Orders").State == "standby" })
	w.Put("Orders", "hats", "fedora", `"n":{"S":"many"}`)
	owner.until("the change is a dead letter", func() bool { return owner.table("Orders").DeadLetters == 1 })
	other.until("the page of the other one says whose page knows", func() bool {
		s, ok := other.status()
		if ok && s.Verdict.State == "healthy" {
			t.Fatalf("%+v", s.Verdict)
		}
		return ok && s.Verdict.State == "standing by" && strings.Contains(s.Verdict.Cause, owner.table("Orders").Owner)
	})
}
