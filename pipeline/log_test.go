package pipeline_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/source"
)

func resume() *checkpoint.Control { return &checkpoint.Control{Resume: true, By: "test"} }

func TestLostLogVolumeIsRefused(t *testing.T) {
	w := newWorld(t)
	w.patient()
	w.createTable("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 20, 50)
	r.settle()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(w.dir); err != nil {
		t.Fatal(err)
	}
	w.dir = t.TempDir()
	r = w.start("Orders")
	refused := (*pipeline.RefusedError)(nil)
	if err := r.end(); !errors.As(err, &refused) || !strings.Contains(refused.Hint, "recover") {
		t.Fatalf("started on an empty volume: %v", err)
	}
}

// The log lost everything from its start entry on, as when a server cuts off what it cannot read.
// Starting once more, at "latest" for example, would leave out what was written in between.
func TestLogThatLostItsStartIsNotStartedAgain(t *testing.T) {
	w := newWorld(t)
	w.patient()
	w.createTable("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 24, 50)
	r.settle()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	w.cutLog(regexp.MustCompile("TRLG.s"))
	r = w.start("Orders")
	refused := (*pipeline.RefusedError)(nil)
	if err := r.end(); !errors.As(err, &refused) || !strings.Contains(refused.What, "the log is empty") {
		t.Fatalf("started again on a log without a start: %v", err)
	}
}

// The volume of the log gives input/output errors. The table halts without a way out that gives
// something up, another table goes on, and the table goes on by itself when the volume is back.
func TestTableGoesOnWhenItsVolumeIsBack(t *testing.T) {
	w := newWorld(t)
	w.patient()
	for _, name := range []string{"Orders", "Others"} {
		w.createTable(name)
	}
	r := w.start("Orders", "Others")
	w.put("Orders", "a", "1", `"v":{"N":"1"}`)
	r.settle()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(w.dir, "jetstream", "*", "streams", "TAILRACE_shop_Orders*")
	blocks, err := filepath.Glob(filepath.Join(log, "msgs", "*.blk"))
	if err != nil || len(blocks) == 0 {
		t.Fatal(blocks, err)
	}
	for _, path := range blocks { // an open that fails, of a file that is there
		if err := errors.Join(os.Rename(path, path+".away"), os.Symlink(path, path)); err != nil {
			t.Fatal(err)
		}
	}
	r = w.restart("Orders", "Others")
	r.until("the table halts", func() bool { return r.table("Orders").Code == "log_unread" })
	why := r.table("Orders").Halt
	if !strings.Contains(why, "input/output error") || strings.Contains(why, "`replicator") {
		t.Errorf("halted: %s", why)
	}
	w.put("Others", "b", "1", `"v":{"N":"1"}`)
	r.until("the other table goes on", func() bool { return len(r.stored("Others")) == 1 })
	w.put("Orders", "c", "1", `"v":{"N":"1"}`)
	for _, path := range blocks {
		if err := errors.Join(os.Remove(path), os.Rename(path+".away", path)); err != nil {
			t.Fatal(err)
		}
	}
	r.settle()
	r.equal()
}

// A byte of a frame that Bigtable has not applied yet flips, after a snapshot. The state is whole;
// the halt of the sink names what is lost, and the sink goes on after it once the gap is accepted.
func TestSinkGoesOnBehindADamagedFrameOnceThatIsAccepted(t *testing.T) {
	long(t, "3 s")
	w := newWorld(t)
	w.opts = func(o *pipeline.Options) { o.Periods.Shutdown = 10 * time.Second } // the last fifth is for the snapshot
	w.createTable("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 25, 50)
	r.settle()
	before := r.table("Orders").Changes
	w.front.Faults.Outage(0)
	w.put("Orders", "lost", "1", `"v":{"S":"lost"}`)
	r.until("the change is in the log", func() bool { return r.table("Orders").Changes == before+1 })
	w.put("Orders", "kept", "1", `"v":{"S":"kept"}`)
	r.until("the next change is in the log", func() bool { return r.table("Orders").Changes == before+2 })
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	for len(r.p.Unsaved()) > 0 { // on a busy machine there was no time left for the snapshot
		r = w.start("Orders")
		r.until("it has the log", func() bool { return r.table("Orders").Changes == before+2 })
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
	}
	w.spoil(w.frame("Orders", before+1))
	w.front.Faults.Recover() // when no call of the first life is on its way any more
	r = w.start("Orders")
	r.until("the sink halts", func() bool { return r.table("Orders").Code == "log_damaged" })
	if x := r.table("Orders"); x.Gaps == 0 || len(r.stored("Orders")["kept#1"]) > 0 {
		t.Fatalf("%d gaps; behind the damage is applied: %v", x.Gaps, r.stored("Orders")["kept#1"])
	}
	r.control("Orders", resume())
	r.until("the sink goes on", func() bool { return len(r.stored("Orders")["kept#1"]) > 0 })
	if len(r.stored("Orders")["lost#1"]) > 0 {
		t.Fatal("the lost change is there: nothing was spoilt")
	}
}

// frame returns the stored entry that holds the nth change of a table, while no process has the log
// open.
func (w *world) frame(table string, nth uint64) []byte {
	w.t.Helper()
	ctx := w.t.Context()
	q, err := queue.Open(ctx, queue.Options{Pipeline: "shop", Dir: w.dir}, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		w.t.Fatal(err)
	}
	defer q.Close()
	l, err := q.Log(ctx, table)
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := l.Read(ctx, 0, checkpoint.Hash{})
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Close(ctx)
	for changes := uint64(0); ; {
		_, e, err := r.Next(ctx)
		if err != nil {
			w.t.Fatal(err)
		}
		f, ok := e.Body.(*checkpoint.Frame)
		if !ok {
			continue
		}
		for _, p := range f.Pages {
			changes += uint64(p.Records)
		}
		if changes >= nth {
			return e.Data
		}
	}
}

// spoil flips a bit of the data of an entry.
func (w *world) spoil(data []byte) {
	w.t.Helper()
	blocks, _ := filepath.Glob(filepath.Join(w.dir, "jetstream", "*", "streams", "*", "msgs", "*.blk"))
	for _, block := range blocks {
		b, err := os.ReadFile(block)
		if err != nil {
			w.t.Fatal(err)
		}
		at := bytes.Index(b, data)
		if at < 0 {
			continue
		}
		b[at+len(data)/2] ^= 0x40
		if err := os.WriteFile(block, b, 0o600); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	w.t.Fatal("the entry is not in the store")
}

// cutLog spoils the first entry that begins like this and lets the server read its blocks again: it
// cuts off the log there.
func (w *world) cutLog(entry *regexp.Regexp) {
	w.t.Helper()
	blocks, _ := filepath.Glob(filepath.Join(w.dir, "jetstream", "*", "streams", "*", "msgs", "*.blk"))
	for _, block := range blocks {
		b, err := os.ReadFile(block)
		if err != nil {
			w.t.Fatal(err)
		}
		at := entry.FindIndex(b)
		if at == nil {
			continue
		}
		b[at[1]+20] ^= 0x40
		if err := os.WriteFile(block, b, 0o600); err != nil {
			w.t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(filepath.Dir(block), "index.db")); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	w.t.Fatal("no such entry in the store")
}

func TestStreamDeletedUnderUsHaltsTheTable(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 21, 50)
	r.settle()
	r.deleteStreams()
	w.changeItems("Orders", 22, 50)
	r.until("the table is halted", func() bool { return r.table("Orders").State == "halted" })
	if code := r.table("Orders").Code; code != "log_refused" {
		t.Errorf("halted with code %q, want log_refused", code)
	}
}

func TestForeignMessagesFoldAsNothing(t *testing.T) {
	long(t, "3 s")
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 23, 50)
	r.settle()
	r.publishStray()
	w.changeItems("Orders", 24, 50)
	r.until("the stray message is counted", func() bool { return r.table("Orders").Foreign > 0 })
	r.settle()
	r.equal()
}

func TestPauseAndResumeThroughTheLog(t *testing.T) {
	long(t, "3 s")
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	r.settle()
	l, err := r.queue.Log(t.Context(), "Orders")
	if err != nil {
		t.Fatal(err)
	}
	on := true
	if _, err := l.AppendControl(t.Context(), &checkpoint.Control{Pause: &on}); err != nil {
		t.Fatal(err)
	}
	r.until("the table is paused", func() bool { return r.table("Orders").State == "paused" })
	w.changeItems("Orders", 25, 50)
	r.resume("Orders")
	r.settle()
	r.equal()
}

func TestFullQueuePausesReadersAndRecovers(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	w.qopts = func(o *queue.Options) { o.MaxBytes, o.ReplayWindow = 2<<20, -1 }
	r := w.start("Orders")
	r.settle()
	w.front.Faults.Outage(0)
	noise := newNoise(26)
	for range 400 {
		w.put("Orders", "p", noise.word(4), `"big":{"S":"`+noise.word(8<<10)+`"}`)
	}
	r.until("the log is full", func() bool {
		return used(r) > 0.8 && strings.Contains(strings.Join(r.table("Orders").Reasons, "; "), "reading pauses")
	})
	w.front.Faults.Recover()
	r.settle()
	r.equal()
	r.until("the log is trimmed", func() bool { return used(r) < 0.7 })
}

// Orders goes nowhere any more, and its readers hold all memory that is not another table's own.
func TestFullLogPausesNoOtherTable(t *testing.T) {
	long(t, "5 s")
	w := newWorld(t)
	w.createTable("Orders")
	w.createTable("Users")
	w.qopts = func(o *queue.Options) { o.MaxBytes, o.ReplayWindow = 2<<20, -1 }
	w.sopts = func(o *source.Options) { o.MemoryTotal = 3 << 20 }
	r := w.start("Orders", "Users")
	r.settle()
	w.front.Faults.RefuseRow([]byte("stuck"), codes.Unavailable, -1)
	w.put("Orders", "stuck", "x", `"v":{"N":"1"}`)
	r.until("it is read", func() bool { return r.table("Orders").Changes == 1 })
	noise := newNoise(85)
	written := 1
	fill := func(n int) {
		for range n {
			w.put("Orders", noise.word(8), "x", `"big":{"S":"`+noise.word(8<<10)+`"}`)
			written++
		}
	}
	for used(r) <= 0.8 {
		fill(20)
		r.until("they are in the log, or it is full", func() bool {
			return int(r.table("Orders").Changes) >= written || used(r) > 0.8
		})
	}
	fill(300)
	waiting := func() bool { return used(r) > 0.8 && r.metric("tailrace_source_parked_oldest_seconds") > 1 }
	r.until("its readers wait for memory", waiting)
	for i := range 200 {
		w.put("Users", fmt.Sprint(i), "x", `"big":{"S":"`+noise.word(1<<10)+`"}`)
	}
	r.until("the other table is applied", func() bool { return len(r.stored("Users")) == 200 })
	r.equal("Users")
	if !waiting() {
		t.Errorf("the readers of Orders did not wait meanwhile, its log is %.2f full", used(r))
	}
	w.front.Faults.Calm()
	r.settle()
	r.equal()
}

func used(r *run) float64 {
	q := r.table("Orders").Queue
	return float64(q.Bytes) / float64(max(q.Limit, 1))
}

func TestSecondOwnerStandsByAndTakesOver(t *testing.T) {
	long(t, "5 s")
	w := newWorld(t)
	w.createTable("Orders")
	url := externalNATS(t)
	w.qopts = func(o *queue.Options) { o.Dir, o.URL = "", url }
	first := w.start("Orders")
	w.changeItems("Orders", 27, 100)
	first.settle()
	second := w.start("Orders")
	second.until("the second is up", func() bool { return second.p.Started() == nil })
	w.changeItems("Orders", 28, 100)
	first.settle()
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	w.changeItems("Orders", 29, 100)
	second.settle()
	second.equal()
}

func TestNATSRestartInBetween(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	srv := startNATS(t)
	w.qopts = func(o *queue.Options) { o.Dir, o.URL, o.AckTimeout = "", srv.url, time.Second }
	r := w.start("Orders")
	for seed := range uint64(3) {
		w.changeItems("Orders", 30+seed, 60)
		srv.restart()
		w.changeItems("Orders", 40+seed, 60)
	}
	r.settle()
	r.equal()
}

func TestBurstAheadOfItsLeadWaitsForBigtable(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	w.opts = func(o *pipeline.Options) { o.Periods.Lead = 50 * time.Millisecond }
	r := w.start("Orders")
	r.settle() // with that its start is noted in Bigtable, too
	w.clock.Freeze()
	w.front.Faults.Outage(0)
	// One second of the service's clock holds far more changes than milliseconds: versions run
	// ahead.
	for i := range uint64(3) {
		w.changeItems("Orders", 50+i, 700)
	}
	r.until("all four shards wait for Bigtable", func() bool {
		waiting := map[any]bool{} // on a busy machine the life may end, and each waits again in the next one
		for _, line := range w.logged.FilterMessageSnippet("ran ahead of its reserved versions").All() {
			waiting[line.ContextMap()["shard"]] = true
		}
		return len(waiting) == 4
	})
	if n := r.table("Orders").Changes; n > 4*50 { // of the lead's 50 ms, for each shard
		t.Errorf("%d changes were read although their versions exceed the lead", n)
	}
	w.front.Faults.Recover()
	at := w.clock.Now()
	w.clock.Advance(10 * time.Second)
	r.settledAt(at)
	r.equal()
	if st, err := r.sink.LoadState(t.Context(), "shop", "Orders"); err != nil || st.Lead <= 50*time.Millisecond {
		t.Errorf("lead %v, %v: want it raised", st.Lead, err)
	}
}
