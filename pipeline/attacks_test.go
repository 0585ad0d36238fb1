package pipeline_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/sandbox/dynamo"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
)

// loseBetween loses changes between two streams of the table, and goes on behind the gap.
func (r *run) loseBetween(lose func()) {
	r.t.Helper()
	losses["stream enabled again"](r, lose)
	r.lost()
	r.control("Orders", resume())
	r.hastenUntil("the gap is accepted", func() bool { return r.fold("Orders").OpenGaps() == 0 })
}

// Attack 43: moves are lost in a gap, so the old rows of the items are known to no image. A key
// list repairs them all the same, and the letter of an item that moved meanwhile.
func TestMovedItemsAreRepairedByTheirKeys(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t)
	w.mapping = movingRows
	w.createTable("Orders")
	r := w.start("Orders")
	var items []request.Item
	move := func(v int) {
		for i := range 6 {
			w.put("Orders", "p", fmt.Sprint(i), fmt.Sprintf(`"v":{"N":"%d"},"w":{"N":"%d"}`, v, v))
		}
	}
	for i := range 6 {
		items = append(items, itemOf("p", fmt.Sprint(i)))
	}
	move(1)
	r.settle()
	r.loseBetween(func() {
		move(2)
		w.delete("Orders", "p", "5")
	})
	w.front.Faults.RefuseRow([]byte("p#3#0"), codes.InvalidArgument, 2)
	w.put("Orders", "p", "0", `"v":{"N":"3"}`)
	r.hastenUntil("a move is a letter", func() bool { return r.table("Orders").DeadLetters == 1 })
	r.settle()
	if !r.has("p#1#1") || !r.has("p#1#5") {
		t.Fatal("nothing is left to repair")
	}
	w.clock.Advance(2 * time.Minute) // nothing is hot any more
	if out := r.answered(r.ask(request.Resync, items...)); out.Refused > 0 || out.Hot > 0 {
		t.Errorf("%+v", out)
	}
	r.settle()
	r.equal()
	r.hastenUntil("the letter is gone", func() bool { return r.table("Orders").DeadLetters == 0 })
}

// Attack 48: replies that leave keys unprocessed, mix the items up, or have no Date, while all
// items are asked for, some of them twice. A reader sees no item vanish.
func TestFaultyBatchesHideNoItem(t *testing.T) {
	long(t, "3 s")
	w := newWorld(t)
	w.createTable("Orders")
	r, p := w.start("Orders"), &pairs{w: w}
	var items []request.Item
	for i := range 150 {
		p.put(fmt.Sprint("p", i%7), fmt.Sprint(i))
		items = append(items, itemOf(fmt.Sprint("p", i%7), fmt.Sprint(i)), itemOf("absent", fmt.Sprint(i)))
		if i%5 == 0 {
			items = append(items, items[len(items)-2])
		}
	}
	r.settle()
	r.loseBetween(func() {
		for i := range 50 {
			p.put(fmt.Sprint("p", i%7), fmt.Sprint(i))
		}
	})
	w.tables.Faults.Disorder(true)
	w.tables.Faults.LeaveUnprocessed(dynamo.Unprocessed{Share: 0.7, Times: 12})
	for _, e := range []fault.Effect{fault.NoDate, fault.Truncate} {
		if err := w.faults.Inject(fault.Rule{Effect: e, Operation: "BatchGetItem", Times: 3}); err != nil {
			t.Fatal(err)
		}
	}
	w.clock.Advance(2 * time.Minute) // nothing is hot any more
	r.settle()
	x := r.watch()
	out := r.answered(r.ask(request.Resync, items...))
	x.stop()
	if out.Written < 50 || out.Refused > 0 || w.faults.Pending() > 0 {
		t.Errorf("%+v, %d faults left", out, w.faults.Pending())
	}
	r.settle()
	r.equal()
}

