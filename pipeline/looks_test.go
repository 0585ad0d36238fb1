package pipeline_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/limit"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sandbox/bigtable"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
	"github.com/tailrace-cdc/replicator/source"
)

// TestStatusNamesWhatLimits: each cause is made, and its word appears; without the cause nothing
// limits. The table beside it keeps up and says so, unless the cause is the log's.
func TestStatusNamesWhatLimits(t *testing.T) {
	long(t, "20 s")
	const hundreds = 500 * time.Millisecond
	for _, c := range []struct {
		name  string
		want  limit.By
		set   func(w *world)
		begin func(t *testing.T, r *run)
		end   func(r *run)
	}{
		{
			name: "slow Bigtable", want: limit.Latency,
			begin: func(_ *testing.T, r *run) {
				r.front.Faults.Latency(2*time.Second, 0)
				r.write(400)
			},
			end: func(r *run) { r.front.Faults.Latency(0, 0) },
		},
		{
			name: "changes of one item", want: limit.Latency,
			set: func(w *world) { w.mapping = history },
			begin: func(_ *testing.T, r *run) {
				r.front.Faults.Latency(hundreds, 0)
				for i := range 20 {
					r.put("Orders", "one", "1", fmt.Sprintf(`"v":{"N":"%d"}`, i))
				}
			},
			end: func(r *run) { r.front.Faults.Latency(0, 0) },
		},
		{
			name: "refusing Bigtable", want: limit.Refusals,
			begin: func(_ *testing.T, r *run) {
				r.front.Faults.Code(codes.ResourceExhausted)
				r.front.Faults.Random(bigtable.Odds{Refuse: 0.95})
				r.write(400)
			},
			end: func(r *run) { r.front.Faults.Calm() },
		},
		{
			name: "Bigtable away, little to write", want: limit.Refusals,
			begin: func(_ *testing.T, r *run) {
				r.front.Faults.Outage(0)
				r.write(3)
			},
			end: func(r *run) { r.front.Faults.Recover() },
		},
		{
			name: "few calls fit into memory", want: limit.Memory,
			set: func(w *world) { w.opts = func(o *pipeline.Options) { o.Lanes, o.Calls = 512, 16 } },
			begin: func(_ *testing.T, r *run) {
				r.front.Faults.Latency(hundreds, 0)
				r.write(400)
			},
			end: func(r *run) { r.front.Faults.Latency(0, 0) },
		},
		{
			name: "few changes fit into memory", want: limit.Memory,
			set: func(w *world) { w.opts = func(o *pipeline.Options) { o.Lanes, o.Memory = 512, 1 } },
			begin: func(_ *testing.T, r *run) {
				r.front.Faults.Latency(hundreds, 0)
				r.writeLarge(40)
			},
			end: func(r *run) { r.front.Faults.Latency(0, 0) },
		},
		{
			name: "CPU", want: limit.CPU,
			begin: func(_ *testing.T, r *run) {
				r.front.Faults.Latency(2*time.Second, 0)
				r.write(400)
			},
			end: func(r *run) { r.front.Faults.Latency(0, 0) },
		},
		{
			name: "throttled source", want: limit.Source,
			begin: func(t *testing.T, r *run) {
				slow := fault.Rule{Effect: fault.Throttle, Operation: "GetRecords", PerSecond: 0.5}
				if err := r.faults.Inject(slow); err != nil {
					t.Fatal(err)
				}
				r.write(20)
			},
			end: func(r *run) { r.faults.Calm() },
		},
		{
			name: "a source that has more than is read", want: limit.Source,
			set: func(w *world) { w.sopts = func(o *source.Options) { o.ReadsPerShard = 2 } },
			begin: func(_ *testing.T, r *run) {
				r.writeLarge(60)
			},
			end: func(*run) {},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.patient()
			w.createTable("Orders")
			w.createTable("Users")
			w.opts = func(o *pipeline.Options) { o.Lanes = 512 }
			if c.set != nil {
				c.set(w)
			}
			r := w.open("Orders", "Users")
			r.p.ShortOfCPU(c.want == limit.CPU) // whatever this machine has
			r.begin()
			r.settle()
			c.begin(t, r)
			r.limited("Orders", c.want)
			if c.want != limit.Source { // faults of the source are those of all tables
				r.limited("Users", limit.Nothing)
			}
			c.end(r)
			r.settle()
			r.limited("Orders", limit.Nothing)
			r.equal()
		})
	}
}

