package pipeline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/transform"
)

// itemOf names an item in a request.
func itemOf(pk, sk string) request.Item {
	return request.Item{Key: json.RawMessage(fmt.Sprintf(`{"pk":{"S":%q},"sk":{"S":%q}}`, pk, sk))}
}

// requests opens the requests of a table as commands do.
func (r *run) requests(table string) *request.Store {
	r.t.Helper()
	s, err := r.log(table).Requests(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// ask stores a request for items, and returns its chunks.
func (r *run) ask(what string, items ...request.Item) []*request.Chunk {
	r.t.Helper()
	s, chunks := r.requests("Orders"), request.Split(what, "test", items, r.clock.Now())
	for _, c := range chunks {
		if err := s.Ask(r.t.Context(), c); err != nil {
			r.t.Fatal(err)
		}
	}
	return chunks
}

// answered waits until nothing is asked for any more, while the time goes on, and returns the sum
// of the outcomes.
func (r *run) answered(chunks []*request.Chunk) (sum request.Outcome) {
	r.t.Helper()
	s := r.requests("Orders")
	r.until("the requests have outcomes", func() bool {
		r.hasten()
		c, err := s.Next(r.t.Context(), r.clock.Now())
		return c == nil && err == nil
	})
	for _, c := range chunks {
		o, err := s.Await(r.t.Context(), c.ID)
		if err != nil || o.Failed != "" {
			r.t.Fatalf("chunk %s: %+v, %v", c.ID, o, err)
		}
		sum.Written, sum.Equal, sum.Hot, sum.Left = sum.Written+o.Written, sum.Equal+o.Equal, sum.Hot+o.Hot, sum.Left+o.Left
		sum.Applied, sum.Refused, sum.Waiting = sum.Applied+o.Applied, sum.Refused+o.Refused, sum.Waiting+o.Waiting
		sum.Notes, sum.Deleted = append(sum.Notes, o.Notes...), sum.Deleted+o.Deleted
	}
	return sum
}

// forge writes an item at a version that no change has, as a broken clock would.
func (r *run) forge(pk, sk, attrs string, v change.Version) {
	r.t.Helper()
	info, err := r.src.Table(r.t.Context(), "Orders")
	if err != nil {
		r.t.Fatal(err)
	}
	program, err := r.compile("Orders")(info)
	if err != nil {
		r.t.Fatal(err)
	}
	keys := fmt.Sprintf(`"pk":{"S":%q},"sk":{"S":%q}`, pk, sk)
	c := &change.Change{
		Op: change.Insert, Version: v, Keys: []byte("{" + keys + "}"), KeyHash: change.HashKey([]byte("{" + keys + "}")),
		New: []byte("{" + keys + "," + attrs + "}"),
	}
	var w transform.Write
	if err := program.Change(new(change.Decoder), c, &w); err != nil {
		r.t.Fatal(err)
	}
	if err := r.sink.Apply(r.t.Context(), target("Orders"), &w); err != nil {
		r.t.Fatal(err)
	}
}

// Attack 75: every change of an item loses to guards that a broken clock has left, of another
// version in each row. A request repairs one item, and a resync of the whole table the other.
func TestGuardsInTheFutureAreRepaired(t *testing.T) {
	long(t, "resyncs a table")
	w := newWorld(t)
	w.mapping = classes["index rows"]
	w.createTable("Orders")
	w.put("Orders", "asked", "1", `"v":{"S":"one"},"n":{"N":"1"}`)
	w.put("Orders", "whole", "1", `"v":{"S":"one"},"n":{"N":"1"}`)
	r := w.start("Orders")
	r.settle()
	hour := change.Version(time.Hour / time.Millisecond)
	broken := change.Version(w.clock.Now().UnixMilli()) + 24*hour
	for i, pk := range []string{"asked", "whole"} {
		r.forge(pk, "1", `"v":{"S":"one"},"stray":{"S":"x"}`, broken+change.Version(i))
		r.forge(pk, "1", `"v":{"S":"two"},"stray":{"S":"y"}`, broken+hour+change.Version(i))
		w.put("Orders", pk, "1", `"v":{"S":"one"},"n":{"N":"2"}`)
	}
	r.settle()
	if out := r.answered(r.ask(request.Resync, itemOf("asked", "1"))); out.Written != 1 || out.Hot != 0 {
		t.Errorf("the request: %+v", out)
	}
	r.control("Orders", &checkpoint.Control{Resync: &checkpoint.ResyncOrder{ID: "r1"}, By: "test"})
	r.until("the order is in the log", func() bool { return r.fold("Orders").Resync != nil })
	r.healed()
	if res := r.fold("Orders").LastResync.Result; res.Written != 1 || res.Equal != 2 {
		t.Errorf("the resync of the table: %+v", res)
	}
	for _, pk := range []string{"asked", "whole"} {
		w.put("Orders", pk, "1", `"v":{"S":"three"},"n":{"N":"3"}`)
	}
	r.settle()
	r.equal()
}

// An item of two requests, as when a file of keys names it twice, is not taken for one that changes
// all the time: it is written by one of them, and the other one's reading is as old.
func TestItemOfSeveralRequestsIsNotHot(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	var of []request.Item
	for i := range 30 {
		w.put("Orders", fmt.Sprint("p", i), "1", `"v":{"S":"one"},"n":{"N":"1"}`)
		of = append(of, itemOf(fmt.Sprint("p", i), "1"))
	}
	r := w.start("Orders")
	r.settle()
	w.clock.Advance(10 * time.Minute)
	r.settle()
	var asked []*request.Chunk
	for range 4 {
		asked = append(asked, r.ask(request.Resync, of...)...)
	}
	if out := r.answered(asked); out.Hot > 0 || out.Written+out.Equal != 4*30 {
		t.Errorf("items that nobody changes: %+v", out)
	}
	r.equal()
}

// Attack 63: 60 requests for 1,200 items, half of which the stream does not have, beside an
// application that writes the other half all the time. The owner's writer never meets an unknown
// outcome, and nothing halts.
func TestManyRequestsUnderLoad(t *testing.T) {
	long(t, "60 proofs, one after the other")
	w := newWorld(t)
	w.mapping = sharedRows
	w.qopts = func(o *queue.Options) { o.AckTimeout = longest } // a slow disk makes no unknown outcome, either
	w.createTable("Orders")
	const chunks, items = 60, 20
	key := func(i int) (pk, sk string) { return fmt.Sprint("p", i%97), fmt.Sprint(i) }
	p := &pairs{w: w}
	for i := range chunks * items {
		p.put(key(i))
	}
	w.clock.Advance(25 * time.Hour)
	w.streams.Sweep()
	r := w.start("Orders")
	r.settle()
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	load.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if pk, sk := key(2 * i % (chunks * items)); i%7 == 0 {
				w.delete("Orders", pk, sk)
			} else {
				p.put(pk, sk)
			}
			w.pause(ctx, pace)
		}
	})
	var asked []*request.Chunk
	for i := range chunks {
		var of []request.Item
		for k := range items {
			of = append(of, itemOf(key(i*items+k)))
		}
		asked = append(asked, r.ask(request.Resync, of...)...)
	}
	out := r.answered(asked)
	cancel()
	load.Wait()
	if out.Refused > 0 || out.Written < chunks*items/3 || len(asked) != chunks {
		t.Errorf("%d chunks: %+v", len(asked), out)
	}
	r.settle()
	r.equal()
	for _, trouble := range []string{"go on from the stored state", "halt", "serve a request: will be retried"} {
		if n := w.logged.FilterMessageSnippet(trouble).Len(); n > 0 {
			t.Errorf("%d times: %s", n, trouble)
		}
	}
	if st := r.table("Orders"); st.State != "running" || st.DeadLetters > 0 {
		t.Errorf("%+v", st)
	}
}