// Attack 50: the copy reads a comment, and the removal of its video, which takes the row along, is
// not read yet. The comment waits for the removal; before it, the removal would delete it, and
// nothing would write it again.
func TestCopyOfAChildWaitsForTheRemovalOfItsRow(t *testing.T) {
	long(t, "3 s")
	w := newWorld(t)
	w.mapping = videos
	w.createTable("Orders")
	for i := range 20 {
		w.put("Orders", fmt.Sprint("x", i), "Video", `"title":{"S":"t"}`)
		w.put("Orders", fmt.Sprint("x", i), "Comment#1", `"text":{"S":"hello"}`)
	}
	w.clock.Advance(25 * time.Hour)
	w.streams.Sweep()
	w.backfill.From, w.backfill.Segments = "scan", 4
	pages := w.countScans()
	r := w.start("Orders")
	r.until("the copy has begun", func() bool { return r.table("Orders").Copy != nil })
	_, release := w.holdRecords()
	defer release()
	for i := range 20 {
		w.delete("Orders", fmt.Sprint("x", i), "Video")
	}
	r.until("the table is read", func() bool { w.clock.Advance(100 * time.Millisecond); return len(pages()) == 4 })
	w.clock.Advance(30 * time.Second)
	if n := len(r.stored("Orders")); n > 0 {
		t.Errorf("%d rows are written before the stream is read up to them", n)
	}
	release()
	r.copied()
	r.healed()
	if n := len(r.stored("Orders")); n != 20 {
		t.Errorf("%d rows, want the comments' 20", n)
	}
}

// holdRecords keeps back the records of all shards until release is called. waiting returns how
// many reads it holds: as many as there are open shards once no earlier read is under way.
func (w *world) holdRecords() (waiting func() int, release func()) {
	held := make(chan struct{})
	var n atomic.Int64
	w.tables.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
			if strings.HasSuffix(req.Header.Get("X-Amz-Target"), ".GetRecords") {
				n.Add(1)
				defer n.Add(-1)
				select {
				case <-held:
				case <-req.Context().Done():
					return
				}
			}
			next.ServeHTTP(rw, req)
		})
	})
	return func() int { return int(n.Load()) }, sync.OnceFunc(func() { close(held) })
}

// Attack 59: items of a page stand before Bigtable while 30 hours pass, and their deletes are lost
// in a gap. No reader sees them when Bigtable takes them at last.
func TestPageFromBeforeALostDeleteResurrectsNothing(t *testing.T) {
	long(t, "5 s")
	w := newWorld(t)
	w.onGap = "heal"
	w.createTable("Orders")
	for i := range 5 {
		w.put("Orders", "frozen", fmt.Sprint(i), `"v":{"N":"1"}`)
		w.front.Faults.RefuseRow(fmt.Appendf(nil, "frozen#%d", i), codes.Unavailable, -1)
	}
	w.fillOld(100)
	r := w.start("Orders")
	r.hastenUntil("a page stands before Bigtable", func() bool { return r.metric("tailrace_bigtable_retries_total") >= 5 })
	waiting, release := w.holdRecords()
	defer release()
	r.until("no reader sees the deletes", func() bool {
		w.clock.Advance(100 * time.Millisecond)
		return waiting() == r.table("Orders").Shards.Open
	})
	for i := range 5 {
		w.delete("Orders", "frozen", fmt.Sprint(i))
	}
	w.clock.Advance(30 * time.Hour)
	w.streams.Trim(w.clock.Now().Add(-24 * time.Hour))
	release()
	r.hastenUntil("the gap is healed", func() bool {
		s := r.fold("Orders")
		return len(s.Gaps) > 0 && s.Resync == nil && s.OpenGaps() == 0
	})
	w.front.Faults.Calm()
	r.hastenUntil("the table is copied", func() bool {
		for i := range 5 {
			if r.has(fmt.Sprint("frozen#", i)) {
				t.Fatal("a deleted item is there")
			}
		}
		return r.fold("Orders").CopyRunning() == nil
	})
	r.settle()
	r.equal()
}

const archivesInRow = `
families: {d: {max_versions: 1}, arch: {max_versions: 1}}
rules:
- name: all
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}#{s}"
  cells: [{attr: v, to: "d:v"}]
  on_ttl_expiry: "archive:arch"
`

