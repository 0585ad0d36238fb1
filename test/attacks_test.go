package test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/sandbox/ledger"
)

// TestWriteOfADeadOwnerArrivesAfterADelete delays the puts of a daemon until it is dead and its
// successor has changed and deleted the items. The late puts must change nothing, also once the
// tombstone is gone.
func TestWriteOfADeadOwnerArrivesAfterADelete(t *testing.T) {
	w := newWorld(t, 404)
	proxy := newDelayProxy(t, w.Bigtable.Addr())
	w.bigtable.addr = proxy.addr
	w.prepare("Orders")
	d := w.run()
	w.Put("Orders", "hats", "fedora", `"price":{"N":"1"}`)
	w.Put("Orders", "hats", "bowler", `"price":{"N":"1"}`)
	d.settle("Orders")
	proxy.hold()
	w.Put("Orders", "hats", "fedora", `"price":{"N":"2"}`)
	w.Put("Orders", "hats", "bowler", `"price":{"N":"2"}`)
	d.until("the writes are sent", func() bool {
		return proxy.isHolding("hats#fedora") && proxy.isHolding("hats#bowler")
	})
	d.kill()
	d = w.run()
	w.Delete("Orders", "hats", "fedora")
	w.Put("Orders", "hats", "bowler", `"size":{"N":"3"}`)
	d.settle("Orders")
	s := w.openPair()
	s.w.Equal("Orders")
	before := w.Bigtable.Writes()
	proxy.release()
	d.until("the dead owner's writes have arrived", func() bool { return w.Bigtable.Writes() >= before+2 })
	s.w.Equal("Orders")
	s.replayIsEqual("Orders", w.readLog("Orders"))
	w.Clock.Advance(9 * 24 * time.Hour)
	if _, err := w.Bigtable.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.w.Equal("Orders")
}

// TestServiceClockIsNotOurs sets the clock of the service off by minutes and by days: versions,
// tombstones and waits must follow it, and nothing the clock of this machine.
func TestServiceClockIsNotOurs(t *testing.T) {
	long(t, "15 s")
	t.Parallel()
	for i, off := range []time.Duration{4 * time.Minute, -4 * time.Minute, 8 * 24 * time.Hour, -8 * 24 * time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			w := newWorld(t, 407+uint64(i))
			w.Clock.Advance(off)
			began := w.Clock.Now()
			w.Faults.CheckTime(true)
			w.prepare("Orders")
			a := w.writer("Orders", 407+uint64(i))
			a.write(80)
			w.runUntilKilled(shot{at: afterWrite, n: 10})
			a.write(80)
			d := w.run()
			w.applied()
			d.checkClean()
			w.Equal("Orders")
			d.stop()
			l := w.readLog("Orders")
			w.logIsExact("Orders", l)
			earliest, latest := began.Add(-time.Minute).UnixMilli(), w.Clock.Now().Add(time.Minute).UnixMilli()
			for _, c := range l.changes {
				if c.Version < change.Version(earliest) || c.Version > change.Version(latest) {
					t.Fatalf("version %d is not between %d and %d, the service's time", c.Version, earliest, latest)
				}
			}
		})
	}
}

// TestBurstBeforeANewStreamHidesNothing drives the versions of a shard seconds ahead of the clock,
// then replaces the stream: changes of the new stream must still win.
func TestBurstBeforeANewStreamHidesNothing(t *testing.T) {
	long(t, "5 s")
	w := newWorld(t, 408)
	w.prepare("Orders")
	d := w.run()
	d.settle("Orders")
	w.Clock.Freeze()
	for i := range 3000 {
		w.Put("Orders", "hot", fmt.Sprint(i%3), fmt.Sprintf(`"n":{"N":"%d"}`, i))
	}
	d.until("the burst is in the log", func() bool { return d.table("Orders").Changes == w.committed("Orders") })
	w.Call("UpdateTable", `{"TableName":"Orders","StreamSpecification":{"StreamEnabled":false}}`)
	w.Call("UpdateTable", `{"TableName":"Orders",
		"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`)
	w.Put("Orders", "hot", "0", `"last":{"BOOL":true}`)
	w.Delete("Orders", "hot", "1")
	w.Put("Orders", "hot", "2", "")
	d.until("the new stream is a gap", func() bool { return d.table("Orders").Gaps == 1 })
	w.ok("resume", "--table", "Orders")
	d.until("the new stream is read", func() bool { return d.table("Orders").Changes == w.committed("Orders") })
	d.settle("Orders")
	var gap struct{ ID string }
	if err := json.Unmarshal([]byte(w.ok("gaps", "list", "--json")), &gap); err != nil {
		t.Fatal(err)
	}
	w.ok("gaps", "clear", gap.ID, "--sink", "bigtable", "--yes") // no write was lost between the streams
	d.until("it is ready", func() bool { s, ok := d.status(); return ok && s.Ready })
	s := w.openPair()
	s.w.Equal("Orders")
	d.kill()
	d = w.run()
	d.settle("Orders")
	d.stop()
	l := w.readLog("Orders")
	w.logIsExact("Orders", l)
	last := l.changes[len(l.changes)-1]
	if ahead := last.Version - change.Version(last.Created); ahead < 2500 {
		t.Errorf("the last version is %d ms ahead of its change: this was not a burst", ahead)
	}
	s.w.Equal("Orders")
	s.replayIsEqual("Orders", l)
}

