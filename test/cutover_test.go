package test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	cloud "cloud.google.com/go/bigtable"
)

// begun is a command that runs beside the test.
type begun struct {
	w     *world
	d     *daemon
	cmd   *exec.Cmd
	out   *output
	ended chan struct{}
}

// begin starts a command.
func (w *world) begin(d *daemon, args ...string) *begun {
	w.t.Helper()
	c := &begun{w: w, d: d, cmd: exec.Command(w.program(), args...), out: &output{}, ended: make(chan struct{})}
	c.cmd.Dir, c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = w.dir, w.env(), c.out, c.out
	if err := c.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		defer close(c.ended)
		_ = c.cmd.Wait()
	}()
	w.t.Cleanup(c.kill)
	return c
}

func (c *begun) kill() {
	_ = c.cmd.Process.Kill()
	<-c.ended
}

// ready reports whether the daemon says that it is ready.
func (d *daemon) ready() bool {
	s, ok := d.status()
	return ok && s.Ready
}

// over reports whether the command has ended.
func (c *begun) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// killAt kills the command when it has printed a step.
func (c *begun) killAt(step string) {
	c.w.t.Helper()
	c.d.until("the cutover has printed "+step, func() bool {
		c.d.hasten(300 * time.Millisecond)
		return strings.Contains(c.out.String(), step) || c.over()
	})
	c.kill()
	if !strings.Contains(c.out.String(), step) {
		c.w.t.Fatalf("the cutover ended before %q:\n%s", step, c.out)
	}
}

// ends waits until the command ends, and returns its exit code.
func (c *begun) ends() int {
	c.w.t.Helper()
	c.d.until("the cutover ends", func() bool {
		c.d.hasten(300 * time.Millisecond)
		return c.over()
	})
	return c.cmd.ProcessState.ExitCode()
}

// cutover runs a cutover of Orders to its end, which must be the given one.
func (w *world) cutover(d *daemon, code int, said string) {
	w.t.Helper()
	c := w.begin(d, "cutover", "--table", "Orders", "--quiet", "2s", "--out", "cert.json")
	if got := c.ends(); got != code || !strings.Contains(c.out.String(), said) {
		w.t.Fatalf("cutover: exit %d, want %d and %q\n%s", got, code, said, c.out)
	}
}

// Attacks 44 and 67: after verify --for-cutover, a cutover is killed after each of its steps and
// taken over by another process; it ends with a certificate and compares only what has changed.
// Behind the fence a deletion by TTL leaves the row and the certificate; a put leaves none. After a
// request, all items are compared behind the fence again.
func TestCutoverIsTakenOverBetweenItsSteps(t *testing.T) {
	long(t, "25 s: seven cutovers")
	w := newWorld(t, 711)
	w.prepare("Orders")
	for _, sk := range []string{"fedora", "beret", "cap"} {
		w.Put("Orders", "hats", sk, `"n":{"N":"1"},"expires":{"N":"`+w.seconds()+`"}`)
	}
	d := w.run()
	d.settle("Orders")
	w.ok("verify", "--for-cutover")
	w.Put("Orders", "hats", "homburg", `"n":{"N":"2"}`)
	d.settle("Orders")
	for _, step := range []string{"Stop the writers now", "is fenced at entry", "Draining", "Verifying"} {
		w.begin(d, "cutover", "--table", "Orders", "--quiet", "2s", "--out", "cert.json").killAt(step)
		switch step {
		case "Stop the writers now":
			w.Put("Orders", "hats", "bowler", `"n":{"N":"2"}`) // it still counts
			d.settle("Orders")
		case "is fenced at entry": // another owner; nothing waits for it
			d.kill()
			d = w.run()
			d.untilLogged("replicator starts") // else the next command may open the store before it
		}
	}
	w.cutover(d, 0, "the 2 items that have changed since are equal")
	x := w.certified("cert.json")
	if x.Format != 1 || x.Verify.How != "full + incremental" || x.Verify.Items != 3 || x.Verify.Changed.Items != 2 ||
		!x.Verify.Ended.Before(x.Times.Fenced) || x.Verify.Changed.Began.Before(x.Times.Fenced) {
		t.Errorf("certificate: %+v", x)
	}
	if out := w.ok("cutover", "--check", "cert.json"); !strings.Contains(out, "3 items were equal in the full") {
		t.Errorf("check: %s", out)
	}
	w.altered("cert.json")

	w.write("keys.jsonl", `{"pk":"hats","sk":"cap"}`)
	for _, args := range [][]string{
		{"resync", "--table", "Orders"}, {"resync", "--table", "Orders", "--keys", "keys.jsonl"},
		{"gaps", "heal", "--table", "Orders"}, {"recover", "--table", "Orders", "--yes"},
	} {
		if r := w.command(args...); args[0] != "gaps" && (r.code != 3 || !strings.Contains(r.err, "cutover --undo")) {
			t.Errorf("%v behind the fence: exit %d\n%s%s", args, r.code, r.out, r.err)
		}
	}

	w.Clock.Advance(time.Minute)
	if w.DynamoDB.ExpireNow(w.Clock.Now()) != 3 {
		t.Fatal("nothing has expired")
	}
	d.until("the deletions are read", func() bool { return d.ready() && d.table("Orders").Changes == 8 })
	w.cutover(d, 0, "the 5 items that have changed since are equal")
	if x := w.certified("cert.json"); x.Verify.Expired != 3 {
		t.Errorf("%d items expired behind the fence, want 3", x.Verify.Expired)
	}

	w.Put("Orders", "hats", "late", `"n":{"N":"3"}`)
	w.cutover(d, 4, "was written to behind the fence")
	if out := w.ok("cutover", "--undo", "--table", "Orders", "--yes"); !strings.Contains(out, "Orders: the fence of") ||
		!strings.Contains(out, "`replicator repair --table Orders`") {
		t.Errorf("undo: %s", out)
	}
	d.until("the fence is gone", func() bool { return d.table("Orders").State == "running" })
	d.settle("Orders")
	w.write("keys.jsonl", `{"pk":"hats","sk":"late"}`)
	_ = d.hastened("resync", "--table", "Orders", "--keys", "keys.jsonl", "--wait") // whatever it did
	w.cutover(d, 0, "because the last full one began before the undo of a fence")
	if x := w.certified("cert.json"); x.Format != 1 || x.Verify.How != "full" || x.Verify.Equal != 3 {
		t.Errorf("certificate: %+v", x)
	}
	d.stop()
	w.Equal("Orders")
}

