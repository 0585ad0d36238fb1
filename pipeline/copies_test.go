package pipeline_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline"
	sandbigtable "github.com/tailrace-cdc/replicator/sandbox/bigtable"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
)

// oldTable makes a table whose items are too old for its stream. Items of the partitions 0 to 6
// change later.
func (w *world) oldTable(n int) {
	w.t.Helper()
	w.createTable("Orders")
	w.fillOld(n)
}

func (w *world) fillOld(n int) {
	w.t.Helper()
	for i := range n {
		partition := i % max(97, n/50) // Bigtable's emulator copies a whole row for each write to it
		if i < 40 {
			partition = i % 7 // changeItems changes these
		}
		w.put("Orders", fmt.Sprint("p#", partition), fmt.Sprint("s", i), fmt.Sprintf(`"v":{"N":"%d"},"a0":{"S":"old"}`, i))
	}
	w.clock.Advance(25 * time.Hour)
	w.streams.Sweep()
	w.backfill = pipeline.Backfill{From: "scan", Segments: 32, ReadUnits: 100_000}
}

// copied waits until the copy is complete.
func (r *run) copied() {
	r.t.Helper()
	r.hastenUntil("the table is copied", func() bool {
		st := r.table("Orders")
		return st.State == "running" && st.Copy == nil
	})
}

// leastItems are enough to be copied in several lives.
const leastItems = 1500

var copyItems = flag.Int("copy.items", leastItems, "items of the table that is copied under kills; "+
	"more than the default are copied with mappings of all classes and more kills")

// TestOldTableIsCopiedBesideItsStream: under load, with owners killed at random moments and shards
// that split, for mappings of each class.
func TestOldTableIsCopiedBesideItsStream(t *testing.T) {
	long(t, "30 s")
	mappings, kills := map[string]string{"own rows": "", "shared rows": sharedRows, "rows by attribute": movingRows}, 2
	if *copyItems > leastItems {
		mappings, kills = classes, 5
	}
	c := newChances(t, len(mappings), len(classes), []string{goesOn}, "log claimed")
	for name, mapping := range mappings {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.watch(w)
			w.mapping = mapping
			w.opts = func(o *pipeline.Options) { o.Periods.Shutdown = time.Millisecond } // a kill: nothing is drained
			w.oldTable(*copyItems)
			seed := uint64(time.Now().UnixNano())
			rnd := rand.New(rand.NewPCG(seed, 1))
			t.Logf("seed %d", seed)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var load sync.WaitGroup
			load.Go(func() {
				for i := uint64(0); ctx.Err() == nil; i++ {
					if strings.Contains(mapping, "{v}") { // an item without it has no row
						w.moveItems(i, 5)
					} else {
						w.changeItems("Orders", i, 5)
					}
					w.pause(ctx, pace)
				}
			})
			for killed := range kills {
				r := w.start("Orders")
				copied := *copyItems/10 + rnd.IntN(*copyItems/8)
				r.hastenUntil("some more items are copied", func() bool {
					return r.metric("tailrace_copy_items_total") >= float64(copied) || r.table("Orders").State == "running"
				})
				if killed%3 == 1 { // two splits in five
					for _, shard := range w.streams.OpenShards("Orders")[:1] {
						if _, err := w.streams.Split(shard, 2); err != nil {
							t.Error(err)
						}
					}
				}
				running := r.fold("Orders").CopyRunning()
				c.ReachedIf(running != nil && running.Total().Items > 0, goesOn)
				c.end(r)
				_ = r.stop()
			}
			w.opts = nil
			r := w.start("Orders")
			r.copied()
			stop()
			load.Wait()
			r.settle()
			r.equal()
			r.ready()
			c.end(r)
		})
	}
}

// moveItems puts items of oldTable with another value, and deletes some.
func (w *world) moveItems(seed uint64, n int) {
	rnd := rand.New(rand.NewPCG(seed, 3))
	for range n {
		item := rnd.IntN(40)
		pk, sk := fmt.Sprint("p#", item%7), fmt.Sprint("s", item)
		if rnd.IntN(4) == 0 {
			w.delete("Orders", pk, sk)
			continue
		}
		w.put("Orders", pk, sk, fmt.Sprintf(`"v":{"N":"%d"}`, rnd.IntN(1000)))
	}
}

const movingRows = `
families: {d: {max_versions: 1}}
rules:
- name: by-value
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}#{v}#{s}"
  segments: escape
  cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]
`

