package queue

import (
	"context"
	"errors"
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

// Rule 5: a claim that only notes a refusal knows the life of the pipeline's row, and leaves that
// of the log.
func TestLaterClaimKeepsTheLifeOfTheLog(t *testing.T) {
	ctx := testContext(t)
	l := createLog(t, embeddedQueue(t))
	for i, life := range []uint64{1, 2} {
		o := ClaimOptions{Owner: "a", TTL: time.Hour, Alone: true, Life: life}
		w, err := newClaimer(l, o, checkpoint.Nonce{byte(i)}).try(ctx, nil)
		if w == nil || err != nil {
			t.Fatalf("claim %d: %v", i, err)
		}
		if got := w.State().Life; got != 1 {
			t.Errorf("claim %d: the log is of life %d, want 1", i, got)
		}
	}
}

// Rule 12: a claim whose acknowledgement was lost is as old as it was sent, not as the fold that
// shows it: another process may claim the log TTL after that, also while this one cannot reach the
// server.
func TestClaimThatIsFoundLateIsNotValid(t *testing.T) {
	ctx := testContext(t)
	q := connectTo(t, startExternal(t).addr(), nil)
	c := newClaimer(createLog(t, q), ClaimOptions{Owner: "a", TTL: time.Hour}, checkpoint.Nonce{1})
	if w, err := c.try(ctx, nil); w == nil || err != nil {
		t.Fatalf("claim of a new log: %v", err)
	}
	c.claimSent = c.claimSent.Add(-50 * time.Minute)
	w, err := c.try(ctx, nil)
	if w == nil || err != nil {
		t.Fatalf("after a lost acknowledgement: %v", err)
	}
	if w.ClaimValid() {
		t.Error("a claim that was sent 50 minutes ago is valid, TTL is an hour")
	}
	if mustAppend(t, w, &checkpoint.Beat{Date: second}, nil); !w.ClaimValid() {
		t.Error("not valid after an append")
	}
}

// A claim that was refused, because another one came first, is forgotten: the stand-by hears the
// owner and looks at the log as before, and folds it no more.
func TestRefusedClaimIsForgotten(t *testing.T) {
	ctx := testContext(t)
	q := embeddedQueue(t)
	l := createLog(t, q)
	c := newClaimer(l, ClaimOptions{Owner: "b", TTL: time.Hour}, checkpoint.Nonce{1})
	f, err := l.fold(ctx)
	if err != nil {
		t.Fatal(err)
	}
	claim(t, l, "a")
	if _, err := c.appendClaim(ctx, f); !errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("claim of a log that was claimed meanwhile: %v", err)
	}
	folds, usual := 0, q.conn.CreateConsumer
	q.conn.CreateConsumer = func(
		ctx context.Context, stream string, cfg jetstream.ConsumerConfig,
	) (jetstream.Consumer, error) {
		folds++
		return usual(ctx, stream, cfg)
	}
	for range 5 {
		if w, err := c.try(ctx, nil); w != nil || err != nil {
			t.Fatalf("claimed %v, %v", w != nil, err)
		}
	}
	if folds != 1 {
		t.Errorf("the log was folded %d times, want once, to see who owns it", folds)
	}
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
