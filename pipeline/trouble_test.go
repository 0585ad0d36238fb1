package pipeline_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
	"github.com/tailrace-cdc/replicator/source"
)

func TestGapFoundWhilePagesWaitForAFullLog(t *testing.T) {
	long(t, "8 s")
	w := newWorld(t)
	w.createTable("Orders")
	w.qopts = func(o *queue.Options) { o.MaxBytes, o.ReplayWindow = 2<<20, -1 }
	w.sopts = func(o *source.Options) { o.IdlePoll = 3 * time.Second }
	var calls sync.RWMutex // held by each call
	w.tables.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
			calls.RLock()
			defer calls.RUnlock()
			next.ServeHTTP(rw, req)
		})
	})
	r := w.start("Orders")
	r.settle()
	w.front.Faults.Outage(0)
	noise := newNoise(70)
	written := 0
	fill := func(n int) {
		for range n {
			w.put("Orders", noise.word(8), "x", `"big":{"S":"`+noise.word(8<<10)+`"}`)
			written++
		}
	}
	for r.table("Orders").Queue.Bytes <= 16<<20/10 { // above 80 % reading pauses
		fill(20)
		r.until("they are in the log, or it is full", func() bool {
			return int(r.table("Orders").Changes) >= written || r.table("Orders").Queue.Bytes > 16<<20/10
		})
	}
	fill(40)
	r.until("they are read, and wait", func() bool {
		return r.metric("tailrace_source_records_total") >= float64(written)
	})
	read := written
	calls.Lock() // a read that is under way would read what comes now
	err := w.faults.Inject(fault.Rule{Effect: fault.Error, Operation: "GetRecords", Code: "InternalServerError"})
	calls.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	fill(40) // these are never read
	w.clock.Advance(25 * time.Hour)
	w.streams.Sweep()
	w.faults.Calm()
	r.until("the readers know that they are late", func() bool {
		return w.logged.FilterMessage("the service denies a shard: looking for confirmation").Len() > 0
	})
	w.front.Faults.Recover()
	r.until("the gaps are found", func() bool { return r.table("Orders").Gaps == 4 })
	if n := int(r.table("Orders").Changes); n != read {
		t.Errorf("%d changes are in the log, want all %d that were read before the gaps", n, read)
	}
	r.resume("Orders")
	r.until("reading goes on", func() bool { return r.table("Orders").Gaps == 0 })
	fill(20)
	r.settle()
	if n := int(r.table("Orders").Changes); n != read+20 {
		t.Errorf("%d changes are in the log, want %d", n, read+20)
	}
}

func TestNewStreamStartsAlthoughTheSinkWasLate(t *testing.T) {
	long(t, "3 s")
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	r.settle()
	w.front.Faults.Outage(0)
	w.changeItems("Orders", 71, 100)
	w.post("UpdateTable", `{"TableName":"Orders","StreamSpecification":{"StreamEnabled":false}}`)
	w.post("UpdateTable",
		`{"TableName":"Orders","StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`)
	r.until("the old stream is read to its end", func() bool {
		st := r.table("Orders")
		return st.Shards.Done == 4 && st.Shards.Open == 0
	})
	// Rules 3 and 5: what the old stream held must be applied before the new one is read.
	calls := func() float64 { return r.metric("tailrace_source_call_seconds") }
	began := calls()
	r.until("the lister has looked for a new stream again and again", func() bool {
		return calls() > began+10 || r.table("Orders").Shards.Open > 0
	})
	if st := r.table("Orders"); st.Shards.Open != 0 || st.Gaps != 0 {
		t.Errorf("%+v, %d gaps: the new stream was started before the sink had passed the old one", st.Shards, st.Gaps)
	}
	w.front.Faults.Recover()
	r.until("the new stream is read", func() bool { return r.table("Orders").Shards.Open == 4 })
	if n := r.table("Orders").Gaps; n != 1 {
		t.Errorf("%d gaps, want one for the time between the streams", n)
	}
}