// TestReaderNeverSeesACopiedItemStepBack: nor come back after a delete. A page is old when it is
// written, and the stream has brought newer changes, or brings them later.
func TestReaderNeverSeesACopiedItemStepBack(t *testing.T) {
	long(t, "12 s")
	w := newWorld(t)
	w.oldTable(600)
	r := w.start("Orders")
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	readers.Go(func() { // the newest value that was seen only grows
		seen := map[string]int{}
		for ctx.Err() == nil {
			began := time.Now()
			rows := r.stored("Orders")
			r.pause(ctx, time.Since(began))
			for key, cells := range rows {
				for _, c := range cells {
					var v int
					if _, err := fmt.Sscanf(c, `attributes:"n"="%d"`, &v); err != nil {
						if i := strings.Index(c, `"n"=`); i < 0 {
							continue
						} else if _, err := fmt.Sscanf(strings.Trim(c[i+4:], `"`), "%d", &v); err != nil {
							continue
						}
					}
					if v < seen[key] {
						t.Errorf("row %q stepped back from %d to %d", key, seen[key], v)
					}
					seen[key] = v
				}
			}
		}
	})
	i := 0
	r.until("the table is copied", func() bool { // a change before each look
		if !w.load.outruns(w.clock.Now()) {
			i++
			w.put("Orders", fmt.Sprintf("p#%d", i%5), fmt.Sprintf("s%d", i%5), fmt.Sprintf(`"n":{"N":"%d"}`, i))
		}
		return r.table("Orders").State == "running"
	})
	cancel()
	readers.Wait()
	r.settle()
	r.equal()
}

// TestCopyUnderTrouble: cut pages, Bigtable away in between.
func TestCopyUnderTrouble(t *testing.T) {
	long(t, "15 s")
	w := newWorld(t)
	w.oldTable(2000)
	for _, rule := range []fault.Rule{
		{Effect: fault.Throttle, Operation: "Scan", PerSecond: 20},
		{Effect: fault.Cut, Operation: "Scan", Odds: 0.2, Times: 10},
	} {
		if err := w.faults.Inject(rule); err != nil {
			t.Fatal(err)
		}
	}
	r := w.start("Orders")
	r.hastenUntil("something is copied", func() bool { return r.metric("tailrace_copy_items_total") > 0 })
	w.front.Faults.Outage(0)
	w.changeItems("Orders", 3, 50)
	r.until("Bigtable is missed", func() bool { return r.metric("tailrace_bigtable_retries_total") > 0 })
	w.front.Faults.Recover()
	r.copied()
	r.settle()
	r.equal()
}

// TestCopyIsPausedAndResumed by an operator, in this life and in the next one.
func TestCopyIsPausedAndResumed(t *testing.T) {
	long(t, "15 s")
	w := newWorld(t)
	release := w.holdScans(0) // until it was paused
	defer release()
	w.oldTable(500)
	r := w.start("Orders")
	r.hastenUntil("the copy runs", func() bool { return r.table("Orders").Copy != nil })
	control := func(what string) {
		t.Helper()
		r.control("Orders", &checkpoint.Control{Copy: &checkpoint.CopyOrder{ID: "backfill-1", Do: what}, By: "test"})
	}
	control(checkpoint.CopyPause)
	paused := func() bool { c := r.table("Orders").Copy; return c != nil && c.Paused != "" }
	r.until("it is paused", paused)
	release()
	w.put("Orders", "new", "x", `"v":{"N":"1"}`)
	r.settle() // the stream goes on
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r = w.start("Orders")
	r.hastenUntil("it stays paused", paused)
	control(checkpoint.CopyResume)
	r.copied()
	r.settle()
	r.equal()
}

// TestItemsThatACopyCannotWriteAreLetters: they do not keep the application from mending them.
func TestItemsThatACopyCannotWriteAreLetters(t *testing.T) {
	long(t, "10 s")
	w := newWorld(t)
	w.mapping = sharedRows
	w.createTable("Orders")
	w.put("Orders", "bad", "s", `"v":{"N":"1"}`)
	w.fillOld(200)
	w.front.Faults.RefuseRow([]byte("bad"), codes.InvalidArgument, 2)
	r := w.start("Orders")
	r.copied()
	r.hastenUntil("the letter is counted", func() bool { return r.table("Orders").DeadLetters == 1 })
	w.put("Orders", "bad", "s", `"v":{"N":"7"}`)
	r.settle()
	r.until("the application's change is applied", func() bool {
		return len(r.stored("Orders")) == len(r.projected("Orders"))
	})
	r.equal()
}