// TestFirstStartAtLatestIsDecidedOnce kills a first start after each of its steps while an
// application writes: from the moment at which the start was decided, not a change may be missing,
// and none may come twice.
func TestFirstStartAtLatestIsDecidedOnce(t *testing.T) {
	long(t, "20 s")
	for i, step := range firstSteps {
		t.Run(fmt.Sprintf("step %d", i+1), func(t *testing.T) {
			w := newWorld(t, 411+uint64(i))
			w.start, w.tables = "latest", []string{"{source: Orders, target: orders, backfill: none}"}
			w.prepare("Orders")
			a := w.writer("Orders", 411+uint64(i))
			a.write(60)
			w.Clock.Advance(3 * time.Second) // the application was writing before the first start
			w.runUntilKilled(step)
			decided := w.committed("Orders")
			a.write(60)
			w.Clock.Advance(3 * time.Second)
			a.start()
			w.runUntilKilled(shot{at: afterWrite, n: 10, hold: true})
			d := w.run()
			d.untilHit(w.traps.set(afterWrite, 20, false))
			a.stop()
			if step.n < decidedCall { // only the second start decided it
				decided = w.committed("Orders")
			}
			w.rewriteItems(d, "Orders")
			d.settle("Orders")
			d.checkClean()
			d.stop()
			w.Equal("Orders")
			w.logIsSuffix(w.readLog("Orders"), decided)
		})
	}
}

// rewriteItems writes every item of a table once more, so that all items are in the stream, however
// late it was read first.
func (w *world) rewriteItems(d *daemon, table string) {
	w.t.Helper()
	var all struct{ Items []json.RawMessage }
	reply := w.Call("Scan", fmt.Sprintf(`{"TableName":%q}`, table))
	if err := json.Unmarshal(reply, &all); err != nil {
		w.t.Fatal(err)
	}
	for _, item := range all.Items {
		w.Call("PutItem", fmt.Sprintf(`{"TableName":%q,"Item":{"touched":{"BOOL":true},%s}`, table, item[1:]))
	}
}

// logIsSuffix checks that the log holds a suffix of each shard's changes, each once; and every
// change of the table after the first ones, during which the start was decided.
func (w *world) logIsSuffix(l *logged, first uint64) {
	w.t.Helper()
	count, n, all := map[string]int{}, uint64(0), w.committed("Orders")
	for _, c := range l.changes {
		count[c.Feed.Shard+string(c.SequenceNumber)]++
	}
	begun := map[string]bool{}
	w.Ledger.Changes("Orders", func(c ledger.Change) bool {
		n++
		times := count[c.Shard+c.Seq]
		begun[c.Shard] = begun[c.Shard] || times > 0
		if times > 1 || times == 0 && (begun[c.Shard] || n > first) {
			w.t.Errorf("change %d of %d (start decided after %d) is in the log %d times", n, all, first, times)
			return false
		}
		return true
	})
	w.t.Logf("%d changes, start decided after %d of them at the latest, %d in the log", n, first, len(l.changes))
}

