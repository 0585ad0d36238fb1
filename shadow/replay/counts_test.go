package replay_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/tailrace-cdc/replicator/shadow/pattern"
	"github.com/tailrace-cdc/replicator/shadow/replay"
)

const getA = `{"TableName":"table0","Key":{"pk":{"S":"p"},"sk":{"S":"a"}}}`

// TestEveryReadIsCounted: of more reads than may wait, some before and some behind the end of a run,
// each is replayed or skipped, whatever became of its request.
func TestEveryReadIsCounted(t *testing.T) {
	w := newPlace(t, 1, designs[0])
	w.put(0, `{"pk":{"S":"p"},"sk":{"S":"a"},"y":{"S":"1"}}`)
	q := request{"GetItem", getA, w.call("GetItem", getA)}
	r, reader, c := w.replayer(func(replay.Mismatch) error { return nil }, t.Errorf)
	asked := reader.Of(q.operation, []byte(q.body))
	offer := func(change func(*request) (status int, cut bool)) {
		of := q
		x := of.exchanged()
		if change != nil {
			x.Status, x.Cut = change(&of)
			x.Answer = of.exchanged().Answer
		}
		c.Add(asked, pattern.Answer{Failed: x.Status != 200})
		r.Offer(asked, x)
	}
	offer(func(*request) (int, bool) { return 400, false })
	offer(func(*request) (int, bool) { return 200, true })
	offer(func(of *request) (int, bool) { of.answer = "{"; return 200, false })
	for range 300 {
		offer(nil)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Close()
	if err := r.Run(ctx); err != nil {
		t.Fatal(err)
	}
	s := c.Snapshot()
	got := only(t, s)
	if keys := s.Patterns[0].Keys; keys != 303 || got.Replayed+got.Left() != keys || got.Skipped[replay.Failed] != 2 ||
		got.Skipped[replay.Busy] != 45 || got.Skipped[replay.Ended] != 256 {
		t.Errorf("%d keys: %+v", keys, got)
	}
}

// TestReadsThatWaitAreBoundedInBytes: large answers take as much memory as many small ones.
func TestReadsThatWaitAreBoundedInBytes(t *testing.T) {
	w := newPlace(t, 1, designs[0])
	q := request{"GetItem", getA, strings.Repeat(" ", 1<<20-2) + "{}"}
	r, reader, c := w.replayer(func(replay.Mismatch) error { return nil }, t.Errorf)
	asked := reader.Of(q.operation, []byte(q.body))
	for range 70 {
		r.Offer(asked, q.exchanged())
	}
	r.Close()
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := only(t, c.Snapshot()); got.Replayed != 63 || got.Skipped[replay.Busy] != 7 {
		t.Errorf("%+v", got)
	}
}

// TestMismatchesThatAreNotKeptAreCounted, as those of a full disk are. It is said once.
func TestMismatchesThatAreNotKeptAreCounted(t *testing.T) {
	w := newPlace(t, 1, designs[0])
	var reads []request
	for _, sk := range []string{"a", "b", "c"} {
		w.put(0, `{"pk":{"S":"p"},"sk":{"S":"`+sk+`"},"y":{"S":"1"}}`)
		w.spoil("A#p#"+sk, "d")
		body := strings.Replace(getA, `"a"`, `"`+sk+`"`, 1)
		reads = append(reads, request{"GetItem", body, w.call("GetItem", body)})
	}
	var mu sync.Mutex
	shown, warned := 0, 0
	full := func(replay.Mismatch) error { shown++; return errors.New("no space left") }
	r, reader, c := w.replayer(full, func(string, ...any) {
		mu.Lock()
		defer mu.Unlock()
		warned++
	})
	for i := range reads {
		r.Offer(reader.Of("GetItem", []byte(reads[i].body)), reads[i].exchanged())
	}
	r.Close()
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := only(t, c.Snapshot())
	if got.Wrong() != 3 || got.Replayed != 3 || got.Waiting() != 0 || shown != 3 || warned != 1 {
		t.Errorf("%d shown, %d warnings: %+v", shown, warned, got)
	}
}