// TestEmptyTableIsReadyAtOnce: a table that does not say how it is copied is scanned, and an empty
// one is copied as soon as the first page may be read.
func TestEmptyTableIsReadyAtOnce(t *testing.T) {
	w := newWorld(t)
	w.backfill = pipeline.Backfill{}
	w.createTable("Orders")
	r := w.start("Orders")
	r.hastenUntil("it is ready", func() bool { ok, _ := r.p.Ready(); return ok })
	// The table is ready once the last marks are stored; the copy says so after that.
	r.until("the copy says that it is complete", func() bool { return w.logged.FilterMessage("copied").Len() == 1 })
	w.changeItems("Orders", 1, 20)
	r.settle()
	r.equal()
}

// TestOverloadedBigtableIsCounted: what Bigtable refuses as too much slows the copy down, and
// nothing is lost.
func TestOverloadedBigtableIsCounted(t *testing.T) {
	long(t, "10 s")
	w := newWorld(t)
	w.oldTable(500)
	w.front.Faults.Code(codes.ResourceExhausted)
	w.front.Faults.Random(sandbigtable.Odds{Refuse: 0.3})
	r := w.start("Orders")
	r.hastenUntil("the refusals are counted", func() bool { return r.sink.Overloads("orders") > 10 })
	w.changeItems("Orders", 5, 20)
	w.front.Faults.Calm()
	r.copied()
	r.settle()
	r.equal()
}

// TestCanceledCopyLeavesAGapUntilAResync: the table is not ready, and says why, until it was
// compared with its target.
func TestCanceledCopyLeavesAGapUntilAResync(t *testing.T) {
	long(t, "15 s")
	w := newWorld(t)
	release := w.holdScans(31) // the last part, so that the copy is not complete before it is canceled
	defer release()
	w.oldTable(300)
	r := w.start("Orders")
	r.hastenUntil("the copy runs", func() bool { c := r.table("Orders").Copy; return c != nil && c.Items > 0 })
	r.control("Orders", &checkpoint.Control{
		Copy: &checkpoint.CopyOrder{ID: "backfill-1", Do: checkpoint.CopyCancel}, By: "test",
	})
	r.until("the table has a gap", func() bool {
		st := r.table("Orders")
		return st.State == "gap" && strings.Contains(strings.Join(st.Reasons, " "), "cancel")
	})
	release()
	w.put("Orders", "new", "x", `"v":{"N":"1"}`)
	r.settle() // the stream goes on
	if ok, _ := r.p.Ready(); ok {
		t.Error("ready without the rest of the table")
	}
	r.control("Orders", &checkpoint.Control{Resync: &checkpoint.ResyncOrder{ID: "r1"}, By: "test"})
	r.healed()
}

// TestServerThatKnowsNoTimesIsReadFromItsHorizon: some servers give an iterator AT_TIMESTAMP and
// then cannot read with it.
func TestServerThatKnowsNoTimesIsReadFromItsHorizon(t *testing.T) {
	long(t, "5 s")
	w := newWorld(t)
	w.backfill.From = "scan"
	w.tables.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
			body, err := io.ReadAll(req.Body)
			if err != nil {
				t.Error(err)
			}
			req.Body = io.NopCloser(bytes.NewReader(body))
			switch {
			case bytes.Contains(body, []byte(`"AT_TIMESTAMP"`)):
				_, _ = io.WriteString(rw, `{"ShardIterator":"without a time"}`)
			case bytes.Contains(body, []byte(`"without a time"`)):
				rw.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(rw, `{"__type":"com.amazon.coral.validate#ValidationException","message":"no such iterator"}`)
			default:
				next.ServeHTTP(rw, req)
			}
		})
	})
	w.createTable("Orders")
	w.changeItems("Orders", 70, 50)
	r := w.start("Orders")
	w.changeItems("Orders", 71, 50)
	r.hastenUntil("the copy is complete", func() bool {
		ready, _ := r.p.Ready()
		return ready
	})
	r.settle()
	r.equal()
	if at := r.fold("Orders").Streams[0].At; at != 0 {
		t.Errorf("the stream was started at %d", at)
	}
}
