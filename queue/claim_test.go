package queue

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// While the server is away the owner cannot beat, and while the claimer is stopped it sees no beats: a log that did not
// grow in such a time does not mean that its owner is gone. The owner may need until its next beat to show it.
func TestSilenceCountsOnlyWhileItIsObserved(t *testing.T) {
	w := owned(t, embeddedQueue(t))
	ctx := testContext(t)
	for _, c := range []struct {
		name        string
		unseen      time.Duration // of the 90 minutes since the log moved
		lost        bool
		reconnected bool
		claims      bool
	}{
		{"looked all the time", time.Second, false, false, true},
		{"claimer stopped", 13 * time.Minute, false, false, false},
		{"server away", 13 * time.Minute, true, false, false},
		{"one look failed", time.Minute, true, false, true},
		{"connected again", time.Second, false, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			rival := &claimer{l: w.Log(), o: ClaimOptions{Owner: "b", TTL: time.Hour}, nonce: checkpoint.Nonce{1}}
			if w, err := rival.try(ctx); w != nil || err != nil {
				t.Fatalf("at the first look: claimed %v, %v", w != nil, err)
			}
			rival.unchangedSince, rival.lastLook = rival.unchangedSince.Add(-90*time.Minute), rival.lastLook.Add(-c.unseen)
			if c.lost {
				ended, cancel := context.WithCancel(ctx)
				cancel()
				if _, err := rival.try(ended); err == nil {
					t.Fatal("a look without time succeeded")
				}
			}
			if c.reconnected {
				w.l.q.conn.Connections.Add(1)
			}
			now, err := rival.try(ctx)
			if err != nil || (now != nil) != c.claims {
				t.Errorf("claimed %v, %v, want %v", now != nil, err, c.claims)
			}
			if wait := time.Until(rival.unchangedSince); !c.claims && (wait < -time.Minute || wait > 20*time.Minute) {
				t.Errorf("the wait begins in %s, want at most TTL/3", wait)
			}
		})
	}
}

// The acknowledgement of a claim was lost: the claimer owns the log, and does not wait for TTL.
func TestClaimWhoseAcknowledgementWasLostCounts(t *testing.T) {
	ctx := testContext(t)
	c := &claimer{l: createLog(t, embeddedQueue(t)), o: ClaimOptions{Owner: "a", TTL: time.Hour},
		nonce: checkpoint.Nonce{1}}
	if w, err := c.try(ctx); w == nil || err != nil {
		t.Fatalf("claim of a new log: %v", err)
	}
	w, err := c.try(ctx)
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
	c := &claimer{l: l, o: ClaimOptions{Owner: "b", TTL: time.Hour}, nonce: checkpoint.Nonce{1}}
	if rival, err := c.try(ctx); rival != nil || err != nil {
		t.Fatalf("at the first look: %v, %v", rival, err)
	}
	c.unchangedSince = c.unchangedSince.Add(-2 * time.Hour)
	l.stream = &moving{l.stream, 2, func() { mustAppend(t, w, &checkpoint.Beat{Date: second}, nil) }}
	if rival, err := c.try(ctx); rival != nil || err != nil {
		t.Fatalf("claimed although the owner has just beaten: %v, %v", rival != nil, err)
	}
}
