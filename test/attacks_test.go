package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/sandbox/ledger"
)

// heldBytes is a TCP proxy that can stop passing on what its clients have sent, and do so long after they are dead.
type heldBytes struct {
	t    *testing.T
	addr string
	next string

	mu    sync.Mutex
	conns []*heldConn
	tasks sync.WaitGroup
}

type heldConn struct {
	mu   sync.Mutex
	up   net.Conn
	hold bool
	kept bytes.Buffer
}

func newHeldBytes(t *testing.T, next string) *heldBytes {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &heldBytes{t: t, addr: ln.Addr().String(), next: next}
	p.tasks.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			p.tasks.Go(func() { p.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		p.release()
		p.mu.Lock()
		for _, c := range p.conns {
			_ = c.up.Close()
		}
		p.mu.Unlock()
		p.tasks.Wait()
	})
	return p
}

func (p *heldBytes) serve(down net.Conn) {
	defer func() { _ = down.Close() }()
	up, err := net.Dial("tcp", p.next)
	if err != nil {
		return
	}
	c := &heldConn{up: up}
	p.mu.Lock()
	p.conns = append(p.conns, c)
	p.mu.Unlock()
	p.tasks.Go(func() {
		_, _ = io.Copy(down, up) // after the client's death the server's answers go nowhere
		_, _ = io.Copy(io.Discard, up)
	})
	_, _ = io.Copy(c, down)
}

// Write passes on bytes to the server, or keeps them. The connection to the server outlives the client.
func (c *heldConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold {
		return c.kept.Write(b)
	}
	return c.up.Write(b)
}

// hold keeps what the clients of now will send; later clients are served.
func (p *heldBytes) hold() {
	p.each(func(c *heldConn) { c.hold = true })
}

// holds reports whether text is among what is kept.
func (p *heldBytes) holds(text string) (found bool) {
	p.each(func(c *heldConn) { found = found || bytes.Contains(c.kept.Bytes(), []byte(text)) })
	return found
}

// release sends what was kept.
func (p *heldBytes) release() {
	p.each(func(c *heldConn) {
		c.hold = false
		_, _ = c.kept.WriteTo(c.up)
	})
}

func (p *heldBytes) each(f func(*heldConn)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.mu.Lock()
		f(c)
		c.mu.Unlock()
	}
}

// TestWriteOfADeadOwnerArrivesAfterADelete lets a put reach Bigtable that was sent by a daemon long dead, after its
// successor has put, changed and deleted the item; and again after the tombstone's end.
func TestWriteOfADeadOwnerArrivesAfterADelete(t *testing.T) {
	w := newWorld(t, 404)
	proxy := newHeldBytes(t, w.Bigtable.Addr())
	w.bigtable.addr = proxy.addr
	w.prepare("Orders")
	d := w.run()
	w.Put("Orders", "hats", "fedora", `"price":{"N":"1"}`)
	w.Put("Orders", "hats", "bowler", `"price":{"N":"1"}`)
	d.settle("Orders")
	proxy.hold()
	w.Put("Orders", "hats", "fedora", `"price":{"N":"2"}`)
	w.Put("Orders", "hats", "bowler", `"price":{"N":"2"}`)
	d.until("the writes are on their way", func() bool { return proxy.holds("hats#fedora") && proxy.holds("hats#bowler") })
	d.kill()
	d = w.run()
	w.Delete("Orders", "hats", "fedora")
	w.Put("Orders", "hats", "bowler", `"size":{"N":"3"}`)
	d.settle("Orders")
	s := w.sides()
	s.w.Equal("Orders")
	before := w.Bigtable.Writes()
	proxy.release()
	d.until("the dead owner's writes have arrived", func() bool { return w.Bigtable.Writes() >= before+2 })
	s.w.Equal("Orders")
	s.replayed("Orders", w.log("Orders"))
	w.Clock.Advance(9 * 24 * time.Hour)
	if _, err := w.Bigtable.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.w.Equal("Orders")
}