// altered fails unless a certificate is refused when its content is changed.
func (w *world) altered(name string) {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	w.write("altered.json", strings.Replace(string(b), `"items": 3`, `"items": 5`, 1))
	w.refused(4, "altered", "cutover", "--check", "altered.json")
}

// seconds returns a time that has passed, as the TTL attribute spells it.
func (w *world) seconds() string {
	b, _ := json.Marshal(w.Clock.Now().Unix())
	return string(b)
}

// certified is what a certificate says.
type certified struct {
	Format int
	Times  struct{ Fenced time.Time }
	Verify struct {
		How          string
		Began, Ended time.Time
		Changed      struct {
			Began, Ended time.Time
			Items        int64
		}
		Items, Equal, Expired int64
	}
}

// certified reads a certificate.
func (w *world) certified(name string) certified {
	w.t.Helper()
	var file struct{ Certificate certified }
	b, err := os.ReadFile(filepath.Join(w.dir, name))
	if err == nil {
		err = json.Unmarshal(b, &file)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return file.Certificate
}

// Attack 66: the volume of a fenced table is lost. Everything is refused but cutover, which says
// why, and the undo.
func TestLostVolumeOfAFencedTable(t *testing.T) {
	long(t, "a cutover")
	w := newWorld(t, 712)
	w.prepare("Orders")
	w.Put("Orders", "hats", "fedora", `"n":{"N":"1"}`)
	d := w.run()
	d.settle("Orders")
	w.cutover(d, 0, "1 item is equal")
	d.stop()
	if err := os.RemoveAll(filepath.Join(w.dir, "data")); err != nil {
		t.Fatal(err)
	}
	w.refused(3, "cutover --undo", "run")
	if out := w.ok("status"); !strings.Contains(out, "and its log is lost") || !strings.Contains(out, "cutover --undo") ||
		strings.Contains(out, "recover") {
		t.Errorf("status of a fenced table whose log is lost: %s", out)
	}
	w.refused(3, "cutover --undo", "recover", "--table", "Orders", "--yes")
	w.refused(3, "no log", "resync", "--table", "Orders")
	w.ok("cutover", "--undo", "--yes")
	if out := w.ok("cutover", "--undo"); !strings.Contains(out, "No table is fenced") { // it asks nothing
		t.Errorf("undo without a fence: %s", out)
	}
	r := w.command("recover", "--table", "Orders", "--yes")
	if r.code != 0 || !strings.Contains(r.out+r.err, "begins life 2") {
		t.Errorf("recover after the undo: exit %d\n%s%s", r.code, r.out, r.err)
	}
}

// Attack 44: an owner that was frozen with changes in hand wakes up behind the certificate of
// another one, and the application has deleted rows. Their guards are gone with them, so Bigtable
// would take what the owner still has.
func TestStaleOwnerWritesNothingBehindTheFence(t *testing.T) {
	long(t, "15 s")
	w := newWorld(t, 713)
	w.queue = fmt.Sprintf("{url: %q, replicas: 1, max_bytes: 64MiB}", w.NATS.URL())
	w.tables = []string{"{source: Orders, target: orders, backfill: none}"}
	w.prepare("Orders")
	stale := w.run()
	stale.settle("Orders")
	w.Bigtable.Faults.Outage(0)
	for i := range 20 {
		w.Put("Orders", "hats", fmt.Sprint(i), `"n":{"N":"1"}`)
	}
	stale.until("all changes are in the log, and none is applied", func() bool {
		stale.hasten(300 * time.Millisecond)
		return stale.table("Orders").Changes == 20
	})
	w.freeze(stale, syscall.SIGSTOP)
	w.Bigtable.Faults.Recover()
	d := w.run()
	d.until("another owner has taken over", d.ready)
	d.settle("Orders")
	w.cutover(d, 0, "20 items are equal")
	for i := range 20 {
		w.plant("Orders", fmt.Sprint("hats#", i), func(m *cloud.Mutation) { m.DeleteRow() })
	}
	w.freeze(stale, syscall.SIGCONT)
	stale.untilLogged("stand by: another owner holds the log")
	s := w.openPair()
	if rows := s.stored("orders", s.compile("Orders").Families()); len(rows) > 0 {
		t.Errorf("the owner that was frozen has brought back %d rows: %v", len(rows), rows)
	}
	w.ok("cutover", "--undo", "--yes")
	for i := range 20 {
		w.Put("Orders", "hats", fmt.Sprint(i), `"n":{"N":"2"}`)
	}
	d.settle("Orders")
	w.Equal("Orders")
}

// freeze stops a process, or lets it go on.
func (w *world) freeze(d *daemon, signal syscall.Signal) {
	w.t.Helper()
	if err := d.cmd.Process.Signal(signal); err != nil {
		w.t.Fatal(err)
	}
}
