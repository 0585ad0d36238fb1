package pipeline_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/source"
)

func TestSplitWhileLagging(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	w.changeItems("Orders", 1, 300)
	for range 3 { // three generations are behind before the first read
		for _, shard := range w.streams.OpenShards("Orders") {
			if _, err := w.streams.Split(shard, 2); err != nil {
				t.Fatal(err)
			}
		}
		w.changeItems("Orders", 2, 200)
	}
	r := w.start("Orders")
	w.changeItems("Orders", 3, 200)
	w.streams.Rotate("Orders")
	w.changeItems("Orders", 4, 200)
	r.settle()
	r.equal()
	if s := r.table("Orders").Shards; s.Done != 4+8+16+32 || s.Open != 32 {
		t.Errorf("shards %+v, want 60 done and 32 open", s)
	}
}

func TestChildrenHiddenAfterTheEndOfTheirParent(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	w.streams.Faults().HideChildren(10 * time.Minute)
	w.streams.Faults().OpenParents(10 * time.Minute)
	r := w.start("Orders")
	w.changeItems("Orders", 5, 100)
	w.streams.Rotate("Orders")
	w.changeItems("Orders", 6, 100)
	// Rule 13: while a listing shows neither an end nor a child, a page without an iterator ends
	// nothing.
	r.until("the parents are asked again and again", func() bool {
		return r.metricWith("tailrace_source_iterators_total", "reason", "denied") >= 12
	})
	if done := r.table("Orders").Shards.Done; done != 0 {
		t.Errorf("%d parents are finished before a listing shows that they have ended", done)
	}
	w.clock.Advance(11 * time.Minute) // now they show up
	r.settle()
	r.equal()
	if done := r.table("Orders").Shards.Done; done != 4 {
		t.Errorf("%d parents are finished, want 4", done)
	}
}

func TestParentTrimmedBeforeItsChildIsSeen(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	w.changeItems("Orders", 7, 100)
	w.streams.Rotate("Orders")
	w.changeItems("Orders", 8, 100)
	r := w.start("Orders")
	r.settle()
	// While no process reads, a whole generation comes and goes; its children have parents that no
	// listing shows.
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	w.streams.Rotate("Orders")
	w.streams.Rotate("Orders")
	w.clock.Advance(49 * time.Hour)
	w.streams.Sweep()
	w.changeItems("Orders", 9, 100)
	r = w.start("Orders")
	r.until("the lost generation is a gap", func() bool { return r.table("Orders").Gaps > 0 })
	if st := r.table("Orders"); st.State != "gap" {
		t.Errorf("state %q, want gap", st.State)
	}
	if ready, _ := r.p.Ready(); ready {
		t.Error("ready with a gap")
	}
	r.until("the new shards are read", func() bool { return r.table("Orders").Shards.Open == 4 })
}

func TestTrimmedMarkIsAGap(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	w.changeItems("Orders", 10, 100)
	r := w.start("Orders")
	r.settle()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	w.changeItems("Orders", 11, 200)
	w.clock.Advance(25 * time.Hour)
	w.streams.Sweep()
	for i := range 40 {
		w.put("Orders", fmt.Sprintf("p#%d", i%7), fmt.Sprintf("s%d", i), `"fresh":{"BOOL":true}`)
	}
	r = w.start("Orders")
	r.until("the gaps of all shards are found", func() bool { return r.table("Orders").Gaps == 4 })
	st := r.table("Orders")
	if st.State != "gap" || len(st.Reasons) == 0 || !strings.Contains(strings.Join(st.Reasons, " "), "gap") {
		t.Errorf("status %+v, want a loud gap", st)
	}
	r.resume("Orders")
	r.until("the gap is accepted and reading goes on", func() bool { return r.table("Orders").Gaps == 0 })
	r.settle()
	// Every item that exists was written after the gap, so they are equal; what the gap swallowed
	// were deletes.
	for key, cells := range r.projected("Orders") {
		if got := r.stored("Orders")[key]; strings.Join(got, ",") != strings.Join(cells, ",") {
			t.Errorf("row %q: %v, want %v", key, got, cells)
		}
	}
	// Rule 8: reading on behind the gaps brought nothing of that back.
	st = r.table("Orders")
	if st.Accepted != 4 || st.Differing != 4 || st.State != "gap" || st.DiffersSince == nil {
		t.Errorf("the accepted gaps are forgotten: %+v", st)
	}
	if ready, _ := r.p.Ready(); ready {
		t.Error("ready while rows differ")
	}
	r.waiveGaps("Orders")
	r.ready()
	if st := r.table("Orders"); st.Accepted != 4 || st.Differing != 0 || st.State != "running" || st.DiffersSince != nil {
		t.Errorf("the waived gaps are still counted: %+v", st)
	}
}