func TestStalledTableLeavesMemoryToTheOthers(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t)
	w.createTable("Orders")
	w.createTable("Users")
	w.opts = func(o *pipeline.Options) { o.Memory = 256 << 10 }
	r := w.start("Orders", "Users")
	r.settle()
	w.front.Faults.RefuseRow([]byte("stuck"), codes.Unavailable, -1)
	noise := newNoise(72)
	for i := range 100 {
		w.put("Orders", "stuck", fmt.Sprint(i), `"big":{"S":"`+noise.word(8<<10)+`"}`)
	}
	r.until("they are in the log", func() bool { return r.table("Orders").Changes == 100 })
	for i := range 40 {
		w.put("Users", fmt.Sprint(i), "x", `"big":{"S":"`+noise.word(8<<10)+`"}`)
	}
	r.until("the other table is applied", func() bool { return len(r.stored("Users")) == len(r.projected("Users")) })
	r.equal("Users")
	w.front.Faults.Calm()
	r.settle()
	r.equal()
}

func TestBurstThatWaitsForBigtableHoldsNoOtherShard(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	// Versions count as ahead for as long as the reply took, too: on a busy machine by more than a
	// short lead.
	w.opts = func(o *pipeline.Options) { o.Periods.Lead = 3 * time.Second }
	r := w.start("Orders")
	r.settle() // with that its start is noted in Bigtable, too
	w.clock.Freeze()
	w.front.Faults.Outage(0)
	for i := range 5000 { // a second of them is behind the clock again when they are read
		w.put("Orders", "hot", "x", fmt.Sprintf(`"v":{"N":"%d"}`, i))
	}
	w.clock.Advance(time.Second)
	r.until("a shard waits for Bigtable", func() bool {
		return w.logged.FilterMessageSnippet("ran ahead of its reserved versions").Len() > 0
	})
	before := r.table("Orders").Changes
	for i := range 40 {
		w.put("Orders", fmt.Sprint("cold", i), "x", `"v":{"N":"1"}`)
	}
	w.clock.Advance(time.Second)
	r.until("other shards are read", func() bool { return r.table("Orders").Changes >= before+10 })
	w.front.Faults.Recover()
	at := w.clock.Now()
	w.clock.Advance(10 * time.Second)
	r.settledAt(at)
	r.equal()
}

func TestDoubtDoesNotWaitForTheLogToBeClaimed(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t)
	w.createTable("Orders")
	url := externalNATS(t)
	w.qopts = func(o *queue.Options) { o.Dir, o.URL = "", url }
	w.opts = func(o *pipeline.Options) { o.Periods.ClaimTTL = time.Hour }
	r := w.start("Orders")
	r.settle()
	l, err := r.queue.Log(t.Context(), "Orders")
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(3) { // another process's entry comes first: the outcome is unknown
		w.changeItems("Orders", 74+seed, 50)
		if _, err := l.AppendControl(t.Context(), &checkpoint.Control{Clear: true, By: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	r.settle()
	r.equal()
	if n := w.logged.FilterMessage("log claimed").Len(); n != 1 {
		t.Errorf("the log was claimed %d times", n)
	}
}

func TestChildrenOfTheShardThatWasReadLastBeforeACrash(t *testing.T) {
	long(t, "3 s")
	w := newWorld(t)
	w.createTable("Orders")
	w.opts = func(o *pipeline.Options) { o.Periods.Listing = time.Hour }
	w.streams.Faults().HideChildren(time.Hour)
	r := w.start("Orders")
	w.changeItems("Orders", 77, 50)
	r.settle()
	w.streams.Rotate("Orders")
	r.until("the parents are read to their end", func() bool { return r.table("Orders").Shards.Done == 4 })
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(2 * time.Hour)
	w.changeItems("Orders", 78, 50)
	r = w.start("Orders")
	r.settle()
	r.equal()
}

func TestParentThatListingsForgetIsReadBeforeItsChild(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	parents := w.streams.OpenShards("Orders")
	w.changeItems("Orders", 83, 100)
	w.streams.Rotate("Orders")
	w.changeItems("Orders", 84, 100)
	for _, shard := range parents {
		w.streams.Faults().DropShard(shard, true)
	}
	r := w.start("Orders")
	listings := func() float64 { return r.metric("tailrace_source_call_seconds") }
	began := 0.0
	r.until("the children wait", func() bool { began = listings(); return r.table("Orders").Shards.Waiting == 4 })
	r.until("the service was asked again and again", func() bool { return listings() > began+25 })
	if st := r.table("Orders"); st.Shards.Waiting != 4 || st.Changes != 0 {
		t.Errorf("%+v, %d changes: children were read although their parents can be", st.Shards, st.Changes)
	}
	for _, shard := range parents {
		w.streams.Faults().DropShard(shard, false)
	}
	r.settle()
	r.equal()
}

func TestRefusedSourceIsWrittenIntoTheLog(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 79, 50)
	r.settle()
	l, err := r.queue.Log(t.Context(), "Orders")
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := w.faults.Inject(fault.Rule{Effect: fault.Error, Operation: "GetRecords",
			Code: "AccessDeniedException"}); err != nil {
			t.Fatal(err)
		}
		r.until("the log says why the table is halted", func() bool {
			s, err := l.Fold(t.Context())
			return err == nil && s.AllHalts()["pipeline"] != nil && s.AllHalts()["pipeline"].Code == "source_denied"
		})
		w.faults.Calm()
		r.until("it goes on by itself", func() bool { return r.table("Orders").State == "running" })
	}
	w.changeItems("Orders", 80, 50)
	r.settle()
	r.equal()
}