// history is a mapping that keeps every version of an attribute, so that changes are not coalesced.
const history = `
families: {h: {max_versions: 100}}
rules: [{name: all, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", cells: [{attr: v, to: "h:v"}]}]`

// write puts items with different keys into Orders.
func (r *run) write(items int) {
	r.t.Helper()
	for i := range items {
		r.put("Orders", fmt.Sprint(i), "1", `"v":{"N":"1"}`)
	}
}

// writeLarge puts items with different keys into Orders, three of which fill a page. They are in
// one shard.
func (r *run) writeLarge(items int) {
	r.t.Helper()
	for i := range items {
		r.put("Orders", "one", fmt.Sprint(i), `"v":{"S":"`+strings.Repeat("x", 300<<10)+`"}`)
	}
}

// limited waits until status names what limits a table.
func (r *run) limited(table string, by limit.By) {
	r.t.Helper()
	r.until(fmt.Sprintf("the limit of %s is: %s", table, by.Word()), func() bool { return r.table(table).LimitedBy == by })
}

// TestSlowLogLimits: NATS acknowledges late.
func TestSlowLogLimits(t *testing.T) {
	long(t, "10 s")
	w := newWorld(t)
	w.patient()
	w.createTable("Orders")
	slow := slowTo(t, strings.TrimPrefix(externalNATS(t), "nats://"))
	w.qopts = func(o *queue.Options) { o.Dir, o.URL = "", "nats://"+slow.addr }
	r := w.open("Orders")
	r.p.ShortOfCPU(false)
	r.begin()
	r.settle()
	slow.delay.Store(int64(800 * time.Millisecond))
	n := 0
	r.until("the log limits", func() bool {
		r.put("Orders", fmt.Sprint(n), "1", `"v":{"N":"1"}`)
		n++
		return r.table("Orders").LimitedBy == limit.Log
	})
	slow.delay.Store(0)
	r.settle()
	r.limited("Orders", limit.Nothing)
	r.equal()
}

// twoRows is a mapping with an index row for each item.
const twoRows = `
families: {d: {max_versions: 1}, i: {max_versions: 1}}
rules:
- {name: all, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}],
   index: [{row: "by#{s}#{p}", cells: [{attr: v, to: "i:v"}]}]}`

// TestStatusShowsWhatATableCanReach: by the calls that each change takes, their latency, and how
// many may be in flight.
func TestStatusShowsWhatATableCanReach(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	w.mapping = twoRows
	w.opts = func(o *pipeline.Options) { o.Lanes, o.Processors = 100, 1000 }
	r := w.open("Orders")
	r.begin()
	r.settle()
	if c := r.table("Orders").Carries; c != nil {
		t.Errorf("%+v, and Bigtable was not called yet", c)
	}
	r.front.Faults.Latency(50*time.Millisecond, 0)
	r.write(200)
	r.until("the calls of a change are known", func() bool {
		c := r.table("Orders").Carries
		return c != nil && c.Changes <= 1100 // 100 calls, 50 ms and two rows; one row: 2,000
	})
	c := r.table("Orders").Carries
	if c.LimitedBy != limit.Latency || c.LatencyMS < 50 || c.Calls != 100 || c.Changes == 0 {
		t.Errorf("%+v, want at most 1,000 changes a second, limited by 100 calls of 50 ms", c)
	}
	r.front.Faults.Latency(0, 0)
	r.settle()
	r.equal()
}

// delayer is a TCP proxy that passes everything on late, in both directions.
type delayer struct {
	addr  string
	delay atomic.Int64
}

func slowTo(t *testing.T, to string) *delayer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &delayer{addr: l.Addr().String()}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			all.Go(func() { d.pass(in, out) })
			all.Go(func() { d.pass(out, in) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return d
}

// pass copies from one connection to another until either ends, and closes both.
func (d *delayer) pass(from, to net.Conn) {
	defer func() { _ = errors.Join(from.Close(), to.Close()) }()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			<-time.After(time.Duration(d.delay.Load()))
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil && !errors.Is(err, io.EOF) || n == 0 {
			return
		}
	}
}
