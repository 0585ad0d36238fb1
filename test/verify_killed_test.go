package test

import (
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// killedAt runs a command and kills it when it has made the n-th call to DynamoDB, whose reply it
// never sees.
func (w *world) killedAt(op string, n int, args ...string) {
	w.t.Helper()
	held := w.traps.set(point{op: op, done: true}, n, true)
	defer held.open()
	cmd, ended := exec.Command(w.program(), args...), make(chan struct{})
	cmd.Dir, cmd.Env = w.dir, w.env()
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed
	}()
	w.t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	w.Until(fmt.Sprintf("%v makes %d calls of %s", args, n, op), func() bool {
		select {
		case <-ended:
			w.t.Fatalf("%v ended by itself: %v", args, cmd.ProcessState)
		case <-held.hit:
			return true
		default:
		}
		return false
	})
	_ = cmd.Process.Kill()
	<-ended
}

// TestVerifyAndItsDaemonAreKilled: verify is killed while it reads and begun again, which reads
// only what is left; then the daemon is killed while verify settles, and another one takes over.
// What was changed meanwhile is no difference, and what was planted before is found.
//
// Attack 72: rows that are as old as an eventually consistent reading look equal; strong readings
// find them.
func TestVerifyAndItsDaemonAreKilled(t *testing.T) {
	long(t, "15 s")
	w := newWorld(t, 743)
	w.shareRows()
	w.prepare("Orders")
	for i := range 40 {
		w.Put("Orders", fmt.Sprint("p", i), "s", `"a":{"S":"1"}`)
	}
	d := w.run()
	d.settle("Orders")
	w.plant("Orders", "p7", setCell("s/a", "wrong"))
	w.killedAt("Scan", 9, "verify") // a part takes two: the end of a segment is confirmed
	for _, i := range []int{1, 2, 3} {
		w.Put("Orders", fmt.Sprint("p", i), "s", `"b":{"S":"changed while verify was away"}`)
	}
	w.Delete("Orders", "p4", "s")
	d.settle("Orders")
	scans := atomic.Int64{}
	w.traps.watch(func(p point) {
		if p.op == "Scan" && p.done {
			scans.Add(1)
		}
	})
	settles := w.traps.set(point{op: "BatchGetItem"}, 1, true)
	out, errs, ended, code := w.background("verify", "--differences", "differences.jsonl")
	d.untilHit(settles)
	d.kill()
	settles.open()
	d = w.run()
	d.hastenUntil("verify ends", ended)
	want := map[string]string{"Orders p7 s": "value"}
	if diff := cmp.Diff(want, w.named("differences.jsonl")); diff != "" || code() != 4 {
		t.Errorf("exit %d (-want +got):\n%s%s%s", code(), diff, out, errs)
	}
	if n := scans.Load(); n == 0 || n > 10 {
		t.Errorf("%d pages were read by the second verify: 3 of 8 parts were finished at least", n)
	}
	w.DynamoDB.LagReads(time.Hour)
	w.Put("Orders", "p7", "s", `"a":{"S":"older"}`)
	w.Clock.Advance(2 * time.Hour)
	d.settle("Orders")
	w.Put("Orders", "p7", "s", `"a":{"S":"newer"}`)
	d.settle("Orders")
	w.openPair().plant("p7", "s/a", "older", w.Clock.Now().Add(time.Second))
	if r := d.hastened("verify"); r.code != 0 || !strings.Contains(r.out, "may lag") {
		t.Errorf("a reading that lags and a row that is as old: exit %d: %s%s", r.code, r.out, r.err)
	}
	if r := d.hastened("verify", "--strong", "--differences", "strong.jsonl"); r.code != 4 ||
		w.named("strong.jsonl")["Orders p7 s"] != "value" {
		t.Errorf("strong readings: exit %d: %s%s", r.code, r.out, r.err)
	}
	w.Clock.Advance(10 * time.Second)
	w.Put("Orders", "p7", "s", `"a":{"S":"newest"}`)
	d.settle("Orders")
	w.Equal("Orders")
}
