package queue

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// The acknowledgement of a claim was lost: the claimer owns the log, and does not wait for TTL.
func TestClaimWhoseAcknowledgementWasLostCounts(t *testing.T) {
	ctx := testContext(t)
	c := newClaimer(createLog(t, embeddedQueue(t)), ClaimOptions{Owner: "a", TTL: time.Hour}, checkpoint.Nonce{1})
	if w, err := c.try(ctx, nil); w == nil || err != nil {
		t.Fatalf("claim of a new log: %v", err)
	}
	w, err := c.try(ctx, nil)
	if w == nil || err != nil || w.Epoch() != 1 {
		t.Fatalf("after a lost acknowledgement: writer %+v, %v", w, err)
	}
	mustAppend(t, w, &checkpoint.Beat{Date: second}, nil)
}

// moving is a stream that grows before the nth question about it is answered.
type moving struct {
	jetstream.Stream
	n    int
	grow func()
}

func (m *moving) Info(ctx context.Context, opts ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	if m.n--; m.n == 0 {
		m.grow()
	}
	return m.Stream.Info(ctx, opts...)
}

// The owner appends a beat between the claimer's look at the log and its fold.
func TestBeatBetweenLookAndFoldPreventsTheClaim(t *testing.T) {
	ctx := testContext(t)
	q := embeddedQueue(t)
	w := owned(t, q)
	l, err := q.Log(ctx, "Orders")
	if err != nil {
		t.Fatal(err)
	}
	c := newClaimer(l, ClaimOptions{Owner: "b", TTL: time.Hour}, checkpoint.Nonce{1})
	if rival, err := c.try(ctx, nil); rival != nil || err != nil {
		t.Fatalf("at the first look: %v, %v", rival, err)
	}
	c.watch.TTL = time.Nanosecond // what was seen so far is silence enough
	l.stream = &moving{l.stream, 2, func() { mustAppend(t, w, &checkpoint.Beat{Date: second}, nil) }}
	if rival, err := c.try(ctx, nil); rival != nil || err != nil {
		t.Fatalf("claimed although the owner has just beaten: %v, %v", rival != nil, err)
	}
}
