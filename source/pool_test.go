package source

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// run drives a pool until stop returns true for an event; pages are released.
func run(t *testing.T, p *Pool, stop func(Event) bool) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	enough := errors.New("enough")
	out := make(chan Event)
	ended := make(chan error)
	go func() { ended <- p.Run(ctx, out) }()
	for {
		select {
		case e := <-out:
			last := stop(e)
			if e.Page != nil {
				e.Page.Release()
			}
			if last {
				cancel(enough)
			}
		case err := <-ended:
			if !errors.Is(err, enough) {
				t.Fatal(err)
			}
			return
		}
	}
}

func TestPoolReadsEveryShardInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		s := open(t, w, func(o *Options) { o.Connections = 3 })
		pool := s.NewPool()
		const shards = 40
		for i := range shards {
			w.shard(shardID(i), "", 2300).closed = true
			pool.Add(s.NewReader(start(shardID(i), change.Position{})))
		}
		read, done := map[string]int{}, 0
		last := map[string]change.Position{}
		run(t, pool, func(e Event) bool {
			if e.Err != nil {
				t.Error(e.Err)
				return true
			}
			id := e.Reader.Feed().Shard
			if e.Page.From != last[id] {
				t.Errorf("shard %s: page from %v after %v", id, e.Page.From, last[id])
			}
			last[id] = e.Page.To
			read[id] += len(e.Page.Records)
			if e.Page.Done {
				done++
			}
			return done == shards
		})
		for id, n := range read {
			if n != 2300 {
				t.Errorf("%d records of %s", n, id)
			}
		}
		if s.budget.InUse() != 0 || pool.Len() != 0 {
			t.Fatalf("%d bytes in use, %d readers left", s.budget.InUse(), pool.Len())
		}
	})
}

// TestReadAllReadsIdleShardsAtOnce: they are not due for up to an idle poll. A shard that is being
// read is read again, one that cannot be read waits for its retry.
func TestReadAllReadsIdleShardsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		var pool *Pool
		var again atomic.Bool
		s := open(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if again.CompareAndSwap(true, false) {
				time.Sleep(time.Millisecond)
				pool.ReadAll() // in the middle of this read, and behind the others
			}
			w.ServeHTTP(rw, r)
		}), func(o *Options) { o.IdlePoll = time.Hour })
		pool = s.NewPool()
		const shards, refused = 20, 3
		for i := range shards {
			w.shard(shardID(i), "", 0)
			pool.Add(s.NewReader(start(shardID(i), change.Position{})))
		}
		refuses, reads := false, map[string]int{}
		w.script = func(c wireCall) *wireReply {
			if c.op != "GetRecords" {
				return nil
			}
			if reads[c.shard]++; refuses && c.shard == shardID(refused) {
				return refuse("InternalServerError", "no")
			}
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		out, ended := make(chan Event), make(chan error)
		go func() { ended <- pool.Run(ctx, out) }()
		go func() {
			for e := range out {
				e.Page.Release()
			}
		}()
		expect := func(after time.Duration, want func(i int) int) {
			t.Helper()
			w.mu.Lock()
			clear(reads)
			w.mu.Unlock()
			pool.ReadAll()
			time.Sleep(after)
			synctest.Wait()
			w.mu.Lock()
			defer w.mu.Unlock()
			for i := range shards {
				if n := reads[shardID(i)]; n != want(i) {
					t.Errorf("shard %d was read %d times", i, n)
				}
			}
		}
		time.Sleep(3*time.Hour + 17*time.Second) // all are idle, and none is due in the next minutes
		expect(0, func(int) int { return 1 })
		again.Store(true)
		time.Sleep(time.Minute)
		expect(time.Second, func(int) int { return 2 })
		time.Sleep(time.Minute)
		w.mu.Lock()
		refuses = true
		w.mu.Unlock()
		expect(0, func(int) int { return 1 })
		expect(0, func(int) int { return 0 }) // not sooner than their rate allows
		time.Sleep(time.Minute)
		expect(0, func(i int) int {
			if i == refused {
				return 0
			}
			return 1
		})
		cancel()
		<-ended
		close(out)
	})
}

// One shard is throttled without end; the others keep their five reads a second.
func TestThrottleStormOnOneShardLeavesOthersAtFullRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		s := open(t, w, func(o *Options) { o.Connections = 2 })
		pool := s.NewPool()
		for i := range 6 {
			w.shard(shardID(i), "", 60_000)
			pool.Add(s.NewReader(start(shardID(i), change.Position{})))
		}
		w.script = func(c wireCall) *wireReply {
			if c.op == "GetRecords" && c.shard == shardID(0) {
				return refuse("ProvisionedThroughputExceededException", "slow down")
			}
			return nil
		}
		begin := time.Now()
		run(t, pool, func(e Event) bool { return time.Since(begin) >= 10*time.Second })
		reads := map[string]int{}
		for _, c := range w.calls {
			if c.op == "GetRecords" {
				reads[c.shard]++
			}
		}
		for i := 1; i < 6; i++ {
			if n := reads[shardID(i)]; n < 49 || n > 52 {
				t.Errorf("%d reads of shard %d in 10 s", n, i)
			}
		}
		if n := reads[shardID(0)]; n > 10 {
			t.Errorf("%d reads of the throttled shard in 10 s", n)
		}
	})
}