// TestServiceClockIsNotOurs lets the service's clock be off by minutes and by days: versions, tombstones and waiting go
// by the service's, and nothing by ours.
func TestServiceClockIsNotOurs(t *testing.T) {
	for i, off := range []time.Duration{4 * time.Minute, -4 * time.Minute, 8 * 24 * time.Hour, -8 * 24 * time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			w := newWorld(t, 407+uint64(i))
			w.Clock.Advance(off)
			w.Faults.CheckTime(true)
			w.prepare("Orders")
			a := w.writer("Orders", 407+uint64(i))
			a.write(80)
			w.killed(shot{at: afterWrite, n: 10})
			a.write(80)
			d := w.run()
			if s := w.seen("--wait", "applied=now", "--timeout", "60s"); !s.Ready {
				t.Errorf("not ready: %v", s.Reasons)
			}
			d.clean()
			w.Equal("Orders")
			d.stop()
			l := w.log("Orders")
			w.exact("Orders", l)
			now := w.Clock.Now().UnixMilli()
			for _, c := range l.changes {
				if age := time.Duration(change.Version(now)-c.Version) * time.Millisecond; age < -time.Minute || age > 5*time.Minute {
					t.Fatalf("a version is %s from the service's time", age)
				}
			}
		})
	}
}

// TestBurstBeforeANewStreamHidesNothing runs the versions of a shard seconds ahead of the clock, then replaces the
// stream: what comes in the new one must win all the same.
func TestBurstBeforeANewStreamHidesNothing(t *testing.T) {
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
	w.Call("UpdateTable", `{"TableName":"Orders","StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`)
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
	w.ok("gaps", "clear", gap.ID, "--sink", "bigtable", "--yes") // nothing was written in between
	d.until("it is ready", func() bool { s, ok := d.status(); return ok && s.Ready })
	s := w.sides()
	s.w.Equal("Orders")
	d.kill()
	d = w.run()
	d.settle("Orders")
	d.stop()
	l := w.log("Orders")
	w.exact("Orders", l)
	if last := l.changes[len(l.changes)-1]; last.Version-change.Version(last.Created) < 2500 {
		t.Errorf("the last version is %d ms ahead of its change: this was no burst", last.Version-change.Version(last.Created))
	}
	s.w.Equal("Orders")
	s.replayed("Orders", l)
}

// TestFirstStartAtLatestIsDecidedOnce kills a first start after each of its steps while an application writes: from
// the moment at which the start was decided, not a change may be missing, and none may come twice.
func TestFirstStartAtLatestIsDecidedOnce(t *testing.T) {
	for i, step := range firstSteps {
		t.Run(fmt.Sprintf("step %d", i+1), func(t *testing.T) {
			w := newWorld(t, 411+uint64(i))
			w.start = "latest"
			w.prepare("Orders")
			a := w.writer("Orders", 411+uint64(i))
			a.write(60)
			w.Clock.Advance(3 * time.Second) // the application was there before
			w.killed(step)
			decided := w.committed("Orders")
			a.write(60)
			w.Clock.Advance(3 * time.Second)
			a.start()
			w.killed(shot{at: afterWrite, n: 10, hold: true})
			d := w.run()
			d.hits(w.traps.set(afterWrite, 20, false))
			a.stop()
			if step.n < decidedCall { // it was not decided before the second start
				decided = w.committed("Orders")
			}
			w.touch(d, "Orders")
			d.settle("Orders")
			d.clean()
			d.stop()
			w.Equal("Orders")
			w.suffix(w.log("Orders"), decided)
		})
	}
}