func TestDisableAndEnableIsAGapAndThenAStart(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 12, 100)
	r.settle()
	w.post("UpdateTable", `{"TableName":"Orders","StreamSpecification":{"StreamEnabled":false}}`)
	w.post("UpdateTable",
		`{"TableName":"Orders","StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`)
	w.changeItems("Orders", 13, 200)
	r.until("the new stream is read", func() bool {
		st := r.table("Orders")
		return st.Gaps == 1 && st.Shards.Done == 4 && st.Shards.Open == 4
	})
	r.resume("Orders")
	r.until("the gap is accepted", func() bool { return r.table("Orders").Gaps == 0 })
	r.settle()
	r.equal()
}

func TestRotationWhileBackPressureOutlivesTheIterators(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t)
	w.createTable("Orders")
	w.opts = func(o *pipeline.Options) { o.Memory = 64 << 10 }
	w.sopts = func(o *source.Options) { o.MemoryTotal, o.MemoryPerFeed = 2<<20, 1<<20 }
	r := w.start("Orders")
	r.settle()
	w.front.Faults.Outage(0)
	for i := range 300 {
		w.put("Orders", fmt.Sprint(i%5), fmt.Sprint(i), fmt.Sprintf(`"big":{"S":%q}`, strings.Repeat("x", 20<<10)))
		if i%100 == 50 {
			w.streams.Rotate("Orders")
		}
	}
	w.clock.Advance(20 * time.Minute) // every iterator in hand is dead now
	w.front.Faults.Recover()
	r.settle()
	r.equal()
}

func TestRecordsOnTheLastPageOfAShard(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("late end %v", late), func(t *testing.T) {
			w := newWorld(t)
			w.createTable("Orders")
			w.streams.Faults().LateEnd(late)
			w.changeItems("Orders", 14, 100)
			w.streams.Rotate("Orders")
			r := w.start("Orders")
			r.settle()
			r.equal()
		})
	}
}

// A first listing that is larger than one entry may be: it starts all the same, with every shard.
func TestFirstListingInParts(t *testing.T) {
	long(t, "3 s")
	w := newWorld(t)
	w.createTable("Orders")
	shards := len(w.streams.OpenShards("Orders"))
	for shards*80 < checkpoint.ListingPartBytes {
		shards += w.streams.Rotate("Orders")
	}
	r := w.start("Orders")
	var l *queue.Log
	var s *checkpoint.State
	r.until("the table is started", func() (live bool) {
		var err error
		if l, err = r.queue.Log(t.Context(), "Orders"); err == nil {
			s, err = l.Fold(t.Context())
		}
		return err == nil && s.LiveStream() != nil
	})
	if len(s.Shards) != shards || s.Starting != nil {
		t.Errorf("started with %d of %d shards", len(s.Shards), shards)
	}
	reader, err := l.Read(t.Context(), 0, checkpoint.Hash{})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close(context.Background())
	parts := 0
	for seq := uint64(0); seq < s.LiveStream().Seq; {
		var e *checkpoint.Entry
		if seq, e, err = reader.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		if e.Kind == checkpoint.KindStart {
			parts++
		}
	}
	if parts < 2 {
		t.Errorf("%d entries hold the first listing", parts)
	}
}

func TestEmptyPagesBeforeARecordAreNotIdleness(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t)
	w.createTable("Orders")
	for _, shard := range w.streams.OpenShards("Orders") {
		w.streams.Faults().EmptyPages(shard, 50)
	}
	w.changeItems("Orders", 15, 100)
	r := w.start("Orders")
	r.until("everything is applied in spite of empty pages", func() bool {
		return len(r.stored("Orders")) == len(r.projected("Orders"))
	})
	r.settle()
	r.equal()
}

// resume does what the command does.
func (r *run) resume(table string) {
	r.t.Helper()
	r.control(table, resume())
}

// waiveGaps does what `gaps clear` does, for all gaps of a table and the sink bigtable.
func (r *run) waiveGaps(table string) {
	r.t.Helper()
	s, err := r.log(table).Fold(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range s.Gaps {
		r.control(table, &checkpoint.Control{Waive: &checkpoint.Waive{Gap: s.Gaps[i].ID(), Sink: "bigtable"}, By: "test"})
	}
}

func (r *run) control(table string, c *checkpoint.Control) {
	r.t.Helper()
	l := r.log(table)
	if _, err := l.AppendControl(r.t.Context(), c); err != nil {
		r.t.Fatal(err)
	}
	if err := l.RequestBeat(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *run) log(table string) *queue.Log {
	r.t.Helper()
	l, err := r.queue.Log(r.t.Context(), table)
	if err != nil {
		r.t.Fatal(err)
	}
	return l
}
