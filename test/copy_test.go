package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/sandbox/capacity"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
)

// TestItemsChangeBetweenPageAndPut stops the clock while the copy holds every page, because it
// writes none before the stream is read past it. Meanwhile items expire, are deleted, come to be
// behind their segment's page, and move to another row, some of them there and back.
func TestItemsChangeBetweenPageAndPut(t *testing.T) {
	long(t, "4 s")
	const n, parts = 64, 8
	w := newWorld(t, 1301)
	orders, devices := exampleOf("Orders"), exampleOf("Devices")
	w.old(n, 1301, []*example{orders, devices})
	disturb := func(effect fault.Effect) {
		if err := w.Faults.Inject(fault.Rule{Effect: effect, Operation: "Scan", Times: 1}); err != nil {
			t.Fatal(err)
		}
	}
	disturb(fault.NoDate)
	w.Clock.Freeze()
	first := w.traps.set(point{op: "Scan", done: true}, 1, true)
	all := w.traps.set(point{op: "Scan", done: true}, 2*parts+2, false)
	d := w.run()
	for _, e := range []*example{orders, devices} {
		d.until("the copy of "+e.table+" begins", func() bool { return d.table(e.table).Copy != nil })
	}
	w.Clock.Advance(3 * time.Second) // the copy begins two seconds after the start
	d.untilHit(first)
	disturb(fault.Truncate)
	first.open()
	d.untilHit(all)
	change := func(v int) {
		later := w.Clock.Now().Add(time.Hour).Unix()
		for _, e := range []*example{orders, devices} {
			put := func(i, v int) { w.putItem(e, e.item(i, v, later)) }
			remove := func(i int) { w.deleteItem(e, e.item(i, v, later)) }
			put(0, v) // hot; in Devices it moves each time
			put(v, v+1)
			put(v, v)
			remove(v + 1)
			put(v+2, v)
			remove(v + 2)
			put(v+2, v+1) // comes back
			put(n+v, v)   // behind the page of its segment
			put(n+v, v+3)
			put(n+v+1, v)
			remove(n + v + 1)
		}
	}
	change(3)
	if w.DynamoDB.ExpireNow(w.Clock.Now().Add(25*time.Second)) == 0 {
		t.Error("nothing has expired")
	}
	s := w.openPair()
	for _, e := range []*example{orders, devices} {
		if rows := s.stored(target(e.table), s.compile(e.table).Families()); len(rows) > n/2 {
			t.Errorf("%s: %d rows while the pages wait", e.table, len(rows))
		}
	}
	stop := w.load(n, 1301, 500*time.Millisecond, nil)
	for v := range 10 {
		w.Clock.Advance(time.Second)
		change(10 + 4*v)
	}
	for _, e := range []*example{orders, devices} {
		d.until(e.table+" is copied", func() bool { return d.table(e.table).Copy == nil })
	}
	stop()
	d.settle("Orders", "Devices")
	d.checkClean()
	w.Equal("Orders", "Devices")
	d.stop()
}

// TestCopyIsBegunByTheNextOwnerAndCanceled kills the first owner between the start entry and the
// copy entry. The next one begins the copy; a hot partition keeps it from ending, so that an
// operator cancels it: the rest of the table is a gap until a resync.
func TestCopyIsBegunByTheNextOwnerAndCanceled(t *testing.T) {
	long(t, "6 s")
	const n = 80
	w := newWorld(t, 1302)
	log := newRelay(t, strings.TrimPrefix(w.NATS.URL(), "nats://"))
	w.queue = fmt.Sprintf("{url: %q, replicas: 1}\nscratch: ./scratch", "nats://"+log.addr)
	w.testing = strings.Replace(w.testing, "claim_ttl: 2s", "claim_ttl: 1s", 1)
	w.old(n, 1302, []*example{exampleOf("Orders")})
	w.DynamoDB.ExpireNow(w.Clock.Now().Add(time.Minute)) // so that nothing expires later
	sent := log.loseFrom("backfill-1")                   // the id in the copy entry
	d := w.run()
	d.until("the copy entry is sent", func() bool { return closed(sent) })
	d.kill()
	w.DynamoDB.Reads.Limit("Orders", capacity.Limit{Hot: 1e-6, Partitions: 2})
	stop := w.load(n, 1302, 500*time.Millisecond, nil)
	d = w.run()
	d.until("the cold partition is copied", func() bool {
		c := d.table("Orders").Copy
		return c != nil && c.Items > 0 && w.refusedReads("Orders") > 2
	})
	kinds := slices.DeleteFunc(w.readLog("Orders").kinds, func(k checkpoint.Kind) bool {
		return k != checkpoint.KindClaim && k != checkpoint.KindStart && k != checkpoint.KindCopy
	})
	if got := string(kinds); got != "csco" {
		t.Errorf("entries %q: want a claim, the start, another claim and the copy", got)
	}
	w.ok("copy", "cancel", "--table", "Orders")
	d.until("the table has a gap", func() bool { return d.table("Orders").State == "gap" })
	w.DynamoDB.Reads.Calm()
	w.Put("Orders", "p#1", "s1", `"n":{"N":"1"}`)
	d.settle("Orders")
	if err := w.openPair().compare(t.Context(), "Orders"); err == nil {
		t.Error("nothing is missing after the cancellation")
	}
	if s := w.status(); s.Ready || !strings.Contains(strings.Join(s.Tables[0].Reasons, " "), "repair --table") {
		t.Errorf("status after the cancellation: %+v", s)
	}
	d.kill() // a gap survives a restart
	d = w.run()
	d.until("the table still has its gap", func() bool { return d.table("Orders").State == "gap" })
	w.Clock.Advance(2 * time.Minute) // a resync reads above all versions that were given out
	w.ok("resync", "--table", "Orders", "--wait")
	stop()
	d.settle("Orders")
	d.until("it is ready", func() bool { s, ok := d.status(); return ok && s.Ready })
	w.Equal("Orders")
	d.stop()
}

// closed reports whether a channel is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// refusedReads returns how many reads of a table its limits refused.
func (w *world) refusedReads(table string) (n int) {
	for _, s := range w.DynamoDB.Reads.Seconds(table) {
		n += s.Refused
	}
	return n
}
