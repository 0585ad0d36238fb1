package pipeline_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/queue/request"
	sandbigtable "github.com/tailrace-cdc/replicator/sandbox/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// readGate holds the first reading of the items of each partition that is to be resynced.
type readGate struct {
	mu    sync.Mutex
	reads map[string]int
	gates map[string]*gate
}

// gate is one held reading: it has arrived, the test opens the gate, the reply is served.
type gate struct{ arrived, open, served chan struct{} }

// gateReads puts a gate before the readings of single items.
func (w *world) gateReads() *readGate {
	x := &readGate{reads: map[string]int{}, gates: map[string]*gate{}}
	w.tables.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
			if !strings.HasSuffix(req.Header.Get("X-Amz-Target"), ".BatchGetItem") {
				next.ServeHTTP(rw, req)
				return
			}
			body, _ := io.ReadAll(req.Body)
			req.Body = io.NopCloser(bytes.NewReader(body))
			g := x.pass(req.Context(), body)
			next.ServeHTTP(rw, req)
			if g != nil {
				close(g.served)
			}
		})
	})
	return x
}

// pass counts a reading, and returns the gate that it has gone through.
func (x *readGate) pass(ctx context.Context, body []byte) *gate {
	x.mu.Lock()
	var found *gate
	for pk, g := range x.gates {
		if bytes.Contains(body, fmt.Appendf(nil, "%q", pk)) {
			if x.reads[pk]++; x.reads[pk] == 1 {
				found = g
			}
		}
	}
	x.mu.Unlock()
	if found != nil {
		close(found.arrived)
		select {
		case <-found.open:
		case <-ctx.Done():
		}
	}
	return found
}

// hold puts a gate before the readings of a partition.
func (x *readGate) hold(pk string) *gate {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.gates[pk] = &gate{arrived: make(chan struct{}), served: make(chan struct{}), open: make(chan struct{})}
	return x.gates[pk]
}

// passed reports whether a channel is closed.
func passed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// death is a moment at which the owner of a table dies in the middle of a request.
type death struct {
	name string
	pk   string                            // of the items that are asked for
	set  func(r *run)                      // before the items are read
	at   func(r *run, g *gate) (dead bool) // true when the moment is reached
	end  func(r *run) *run                 // nil: a kill
}