// A consumer that keeps one feed's pages stops that feed, and no other.
func TestBackPressureOfOneFeedIsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		s := open(t, w, func(o *Options) { o.MemoryPerFeed, o.MemoryTotal = 4<<20, 64<<20 })
		pool := s.NewPool()
		for i := range 3 {
			w.shard(shardID(i), "", 20_000)
			pool.Add(s.NewReader(start(shardID(i), change.Position{})))
		}
		ctx, cancel := context.WithCancel(t.Context())
		out, ended := make(chan Event), make(chan error)
		go func() { ended <- pool.Run(ctx, out) }()
		var kept []*Page
		n, most := map[string]int{}, int64(0)
		for n[shardID(1)] < 20_000 || n[shardID(2)] < 20_000 {
			e := <-out
			id := e.Reader.Feed().Shard
			n[id] += len(e.Page.Records)
			most = max(most, s.budget.InUse())
			if id == shardID(0) {
				kept = append(kept, e.Page)
			} else {
				e.Page.Release()
			}
		}
		if n[shardID(0)] >= 20_000 {
			t.Fatal("the feed was not stopped")
		}
		time.Sleep(2 * longPark)
		if s.logs.FilterMessage("shards wait for memory").Len() == 0 {
			t.Error("the park is silent")
		}
		for _, p := range kept {
			p.Release()
		}
		for n[shardID(0)] < 20_000 {
			e := <-out
			n[e.Reader.Feed().Shard] += len(e.Page.Records)
			e.Page.Release()
		}
		cancel()
		<-ended
		if s.budget.InUse() != 0 {
			t.Fatalf("%d bytes in use", s.budget.InUse())
		}
		if most > 64<<20 {
			t.Fatalf("%d bytes in use at most", most)
		}
	})
}

// A table whose consumer keeps its pages, as one with a full log does, stops its own feeds only.
func TestTableThatKeepsItsPagesStopsNoOtherTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		const total = 8 * reservation
		s := open(t, w, func(o *Options) { o.MemoryTotal, o.Tables = total, 2 })
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, errors.New("a table waits for another one"))
		defer cancel()
		ended := make(chan error, 2)
		pool := func(table string, shards ...int) <-chan Event {
			p, out := s.NewPool(), make(chan Event)
			for _, i := range shards {
				w.shard(shardID(i), "", 20_000)
				st := start(shardID(i), change.Position{})
				st.Table = table
				p.Add(s.NewReader(st))
			}
			go func() { ended <- p.Run(ctx, out) }()
			return out
		}
		most := int64(0)
		take := func(out <-chan Event) *Page {
			select {
			case e := <-out:
				most = max(most, s.budget.InUse())
				return e.Page
			case err := <-ended:
				t.Fatal(err)
				return nil
			}
		}
		full := pool("Full", 0, 1, 2, 3)
		var kept []*Page
		records := 0
		for n := 0; n < 4; n, _ = s.budget.Parked() {
			kept = append(kept, take(full))
			records += len(kept[len(kept)-1].Records)
			time.Sleep(time.Second) // until whoever can be read was read
		}
		if most < total*5/8 {
			t.Fatalf("all feeds wait at %d bytes of %d: the common half is not used", most, total)
		}
		fine := pool("Fine", 4, 5, 6)
		for n := 0; n < 60_000; {
			p := take(fine)
			n += len(p.Records)
			p.Release()
		}
		for _, p := range kept {
			p.Release()
		}
		for records < 80_000 {
			p := take(full)
			records += len(p.Records)
			p.Release()
		}
		cancel()
		<-ended
		<-ended
		if most > total || s.budget.InUse() != 0 {
			t.Fatalf("%d bytes in use at most, %d at the end", most, s.budget.InUse())
		}
	})
}

// Idle shards are read without memory of the budget, so they never wait for it, however small it
// is.
func TestIdleShardsNeedNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		s := open(t, w, func(o *Options) { o.MemoryTotal, o.MemoryPerFeed = reservation, reservation })
		pool := s.NewPool()
		const shards = 50
		for i := range shards {
			w.shard(shardID(i), "", 0)
			pool.Add(s.NewReader(start(shardID(i), change.Position{})))
		}
		pages := 0
		run(t, pool, func(Event) bool { pages++; return pages == 2*shards })
		w.shard("held", "", 1)
		held := next(t, s.NewReader(start("held", change.Position{})))
		if s.budget.Feed("T").Lease().TryReserve() {
			t.Fatal("there is memory left")
		}
		pool, pages = s.NewPool(), 0
		for i := range shards {
			r := s.NewReader(start(shardID(i), change.Position{}))
			r.reserveLate = true // it has seen an empty page
			pool.Add(r)
		}
		run(t, pool, func(Event) bool { pages++; return pages == 5*shards })
		held.Release()
	})
}

