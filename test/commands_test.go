package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/tailrace-cdc/replicator/pipeline"
)

// status returns what `status --json` prints.
func (w *world) status(args ...string) pipeline.Status {
	w.t.Helper()
	var s pipeline.Status
	out := w.ok(append([]string{"status", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &s); err != nil || len(s.Tables) == 0 {
		w.t.Fatalf("status: %v\n%s", err, out)
	}
	return s
}

// applied waits until everything written so far is applied, as a user does, and until the pipeline
// is ready.
func (w *world) applied() (s pipeline.Status) {
	w.t.Helper()
	s = w.status("--wait", "applied=now", "--timeout", longest.String())
	if !s.Ready { // a beat came late, on a busy machine
		w.Until("status shows that it is ready", func() bool { s = w.status(); return s.Ready })
	}
	return s
}

func TestCommandsBesideARunningDaemon(t *testing.T) {
	w := newWorld(t, 201)
	w.prepare("Orders")
	d := w.run()
	w.Put("Orders", "hats", "fedora", `"price":{"N":"12.50"}`)
	s := w.applied()
	if s.Tables[0].Proof != "assumed" || s.Tables[0].Owner == "" {
		t.Errorf("status %+v, want assumed, with an owner", s)
	}
	w.Equal("Orders")
	if text := w.ok("status"); !strings.HasPrefix(text, "Everything written before ") ||
		!strings.Contains(text, "\nHealthy") ||
		!strings.Contains(text, "as far as empty reads show") {
		t.Errorf("status prints %q", text)
	}
	w.ok("pause", "--table", "Orders")
	d.until("it is paused", func() bool { return d.table("Orders").State == "paused" })
	w.Put("Orders", "hats", "bowler", "")
	if s := w.status(); s.Ready || s.Tables[0].State != "paused" {
		t.Errorf("status %+v, want paused", s)
	}
	w.refused(1, "", "status", "--wait", "applied=now", "--timeout", "3s")
	w.ok("resume", "--table", "Orders")
	w.applied()
	dump := w.ok("queue", "dump", "--json")
	for _, kind := range []string{"claim", "start", "change", "marks", "control"} {
		if !strings.Contains(dump, `"kind":"`+kind+`"`) {
			t.Errorf("the dump shows no %s:\n%s", kind, dump)
		}
	}
	if strings.Contains(dump, "fedora") || !strings.Contains(w.ok("queue", "dump", "--show-data"), "fedora") {
		t.Error("keys are shown without --show-data, or not with it")
	}
	if only := w.ok("queue", "dump", "--kind", "claim,control", "--since", "1h"); strings.Contains(only, "change") ||
		!strings.Contains(only, `"kind":"claim"`) || !strings.Contains(only, `"kind":"control"`) {
		t.Errorf("the dump of claims and controls is\n%s", only)
	}
	if none := w.ok("queue", "dump", "--since", "1ns"); none != "" {
		t.Errorf("stored in the last nanosecond:\n%s", none)
	}
	w.refused(2, "change", "queue", "dump", "--kind", "pages")
	followed := make(chan result, 1)
	go func() { followed <- w.command("queue", "dump", "-f", "--kind", "change", "--limit", "3") }()
	w.Put("Orders", "hats", "panama", "") // before -f looks at the log, or behind that
	if r := <-followed; r.code != 0 || strings.Count(r.out, `"kind":"change"`) != 3 {
		t.Errorf("exit %d of a dump that follows until there are three changes:\n%s%s", r.code, r.out, r.err)
	}
	w.applied()
	d.stop()
	for line := range strings.Lines(d.output.String()) { // pause and resume append to the log beside its owner
		if strings.Contains(line, "wrong last sequence") && !strings.Contains(line, `"level":"info"`) {
			t.Errorf("an ordinary command leaves a warning: %s", line)
		}
	}
	w.logIsExact("Orders", w.readLog("Orders"))
	w.Equal("Orders")
}

func TestDeadLetterIsRetriedBesideTheDaemon(t *testing.T) {
	w := newWorld(t, 202)
	w.prepare("Orders")
	d := w.run()
	d.settle("Orders")                             // a copy of the refused item would be a letter, too
	before := w.Clock.Now().Add(-10 * time.Second) // hosts of DynamoDB differ by up to five
	w.Bigtable.Faults.RefuseRow([]byte("bad"), codes.InvalidArgument, -1)
	w.Put("Orders", "bad", "1", `"n":{"N":"1"}`)
	w.Put("Orders", "good", "1", `"n":{"N":"1"}`)
	d.settle("Orders")
	if s := w.status(); s.Ready || s.Tables[0].DeadLetters != 1 || s.Tables[0].LettersSince == nil {
		t.Errorf("status %+v, want one dead letter, since when, and not ready", s)
	}
	for flags, retry := range map[string]string{
		"": "--all", " --sink bigtable --table Orders": "--sink bigtable --table Orders",
	} {
		list := w.ok(strings.Fields("dlq list" + flags)...)
		if want := "\nNext: remove the reason, then `replicator dlq retry " + retry + "`"; !strings.Contains(list, want) {
			t.Errorf("dlq list%s does not print %q:\n%s", flags, want, list)
		}
	}
	var letter struct{ ID, Code, Reason string }
	err := json.Unmarshal([]byte(w.ok("dlq", "list", "--json")), &letter)
	if err != nil || letter.ID == "" || letter.Reason == "" {
		t.Errorf("dlq list: %v %+v", err, letter)
	}
	w.waitsBehind("letters", 1)
	w.ok("status", "--wait", "applied=now", "--accept", "gaps,letters", "--timeout", longest.String())
	w.ok("status", "--wait", "applied="+before.Format(time.RFC3339), "--timeout", longest.String()) // before the letter
	w.refused(4, "", "dlq", "retry", letter.ID)
	w.refused(2, "--yes", "dlq", "drop", letter.ID)
	w.Bigtable.Faults.Calm()
	w.ok("dlq", "retry", "--all")
	d.until("the letter is gone", func() bool { return d.table("Orders").DeadLetters == 0 })
	d.settle("Orders")
	d.checkClean()
	w.Equal("Orders")
}

// waitsBehind checks that a wait ends with exit code 4 because of an obstacle in Orders, and
// nothing else.
func (w *world) waitsBehind(code string, count int) {
	w.t.Helper()
	r := w.command("status", "--json", "--wait", "applied=now", "--timeout", longest.String())
	var said struct{ Reasons []map[string]any }
	err := json.Unmarshal([]byte(r.out), &said)
	want := []map[string]any{{"code": code, "count": float64(count), "table": "Orders"}}
	if diff := cmp.Diff(want, said.Reasons); err != nil || r.code != 4 || diff != "" {
		w.t.Errorf("the wait ends with %d, %v, (-want +got):\n%s%s", r.code, err, diff, r.err)
	}
}

func TestHaltedTableLeavesOthersRunning(t *testing.T) {
	long(t, "5 s")
	w := newWorld(t, 203)
	w.tables = []string{
		"{source: Orders, target: orders, on_reject: halt}", "{source: Items, target: items}",
		"{source: Users, target: users}",
	}
	w.prepare("Orders", "Items", "Users")
	d := w.run()
	d.settle("Orders", "Items", "Users")
	w.Bigtable.Faults.RefuseRow([]byte("bad"), codes.InvalidArgument, -1)
	w.Put("Orders", "bad", "1", "")
	w.writer("Orders", 203).write(50)
	d.until("Orders is halted", func() bool { return d.table("Orders").State == "halted" })
	for i, other := range []string{"Items", "Users"} {
		w.writer(other, uint64(204+i)).write(100)
	}
	d.settle("Items", "Users")
	s := w.openPair()
	s.w.Equal("Items", "Users")
	st := w.status()
	if st.Ready || st.Tables[0].State != "halted" || st.Tables[1].State != "running" || st.Tables[2].State != "running" {
		t.Errorf("status %+v, want one halted table", st)
	}
	w.waitsBehind("held", 1)
	d.kill() // a halt survives a restart
	d = w.run()
	d.until("Orders is halted again", func() bool { return d.table("Orders").State == "halted" })
	w.Bigtable.Faults.Calm()
	w.ok("resume", "--table", "Orders")
	d.settle("Orders", "Items", "Users")
	d.checkClean()
	s.w.Equal("Orders", "Items", "Users")
}

func TestWaitForAStoppedDaemonTimesOut(t *testing.T) {
	long(t, "5 s")
	w := newWorld(t, 205)
	w.prepare("Orders")
	w.refused(1, "replicator run", "status", "--wait", "applied=now", "--timeout", "1s") // the daemon never ran
	w.Put("Orders", "a", "b", "")
	w.ok("run", "--drain-and-exit")
	w.refused(1, "replicator run", "status", "--wait", "applied=now", "--timeout", "1s")
	if s := w.status(); s.Ready {
		t.Errorf("ready without a daemon: %+v", s)
	}
	w.Equal("Orders")
}

func TestExitCodesTellWhoseTurnItIs(t *testing.T) {
	long(t, "8 s")
	w := newWorld(t, 206)
	w.prepare("Orders")
	for _, wrong := range [][]string{
		{"status", "--no-such-flag"}, {"no-such-command"}, {"pause"}, {"pause", "--table", "Nobody"},
		{"status", "--wait", "tomorrow"},
		{"run", "-c", "nowhere.yaml"}, {"dlq", "drop"}, {"run", "--log-level", "loud"}, {"upgrade", "--yes"},
		{"upgrade", "--force"},
	} {
		w.refused(2, "", wrong...)
	}
	w.write("wrong.yaml",
		"pipeline: shop\nbigtable: {project: p}\nqueue: {}\ntables:\n- {source: Orders, taget: orders}\n")
	r := w.command("run", "-c", "wrong.yaml")
	if r.code != 2 || !strings.Contains(r.err, "taget") || !strings.Contains(r.err, "instance") {
		t.Errorf("exit %d, want 2 and all problems at once:\n%s", r.code, r.err)
	}
	d := w.run()
	w.writer("Orders", 206).write(50)
	d.settle("Orders")
	w.refused(3, "in use by another process", "run")
	d.stop()
	// The log's volume is lost: its versions must not begin anew.
	if err := os.Rename(filepath.Join(w.dir, "data"), filepath.Join(w.dir, "lost")); err != nil {
		t.Fatal(err)
	}
	w.refused(3, "recover", "run")
	if err := os.RemoveAll(filepath.Join(w.dir, "data")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(w.dir, "lost"), filepath.Join(w.dir, "data")); err != nil {
		t.Fatal(err)
	}
	w.writer("Orders", 207).write(50)
	d = w.run()
	d.settle("Orders")
	d.checkClean()
	w.Equal("Orders")
}