func TestLongDrainShowsThatTheOwnerLives(t *testing.T) {
	long(t, "6 s")
	w := newWorld(t)
	w.createTable("Orders")
	url := externalNATS(t)
	w.qopts = func(o *queue.Options) { o.Dir, o.URL = "", url }
	w.opts = func(o *pipeline.Options) {
		o.Periods.ClaimTTL, o.Periods.Shutdown = 5*time.Second, 10*time.Second // it drains for 4/5 of this
	}
	first := w.start("Orders")
	first.settle()
	second := w.start("Orders")
	second.until("the second is up", func() bool { return second.p.Started() == nil })
	w.front.Faults.Outage(0)
	w.changeItems("Orders", 81, 100)
	first.until("it is in the log", func() bool { return first.table("Orders").Changes >= 90 })
	if err := first.stop(); err != nil { // in vain: Bigtable is away
		t.Fatal(err)
	}
	// An owner that has lost its log cannot release it. On a busy machine one may also end without
	// the release.
	claimed, released := w.logged.FilterMessage("log claimed").Len(), w.logged.FilterMessage("released the log").Len()
	if claimed > 1 && released == 0 {
		t.Error("the log was taken from an owner that was draining")
	}
	w.front.Faults.Recover()
	second.settle()
	second.equal()
}

func TestRowThatIsNeverTakenIsParkedBeforeRecordsAreLost(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t)
	w.createTable("Orders")
	w.opts = func(o *pipeline.Options) { o.Periods.Park = time.Second }
	w.qopts = func(o *queue.Options) { o.MaxBytes, o.ReplayWindow = 2<<20, -1 }
	r := w.start("Orders")
	r.settle()
	w.front.Faults.RefuseRow([]byte("stuck"), codes.Unavailable, -1)
	w.put("Orders", "stuck", "1", `"v":{"N":"1"}`)
	r.until("it is read", func() bool { return r.table("Orders").Changes == 1 })
	noise := newNoise(82)
	for range 300 {
		w.put("Orders", noise.word(8), "x", `"big":{"S":"`+noise.word(8<<10)+`"}`)
	}
	r.until("the log is full", func() bool { return used(r) > 0.8 })
	w.clock.Advance(17 * time.Hour)
	r.until("the clock has moved", func() bool { return r.table("Orders").SourceLag > 16*3600 })
	if n := r.table("Orders").DeadLetters; n != 0 {
		t.Fatalf("%d dead letters while there is time left", n)
	}
	w.clock.Advance(2 * time.Hour)
	r.until("the change is parked", func() bool { return r.table("Orders").DeadLetters == 1 })
	r.settle()
	want, got := r.projected("Orders"), r.stored("Orders")
	if len(want) != len(got)+1 || len(got["stuck#1"]) != 0 {
		t.Errorf("%d rows of %d, %q among them: want all but that one", len(got), len(want), got["stuck#1"])
	}
}