// Attack 70: Bigtable refuses the deletion by TTL that archives an item, and refuses it again.
// Neither a resync of the table nor a retry of the letter takes the last copy of the item away; the
// retry archives it at last.
func TestLastCopyOfAnExpiredItemOutlivesResyncs(t *testing.T) {
	long(t, "5 s")
	w := newWorld(t)
	w.mapping = archivesInRow
	w.createTable("Orders")
	w.post("UpdateTimeToLive",
		`{"TableName":"Orders","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expires"}}`)
	r := w.start("Orders")
	w.put("Orders", "p", "other", `"v":{"S":"x"}`)
	w.put("Orders", "p", "a", fmt.Sprintf(`"v":{"S":"last"},"expires":{"N":"%d"}`, w.clock.Now().Unix()))
	r.settle()
	w.front.Faults.RefuseRow([]byte("p#a"), codes.InvalidArgument, -1)
	w.clock.Advance(time.Minute)
	w.tables.ExpireNow(w.clock.Now())
	r.hastenUntil("the deletion is a letter", func() bool { return r.table("Orders").DeadLetters == 1 })
	holds := func(family string) {
		t.Helper()
		if cells := r.stored("Orders")["p#a"]; len(cells) != 1 || !strings.HasPrefix(cells[0], family+":") ||
			!strings.Contains(cells[0], "last") {
			t.Fatalf("the row of the expired item holds %v", cells)
		}
	}
	holds("d")
	r.order("r1")
	r.hastenUntil("the resync has met the letter", func() bool {
		return strings.Contains(r.why(), "dlq list")
	})
	holds("d")
	if out := r.answered(r.ask(request.Letters, itemOf("p", "a"))); out.Refused != 1 || out.Applied != 0 ||
		len(out.Notes) != 1 || out.Notes[0].Letter == "" {
		t.Errorf("the refused retry: %+v", out)
	}
	holds("d")
	w.front.Faults.Calm()
	if out := r.answered(r.ask(request.Letters, itemOf("p", "a"))); out.Refused != 0 {
		t.Errorf("the retry: %+v", out)
	}
	r.hastenUntil("nothing is open", func() bool {
		return r.table("Orders").DeadLetters == 0 && r.fold("Orders").Resync == nil
	})
	holds("arch")
}

// TestRandomChangesBesideResyncs: seeded puts, removals and moves of few items, while lists of
// their keys and then the whole table are resynced behind a gap. A reader that polls all the time
// sees no item step back or come back, and none in two states at once.
func TestRandomChangesBesideResyncs(t *testing.T) {
	long(t, "10 s")
	seed := uint64(time.Now().UnixNano())
	for _, class := range []string{"rows by attribute", "shared rows"} {
		t.Run(class, func(t *testing.T) {
			t.Logf("seed %d", seed)
			w := newWorld(t)
			w.mapping = classes[class]
			w.createTable("Orders")
			r, p := w.start("Orders"), &pairs{w: w}
			const items, changing = 30, 20 // the resyncs alone mend the others
			key := func(i int) (pk, sk string) { return fmt.Sprint("p", i%5), fmt.Sprint(i) }
			change := func(rnd *rand.Rand, n int) {
				pk, sk := key(rnd.IntN(n))
				if rnd.IntN(3) == 0 {
					w.delete("Orders", pk, sk)
				} else {
					p.put(pk, sk) // also another row, by its attribute v
				}
			}
			for i := range items {
				p.put(key(i))
			}
			r.settle()
			rnd := rand.New(rand.NewPCG(seed, 1))
			r.loseBetween(func() {
				for range 2 * items {
					change(rnd, items)
				}
			})
			ctx, cancel := context.WithCancel(t.Context())
			var load sync.WaitGroup
			load.Go(func() {
				for rnd := rand.New(rand.NewPCG(seed, 2)); ctx.Err() == nil; w.pause(ctx, pace) {
					change(rnd, changing)
				}
			})
			x := r.watch()
			var written int64
			for range 2 {
				var list []request.Item
				for range items / 2 {
					list = append(list, itemOf(key(rnd.IntN(items))))
				}
				out := r.answered(r.ask(request.Resync, list...))
				written += out.Written
				if out.Refused > 0 {
					t.Errorf("%+v", out)
				}
			}
			r.control("Orders", &checkpoint.Control{Resync: &checkpoint.ResyncOrder{ID: "r1"}, By: "test"})
			r.hastenUntil("the resync of the table is complete", func() bool {
				s := r.fold("Orders")
				return s.LastResync != nil && s.LastResync.ID == "r1"
			})
			cancel()
			load.Wait()
			r.settle()
			x.stop()
			r.equal()
			if written += r.fold("Orders").LastResync.Result.Written; written == 0 {
				t.Error("no resync had to write anything")
			}
		})
	}
}
