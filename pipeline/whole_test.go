package pipeline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline"
)

// order asks for a resync of the whole table.
func (r *run) order(id string) {
	r.t.Helper()
	r.control("Orders", &checkpoint.Control{Resync: &checkpoint.ResyncOrder{ID: id}, By: "test"})
	r.until("the resync is pending", func() bool { return r.table("Orders").State == "healing" })
}

// why returns why the resync waits or is open.
func (r *run) why() string {
	if s := r.table("Orders").Resync; s != nil {
		return s.Why
	}
	return ""
}

// countScans counts the pages of parallel scans that were asked for, by segment.
func (w *world) countScans() func() map[int]int {
	var mu sync.Mutex
	pages := map[int]int{}
	w.tables.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
			if strings.HasSuffix(req.Header.Get("X-Amz-Target"), ".Scan") {
				body, _ := io.ReadAll(req.Body)
				req.Body = io.NopCloser(strings.NewReader(string(body)))
				var scan struct{ Segment, TotalSegments int }
				if json.Unmarshal(body, &scan) == nil && scan.TotalSegments > 1 {
					mu.Lock()
					pages[scan.Segment]++
					mu.Unlock()
				}
			}
			next.ServeHTTP(rw, req)
		})
	})
	return func() map[int]int {
		mu.Lock()
		defer mu.Unlock()
		all := map[int]int{}
		for k, v := range pages {
			all[k] = v
		}
		return all
	}
}

// holdScans keeps back the answers to parallel scans of segments from one on, until release is
// called.
func (w *world) holdScans(from int) (release func()) {
	held := make(chan struct{})
	w.tables.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
			if strings.HasSuffix(req.Header.Get("X-Amz-Target"), ".Scan") {
				body, _ := io.ReadAll(req.Body)
				req.Body = io.NopCloser(strings.NewReader(string(body)))
				var scan struct{ Segment, TotalSegments int }
				if json.Unmarshal(body, &scan) == nil && scan.TotalSegments > 1 && scan.Segment >= from {
					select {
					case <-held:
					case <-req.Context().Done():
						return
					}
				}
			}
			next.ServeHTTP(rw, req)
		})
	})
	return sync.OnceFunc(func() { close(held) })
}

// TestKilledResyncReadsNoFinishedPartTwice: what was read and sorted before is still true, because
// what has changed since is in the stream. Another order reads all parts again.
func TestKilledResyncReadsNoFinishedPartTwice(t *testing.T) {
	long(t, "starts a pipeline five times")
	w := newWorld(t)
	pages := w.countScans()
	scratch := t.TempDir()
	w.opts = func(o *pipeline.Options) { o.Scratch, o.Periods.Shutdown = scratch, time.Millisecond }
	w.backfill = pipeline.Backfill{From: "none", ReadUnits: 40}
	w.createTable("Orders")
	r := w.start("Orders")
	for i := range 100 {
		w.put("Orders", fmt.Sprint("p", i), "s", fmt.Sprintf(`"v":{"S":%q}`, strings.Repeat("x", 2000)))
	}
	r.settle()
	r.loseRow("Orders", "p3#s")
	r.order("r1")
	read := func() (n int) {
		for _, pages := range pages() {
			n += pages
		}
		return n
	}
	const kills = 3
	for k := range kills {
		r.hastenUntil("some more parts are read", func() bool { return read() >= 4*(k+1) })
		r.kill()
		r = w.restart("Orders")
	}
	r.healed()
	segments := len(pages())
	// Two parts are read at once: each kill costs at most these. A part has one page, and its end
	// is confirmed by a second read.
	if n := read(); n > 2*(segments+2*kills) {
		t.Errorf("%d pages of %d parts were read in spite of %d kills: %v", n, segments, kills, pages())
	}
	if res := r.fold("Orders").LastResync.Result; res.Written != 1 || res.Equal != 100 {
		t.Errorf("%+v", res)
	}
}

// TestLaterOrderBeginsAResyncAgain: what the first one has read may be older than what the second
// one is to heal.
func TestLaterOrderBeginsAResyncAgain(t *testing.T) {
	long(t, "10 s")
	w := newWorld(t)
	pages := w.countScans()
	w.createTable("Orders")
	r := w.start("Orders")
	for i := range 20 {
		w.put("Orders", fmt.Sprint("p", i), "s", `"v":{"N":"1"}`)
	}
	r.settle()
	w.front.Faults.Latency(100*time.Millisecond, 0)
	r.order("r1")
	r.hastenUntil("all parts are read", func() bool { return len(pages()) == 8 })
	r.control("Orders", &checkpoint.Control{Resync: &checkpoint.ResyncOrder{ID: "r2"}, By: "test"})
	r.hastenUntil("all parts are read again", func() bool {
		for _, n := range pages() {
			if n < 2 {
				return r.table("Orders").State == "running"
			}
		}
		return true
	})
	w.front.Faults.Latency(0, 0)
	r.healed()
	s := r.fold("Orders")
	for segment, n := range pages() {
		if n < 2 && s.LastResync.ID == "r2" {
			t.Errorf("segment %d was read %d times by two orders", segment, n)
		}
	}
}