// Attack 63: the owner dies at each step of a request. The next one completes the request: no dead
// letter is lost, the histories get no version twice, and what the dead one had on its way comes
// too late.
func TestOwnerDiesAtEachStepOfARequest(t *testing.T) {
	long(t, "starts a pipeline ten times")
	w := newWorld(t)
	w.mapping = classes["histories"]
	w.opts = func(o *pipeline.Options) { o.Periods.Shutdown = time.Millisecond }
	w.createTable("Orders")
	reads, faults := w.gateReads(), w.front.Faults
	retried := func() int { return w.logged.FilterMessage("serve a request: will be retried").Len() }
	failed := 0
	deaths := []death{
		{name: "it is stored, and nobody has read it", at: func(*run, *gate) bool { return true }},
		{name: "the items are being read", at: func(_ *run, g *gate) bool { return passed(g.arrived) }},
		{name: "the items were read", at: func(_ *run, g *gate) bool { return passed(g.served) }},
		{name: "some rows are written", set: func(r *run) { faults.RefuseRow([]byte("some#b"), codes.Unavailable, -1) },
			at: func(r *run, _ *gate) bool { return r.has("some#a") && len(r.lettersOf("some")) == 0 }},
		{name: "the life ends", set: func(r *run) { faults.RefuseRow([]byte("ends#b"), codes.Unavailable, -1) },
			at: func(r *run, _ *gate) bool { return r.has("ends#a") && len(r.lettersOf("ends")) == 0 },
			end: func(r *run) *run {
				ends := func() int { return w.logged.FilterMessageSnippet(": go on ").Len() }
				before := ends()
				r.control("Orders", resume())
				r.until("the next life begins", func() bool { return ends() > before })
				faults.Calm()
				r.until("it has done the request", func() bool {
					r.hasten()
					c, err := r.requests("Orders").Next(t.Context(), w.clock.Now())
					return c == nil && err == nil
				})
				return r
			}},
		{name: "all rows are written, which the owner does not know",
			set: func(*run) { faults.Random(sandbigtable.Odds{Ambiguous: 1}) },
			at:  func(r *run, _ *gate) bool { return r.has("all#a") && r.has("all#b") && r.has("all#letter") }},
		{name: "its outcome is not stored", set: func(r *run) { r.limitRequests(64); failed = retried() },
			at: func(*run, *gate) bool { return retried() > failed }},
		{name: "its outcome is stored", at: func(r *run, _ *gate) bool {
			c, err := r.requests("Orders").Next(t.Context(), w.clock.Now())
			return c == nil && err == nil
		}},
		{name: "its writes are under way", set: func(*run) {
			faults.HoldLate()
			faults.Random(sandbigtable.Odds{Late: 1})
		}, at: func(*run, *gate) bool { return faults.LateWaiting() > 2 }},
	}
	for i, pk := range []string{"stored", "reading", "read", "some", "ends", "all", "done", "told", "late"} {
		deaths[i].pk = pk
		w.put("Orders", pk, "a", `"v":{"N":"1"}`)
		w.put("Orders", pk, "b", `"v":{"N":"1"}`)
	}
	w.clock.Advance(25 * time.Hour)
	w.streams.Sweep() // the stream does not have them
	r := w.start("Orders")
	for _, d := range deaths {
		faults.RefuseRow([]byte(d.pk), codes.InvalidArgument, 2)
		w.put("Orders", d.pk, "letter", `"v":{"N":"1"}`)
	}
	r.until("each has a letter", func() bool { return r.table("Orders").DeadLetters == len(deaths) })
	r.kill()
	var chunks []*request.Chunk
	for _, d := range deaths {
		r = w.openAs(false, "Orders")
		if len(chunks) > 0 {
			r.limitRequests(-1)
		}
		chunks = append(chunks, r.ask(request.Letters, itemOf(d.pk, "a"), itemOf(d.pk, "letter"), itemOf(d.pk, "b"))...)
		g := reads.hold(d.pk)
		r.begin()
		if !d.at(r, g) {
			r.until("before the moment when "+d.name, func() bool { r.hasten(); return passed(g.arrived) })
			if d.set != nil {
				r.appliesChanges(d.pk) // what is set may refuse the calls that a life needs to begin
				d.set(r)
			}
		}
		if !d.at(r, g) {
			close(g.open)
			r.until(d.name, func() bool { r.hastenUnlessRead(d.pk); return d.at(r, g) })
		}
		if d.end != nil {
			r = d.end(r)
		}
		r.kill()
		if !passed(g.open) {
			close(g.open)
		}
		faults.Random(sandbigtable.Odds{})
		if d.pk != "late" {
			faults.Calm()
		}
	}
	r = w.restart("Orders")
	if out := r.answered(chunks); out.Refused+out.Hot+out.Waiting > 0 {
		t.Errorf("%+v", out)
	}
	faults.ReleaseLate()
	r.until("the writes of the dead owner have come", func() bool { return faults.LateWaiting() == 0 })
	r.until("no letter is left", func() bool { return r.table("Orders").DeadLetters == 0 })
	r.settle()
	r.equal()
	r.oneVersionEach()
	if n := reads.reads["told"]; n != 1 {
		t.Errorf("the request whose outcome was stored was done %d times", n)
	}
	for _, pk := range []string{"reading", "read", "some", "ends", "all", "done", "late"} {
		if n := reads.reads[pk]; n < 2 {
			t.Errorf("%s: read %d times, so the owner did not die in the middle of it", pk, n)
		}
	}
}

// appliesChanges waits until the life applies changes: reading begins before the table's row agrees
// with the log.
func (r *run) appliesChanges(name string) {
	r.t.Helper()
	r.put("Orders", "begun", name, `"v":{"N":"1"}`)
	r.until("changes are applied", func() bool { r.hasten(); return r.has("begun#" + name) })
}

// hastenUnlessRead is hasten while the items are to be written: those that were only read stay
// unproven.
func (r *run) hastenUnlessRead(pk string) {
	if pk != "read" {
		r.hasten()
	}
}

// has reports whether a row is in the target.
func (r *run) has(row string) bool { return len(r.stored("Orders")[row]) > 0 }

// lettersOf returns the dead letters of the items of a partition.
func (r *run) lettersOf(pk string) (ids []string) {
	r.t.Helper()
	for l, err := range r.letters("Orders").All(r.t.Context()) {
		if err != nil {
			r.t.Fatal(err)
		}
		if c, err := l.Change(); err == nil && bytes.Contains(c.Keys, fmt.Appendf(nil, "%q", pk)) {
			ids = append(ids, l.ID)
		}
	}
	return ids
}

// limitRequests sets the largest message of the requests' stream; -1: no limit.
func (r *run) limitRequests(size int32) {
	r.t.Helper()
	nc, js := r.js()
	defer nc.Close()
	for info := range js.ListStreams(r.t.Context()).Info() {
		if strings.HasSuffix(info.Config.Name, "_requests") {
			info.Config.MaxMsgSize = size
			if _, err := js.UpdateStream(r.t.Context(), info.Config); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

// oneVersionEach fails the test when a column of the family d holds more than one version.
func (r *run) oneVersionEach() {
	r.t.Helper()
	views := []bigtable.View{{Family: "d", Versions: 3}}
	err := r.sink.Rows(r.t.Context(), target("Orders"), "", "", views, func(row *bigtable.Row) error {
		n := map[string]int{}
		for _, c := range row.Cells {
			if n[string(c.Qualifier)]++; n[string(c.Qualifier)] > 1 {
				r.t.Errorf("row %q: column %q has the version of %s, too", row.Key, c.Qualifier, c.Time)
			}
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
}