// TestTwoInstancesRaceOnAFirstStart holds one of two instances after each step of its first start
// while the other one starts, then lets the first one go on.
func TestTwoInstancesRaceOnAFirstStart(t *testing.T) {
	long(t, "30 s")
	t.Parallel()
	for i, step := range firstSteps {
		t.Run(fmt.Sprintf("step %d", i+1), func(t *testing.T) {
			w := newWorld(t, 435+uint64(i))
			w.queue = fmt.Sprintf("{url: %q, replicas: 1}", w.NATS.URL())
			w.prepare("Orders")
			a := w.writer("Orders", 435+uint64(i))
			a.write(60)
			p := w.traps.add(&trap{at: step.at, left: step.n, hold: true, one: true})
			first := w.run()
			first.untilHit(p)
			second := w.run()
			// Before the claim the second instance overtakes. From the claim on the first one
			// beats, and its held call times out and is made again.
			second.until("one of them reads", func() bool {
				return max(first.table("Orders").Changes, second.table("Orders").Changes) >= w.committed("Orders")
			})
			p.open()
			a.write(60)
			w.applied()
			first.until("it is up", func() bool { code, _ := first.get("/startupz"); return code == 200 })
			w.Equal("Orders")
			owner, owns := "", (*daemon)(nil)
			w.Until("one of them says that it owns the log", func() bool {
				for _, d := range []*daemon{first, second} {
					if owner = d.table("Orders").Owner; owner != "" && strings.Contains(d.output.String(), owner) {
						owns = d
						return true
					}
				}
				return false
			})
			owns.kill() // the other one takes over
			a.write(60)
			if s := w.applied(); s.Tables[0].Owner == owner {
				t.Errorf("after the owner's death: %+v", s)
			}
			w.Equal("Orders")
			l := w.readLog("Orders")
			w.logIsExact("Orders", l)
			starts := 0
			for _, k := range l.kinds {
				if k == checkpoint.KindStart {
					starts++
				}
			}
			if starts != 1 {
				t.Errorf("%d starts in the log, want one", starts)
			}
		})
	}
}

// TestEditedMappingIsRefused edits the mapping between runs: a run must refuse it, because rows of
// two mappings must not mix.
func TestEditedMappingIsRefused(t *testing.T) {
	w := newWorld(t, 425)
	w.shareRows()
	w.prepare("Orders")
	a := w.writer("Orders", 425)
	a.write(60)
	w.runUntilKilled(shot{at: afterWrite, n: 5})
	before, err := os.ReadFile(w.dir + "/orders.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w.write("orders.yaml", strings.Replace(string(before), "{s}/{attr}", "{s}.{attr}", 1))
	w.refused(3, "mapping", "run")
	w.write("orders.yaml", string(before))
	d := w.run()
	d.settle("Orders")
	d.checkClean()
	d.stop()
	w.write("orders.yaml", strings.Replace(string(before), "{s}/{attr}", "{s}.{attr}", 1))
	w.refused(3, "mapping", "run")
	w.write("orders.yaml", string(before))
	w.Equal("Orders")
	w.logIsExact("Orders", w.readLog("Orders"))
}

// TestIdleTableWritesBeatsOnly advances the clock by hours while a table is idle: only beats may be
// appended. A listing, mark or snapshot that causes the next one would fill the log.
func TestIdleTableWritesBeatsOnly(t *testing.T) {
	long(t, "5 s")
	w := newWorld(t, 437)
	w.testing = "{claim_ttl: 300ms, beat: 20ms, listing: 100ms, describe: 100ms, mark_interval: 20ms, trim: 100ms, " +
		"date_trust: 1ns, patience: 300ms}"
	w.prepare("Orders")
	w.writer("Orders", 437).write(60)
	d := w.run()
	w.DynamoDB.ExpireNow(w.Clock.Now().Add(time.Minute)) // so that nothing expires later
	d.settle("Orders")
	d.until("its marks are written", func() bool {
		s := w.readLog("Orders").state
		return s.Marks["bigtable"].Seq >= s.LastFrame
	})
	idle := len(w.readLog("Orders").kinds)
	for hour := range 6 {
		w.Clock.Advance(time.Hour)
		d.until("it beats", func() bool { return len(w.readLog("Orders").kinds) > idle+(hour+1)*30 })
	}
	others := map[string]int{}
	l := w.readLog("Orders")
	for _, k := range l.kinds[idle:] {
		if k != checkpoint.KindBeat {
			others[string(rune(k))]++
		}
	}
	if len(others) > 0 {
		t.Errorf("%d entries of idle hours, some of them not beats: %v", len(l.kinds)-idle, others)
	}
	d.settle("Orders")
	d.checkClean()
	w.Equal("Orders")
}

// TestEmptyPagesAreNotTheEnd makes shards return empty pages before their records: status must say
// that the watermark is assumed, never that it is proven.
func TestEmptyPagesAreNotTheEnd(t *testing.T) {
	long(t, "6 s")
	w := newWorld(t, 417)
	w.prepare("Orders")
	for _, shard := range w.Stream.OpenShards("Orders") {
		w.Stream.Faults().EmptyPages(shard, 50)
	}
	w.writer("Orders", 417).write(60)
	d := w.run()
	d.until("everything arrives", func() bool {
		st := d.table("Orders")
		if st.Proof == "proven" {
			t.Fatal("status calls an empty page a proof")
		}
		return st.Changes == w.committed("Orders")
	})
	d.settle("Orders")
	d.checkClean()
	d.stop()
	w.Equal("Orders")
	w.logIsExact("Orders", w.readLog("Orders"))
}