// TestHotItemDoesNotKeepAResyncOpen: an item that is written 50 times a second is never the same
// twice.
func TestHotItemDoesNotKeepAResyncOpen(t *testing.T) {
	for name, mapping := range map[string]string{"own rows": "", "shared rows": sharedRows} {
		t.Run(name, func(t *testing.T) {
			long(t, "60 s")
			w := newWorld(t)
			w.mapping = mapping
			w.createTable("Orders")
			r, p := w.start("Orders"), &pairs{w: w}
			for i := range 20 {
				p.put("p", fmt.Sprint(i))
			}
			r.settle()
			ctx, cancel := context.WithCancel(t.Context())
			var load sync.WaitGroup
			load.Go(func() {
				for ctx.Err() == nil {
					p.put("p", "hot")
					w.pause(ctx, 20*time.Millisecond)
				}
			})
			x := r.watch()
			r.order("r1")
			r.hastenUntil("the resync is complete", func() bool { return r.table("Orders").State == "running" })
			cancel()
			load.Wait()
			x.stop()
			r.settle()
			r.equal()
		})
	}
}

// TestScratchWithoutRoomStopsTheResyncAlone: before its first part or in the middle, the status
// says what is wrong, the stream goes on, and so does the resync when it can.
func TestScratchWithoutRoomStopsTheResyncAlone(t *testing.T) {
	long(t, "5 s")
	w := newWorld(t)
	scratch := filepath.Join(t.TempDir(), "scratch")
	file := func() { // where a directory belongs
		if err := os.WriteFile(scratch, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file()
	w.opts = func(o *pipeline.Options) { o.Scratch = scratch }
	pages, release := w.countScans(), w.holdScans(4)
	defer release()
	w.createTable("Orders")
	r := w.start("Orders")
	for i := range 20 {
		w.put("Orders", fmt.Sprint("p", i), "1", `"v":{"N":"1"}`)
	}
	r.settle()
	r.loseRow("Orders", "p3#1")
	r.order("r1")
	stopped := func(key string) {
		t.Helper()
		r.hastenUntil("the status says why", func() bool { return strings.Contains(r.why(), scratch) })
		w.put("Orders", key, "1", `"v":{"N":"1"}`)
		r.settle()
		if r.stored("Orders")[key+"#1"] == nil {
			t.Errorf("%s is not there", key)
		}
		if err := os.Remove(scratch); err != nil {
			t.Fatal(err)
		}
	}
	stopped("before")
	r.hastenUntil("some parts are read", func() bool { return len(pages()) > 2 })
	if err := os.Rename(scratch, scratch+".away"); err != nil {
		t.Fatal(err)
	}
	file()
	release()
	stopped("during")
	if err := os.Rename(scratch+".away", scratch); err != nil {
		t.Fatal(err)
	}
	r.healed()
}

// TestRefusedItemKeepsTheResyncOpen: its rows are not what the table holds, and the reason says so.
func TestRefusedItemKeepsTheResyncOpen(t *testing.T) {
	long(t, "25 s")
	w := newWorld(t)
	w.mapping = strings.Replace(sharedRows, `match: {pk: "{p}"`, `match: {pk: "p{p}"`, 1)
	w.createTable("Orders")
	r := w.start("Orders")
	w.put("Orders", "pure", "1", `"v":{"N":"1"}`)
	w.put("Orders", "bad", "1", `"v":{"N":"1"}`)
	r.until("it is a letter", func() bool { return r.table("Orders").DeadLetters == 1 })
	r.order("r1")
	r.hastenUntil("the status says why", func() bool { return strings.Contains(r.why(), "refuses 1 item") })
	r.until("the file that is named lists the item", func() bool { // each pass writes it again
		_, file, _ := strings.Cut(r.why(), "; on the owner's disk ")
		list, _ := os.ReadFile(strings.TrimSuffix(file, " lists what is open"))
		return strings.Count(string(list), "\n") == 1 && strings.Contains(string(list), `"kind":"refused"`)
	})
	if st := r.table("Orders"); st.State != "healing" {
		t.Errorf("state %q", st.State)
	}
	w.delete("Orders", "bad", "1")
	r.hastenUntil("it is complete without the item", func() bool { return r.fold("Orders").Resync == nil })
}

// TestBigtableAwayInTheMiddleOfAResync: it goes on when Bigtable is back.
func TestBigtableAwayInTheMiddleOfAResync(t *testing.T) {
	long(t, "10 s")
	w := newWorld(t)
	pages := w.countScans()
	w.backfill = pipeline.Backfill{From: "none", ReadUnits: 20}
	w.createTable("Orders")
	r := w.start("Orders")
	for i := range 100 {
		w.put("Orders", fmt.Sprint("p", i), "s", fmt.Sprintf(`"v":{"S":%q}`, strings.Repeat("x", 2000)))
	}
	r.settle()
	r.loseRow("Orders", "p3#s")
	r.order("r1")
	r.hastenUntil("the table is being read", func() bool { return len(pages()) > 2 })
	w.front.Faults.Outage(0)
	w.put("Orders", "new", "s", `"v":{"N":"1"}`)
	r.until("Bigtable is missed", func() bool { return r.metric("tailrace_bigtable_retries_total") > 0 })
	w.front.Faults.Recover()
	r.healed()
}