// touch writes every item of a table once more, so that all of it is in the stream, however late that was read.
func (w *world) touch(d *daemon, table string) {
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

// suffix checks that the log holds of each shard all changes from some change on, each once and in order; and of all
// shards everything but the first changes of the table.
func (w *world) suffix(l *logged, first uint64) {
	w.t.Helper()
	count, n := map[string]int{}, uint64(0)
	for _, c := range l.changes {
		count[c.Feed.Shard+string(c.SequenceNumber)]++
	}
	begun := map[string]bool{}
	w.Ledger.Changes("Orders", func(c ledger.Change) bool {
		n++
		times := count[c.Shard+c.Seq]
		begun[c.Shard] = begun[c.Shard] || times > 0
		if times > 1 || times == 0 && (begun[c.Shard] || n > first) {
			w.t.Errorf("change %d of %d (start decided after %d) is in the log %d times", n, w.committed("Orders"), first, times)
			return false
		}
		return true
	})
	w.t.Logf("%d changes, start decided after %d of them at the latest, %d in the log", n, first, len(l.changes))
}

// TestTwoInstancesRaceOnAFirstStart stops one of two instances after each step of its first start, lets the other go
// on, and lets the first one find out.
func TestTwoInstancesRaceOnAFirstStart(t *testing.T) {
	for i, step := range firstSteps {
		t.Run(fmt.Sprintf("step %d", i+1), func(t *testing.T) {
			w := newWorld(t, 435+uint64(i))
			w.queue = fmt.Sprintf("{url: %q, replicas: 1}", w.NATS.URL())
			w.prepare("Orders")
			a := w.writer("Orders", 435+uint64(i))
			a.write(60)
			p := w.traps.add(&trap{at: step.at, left: step.n, hold: true, one: true})
			first := w.run()
			first.hits(p)
			second := w.run()
			// Before the claim the second one is faster. From the claim on the first shows that it lives, and its call is given
			// up and made again.
			second.until("one of them reads", func() bool {
				return max(first.table("Orders").Changes, second.table("Orders").Changes) >= w.committed("Orders")
			})
			p.open()
			a.write(60)
			owner := w.seen("--wait", "applied=now", "--timeout", "60s").Tables[0].Owner
			first.until("it is up", func() bool { code, _ := first.get("/startupz"); return code == 200 })
			w.Equal("Orders")
			for _, d := range []*daemon{first, second} { // whoever owns it dies; the other one takes over
				if s := d.table("Orders"); s.Owner == owner && strings.Contains(d.said.String(), owner) {
					d.kill()
				}
			}
			a.write(60)
			s := w.seen("--wait", "applied=now", "--timeout", "60s")
			if s.Tables[0].Owner == owner || !s.Ready {
				t.Errorf("after the owner's death: %+v", s)
			}
			w.Equal("Orders")
			l := w.log("Orders")
			w.exact("Orders", l)
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

// TestEditedMappingIsRefused edits the mapping under a running pipeline: rows of two mappings must not mix.
func TestEditedMappingIsRefused(t *testing.T) {
	w := newWorld(t, 425)
	w.shareRows()
	w.prepare("Orders")
	a := w.writer("Orders", 425)
	a.write(60)
	w.killed(shot{at: afterWrite, n: 5})
	before, err := os.ReadFile(w.dir + "/orders.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w.write("orders.yaml", strings.Replace(string(before), "{s}/{attr}", "{s}.{attr}", 1))
	w.refused(3, "mapping", "run")
	w.write("orders.yaml", string(before))
	d := w.run()
	d.settle("Orders")
	d.clean()
	d.stop()
	w.write("orders.yaml", strings.Replace(string(before), "{s}/{attr}", "{s}.{attr}", 1))
	w.refused(3, "mapping", "run")
	w.write("orders.yaml", string(before))
	w.Equal("Orders")
	w.exact("Orders", w.log("Orders"))
}

// TestIdleTableWritesBeatsOnly lets hours pass over an idle table: listings, marks and snapshots must not feed
// themselves.
func TestIdleTableWritesBeatsOnly(t *testing.T) {
	w := newWorld(t, 437)
	w.testing = "{claim_ttl: 300ms, beat: 20ms, listing: 100ms, describe: 100ms, mark_interval: 20ms, trim: 100ms}"
	w.prepare("Orders")
	w.writer("Orders", 437).write(60)
	d := w.run()
	w.DynamoDB.ExpireNow(w.Clock.Now().Add(time.Minute)) // nothing is left to expire
	d.settle("Orders")
	d.until("its marks are written", func() bool {
		s := w.log("Orders").state
		return s.Marks["bigtable"].Seq >= s.LastFrame
	})
	idle := len(w.log("Orders").kinds)
	for hour := range 6 {
		w.Clock.Advance(time.Hour)
		d.until("it beats", func() bool { return len(w.log("Orders").kinds) > idle+(hour+1)*30 })
	}
	others := map[string]int{}
	l := w.log("Orders")
	for _, k := range l.kinds[idle:] {
		if k != checkpoint.KindBeat {
			others[string(rune(k))]++
		}
	}
	if len(others) > 0 {
		t.Errorf("among %d entries of idle hours are others than beats: %v", len(l.kinds)-idle, others)
	}
	d.settle("Orders")
	d.clean()
	w.Equal("Orders")
}

// TestEmptyPagesAreNotTheEnd has shards answer with nothing before what they hold: as far as empty reads show, all is
// applied, and status must say that it is assumed.
func TestEmptyPagesAreNotTheEnd(t *testing.T) {
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
			t.Fatal("an empty page is called a proof")
		}
		return st.Changes == w.committed("Orders")
	})
	d.settle("Orders")
	d.clean()
	d.stop()
	w.Equal("Orders")
	w.exact("Orders", w.log("Orders"))
}