// Records that come to a shard which was idle are kept only within the memory, and lost in no case.
func TestRecordsOfAnIdleShardWaitForMemory(t *testing.T) {
	for _, records := range []int{1, 900} { // in a small buffer and in a large one
		synctest.Test(t, func(t *testing.T) {
			w := newWire()
			w.shard("busy", "", 1)
			idle := w.shard("idle", "", 0)
			s := open(t, w, func(o *Options) { o.MemoryTotal, o.MemoryPerFeed = reservation, reservation })
			pool, out, ended := s.NewPool(), make(chan Event), make(chan error)
			pool.Add(s.NewReader(start("idle", change.Position{})))
			ctx, cancel := context.WithCancel(t.Context())
			go func() { ended <- pool.Run(ctx, out) }()
			(<-out).Page.Release()
			held := next(t, s.NewReader(start("busy", change.Position{})))
			w.mu.Lock()
			for i := range records {
				idle.add(seq(5000 + i))
			}
			w.mu.Unlock()
			for deadline := time.After(time.Minute); ; {
				select {
				case e := <-out: // an empty page that was read before
					if len(e.Page.Records) > 0 {
						t.Fatalf("%d records beyond the memory", len(e.Page.Records))
					}
					continue
				case <-deadline:
				}
				break
			}
			if n, most := s.budget.InUse(), int64(held.Bytes); n != most {
				t.Errorf("%d bytes in use, not the %d that are held", n, most)
			}
			n := w.count("GetRecords", "")
			if n > 20 {
				t.Errorf("%d reads: it does not wait", n)
			}
			if got := s.Reads("T"); got.Charged != uint64(n) || got.All >= got.Charged { // the dropped reply is charged
				t.Errorf("%d calls were answered: %+v", n, got)
			}
			held.Release()
			var got []string
			for len(got) < records {
				e := <-out
				got = append(got, sequences(e.Page)...)
				e.Page.Release()
			}
			if len(got) != records || got[0] != seq(5000) || got[records-1] != seq(5000+records-1) {
				t.Errorf("%d records, from %s on", len(got), got[0])
			}
			cancel()
			<-ended
			if n := s.budget.InUse(); n != 0 {
				t.Errorf("%d bytes in use at the end", n)
			}
		})
	}
}

// A page that is not received stops its shard: no later page of the shard may overtake it.
func TestPageThatIsNotReceivedStopsItsShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		s := open(t, w)
		pool := s.NewPool()
		for i := range 4 {
			w.shard(shardID(i), "", 5000)
			pool.Add(s.NewReader(start(shardID(i), change.Position{})))
		}
		ctx, cancel := context.WithCancel(t.Context())
		out, ended := make(chan Event), make(chan error)
		go func() { ended <- pool.Run(ctx, out) }()
		time.Sleep(time.Minute)
		if n := w.count("GetRecords", ""); n != 4 {
			t.Errorf("%d pages of 4 shards were read though none was taken", n)
		}
		cancel()
		<-ended
		pool.Add(s.NewReader(start(shardID(0), change.Position{}))) // too late
		if n := s.budget.InUse(); n != 0 || pool.Len() != 0 || len(s.fuse.readers["T"]) != 0 {
			t.Errorf("%d bytes in use, %d readers, %d watched", n, pool.Len(), len(s.fuse.readers["T"]))
		}
	})
}

func TestGapEndsOneReaderOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		s := open(t, w)
		pool := s.NewPool()
		w.shard(shardID(0), "", 10)
		pool.Add(s.NewReader(start(shardID(0), change.Position{})))
		pool.Add(s.NewReader(start(shardID(1), after(1)))) // unknown to the server
		pages, gaps := 0, 0
		run(t, pool, func(e Event) bool {
			if errors.Is(e.Err, ErrShardGone) {
				gaps++
			} else {
				pages++
			}
			return gaps == 1 && pages == 5
		})
		if gaps != 1 {
			t.Fatalf("%d gaps", gaps)
		}
	})
}

// When a pool ends while readers wait for memory, closing one reader grants its memory to the next:
// no reader may be left waiting.
func TestPoolEndsWhileReadersWaitForMemory(t *testing.T) {
	w := newWire()
	s := open(t, w, func(o *Options) { o.MemoryPerFeed, o.MemoryTotal = reservation, reservation })
	pool := s.NewPool()
	granted := 0
	for i := range 20 {
		w.shard(shardID(i), "", 1)
		r := s.NewReader(start(shardID(i), change.Position{}))
		pool.Add(r)
		if pool.reserve(r) {
			granted++
		}
	}
	if granted != 1 {
		t.Fatalf("%d readers have memory, want 1 that has and others that wait", granted)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ended := make(chan error, 1)
	go func() { ended <- pool.Run(ctx, make(chan Event)) }()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the pool waits for itself")
	}
	if s.budget.InUse() != 0 {
		t.Fatalf("%d bytes in use", s.budget.InUse())
	}
}
