package queue

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue/presence"
)

// hear runs a group of a queue until the test ends. say is nil for a process that owns nothing.
func hear(t *testing.T, q *Queue, me string, say func() presence.Message) *presence.Group {
	t.Helper()
	if say == nil {
		say = func() presence.Message { return presence.Message{} }
	}
	g := q.Group(presence.Options{Me: me, Say: say, Every: 20 * time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return g
}

// TestStandByAsksNothingWhileTheOwnerIsHeard: a hundred logs with two stand-bys must cost the
// server next to nothing. Once the owner is not heard any more, the log is looked at again.
func TestStandByAsksNothingWhileTheOwnerIsHeard(t *testing.T) {
	url := startExternal(t).addr()
	a, b := connectTo(t, url, nil), connectTo(t, url, nil)
	w := owned(t, a)
	var asked atomic.Int64
	sub, err := b.conn.NC.Subscribe("$JS.API.STREAM.INFO.>", func(*nats.Msg) { asked.Add(1) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Unsubscribe() })
	var silent atomic.Bool
	hear(t, a, "a", func() presence.Message {
		m := presence.Message{}
		if !silent.Load() {
			seq, _ := w.Head()
			m.Logs = []presence.Log{{Table: "Orders", Epoch: w.Epoch(), Seq: seq}}
		}
		return m
	})
	g := hear(t, b, "b", nil)
	l, err := b.Log(testContext(t), "Orders")
	if err != nil {
		t.Fatal(err)
	}
	heard := make(chan string)
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := l.Claim(
			ctx,
			ClaimOptions{Owner: "b", TTL: time.Hour, Group: g, Grown: func(owner string, _ uint64) { heard <- owner }},
		)
		ended <- err
	}()
	next := func() {
		if owner := <-heard; owner != "a" {
			t.Errorf("the owner is %q", owner)
		}
	}
	next() // the first tries look at the log, as the owner may not have been heard yet
	next()
	before := asked.Load()
	for range 4 {
		mustAppend(t, w, &checkpoint.Beat{Date: second}, nil)
		next()
	}
	if n := asked.Load() - before; n > 0 {
		t.Errorf("the log was asked for %d times while its owner was heard", n)
	}
	silent.Store(true)
	for asked.Load() == before {
		select {
		case <-heard:
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			t.Fatal("the log is not looked at although its owner is not heard")
		}
	}
	cancel()
	for {
		select {
		case <-heard:
		case err := <-ended:
			if !errors.Is(err, ErrHeld) && !errors.Is(err, context.Canceled) { // in the middle of a question
				t.Error(err)
			}
			return
		}
	}
}

// TestHandedOverLogIsClaimedAtOnce by the process that it was handed over to, and by no other one
// meanwhile.
func TestHandedOverLogIsClaimedAtOnce(t *testing.T) {
	url := startExternal(t).addr()
	w := owned(t, connectTo(t, url, nil))
	claimers := map[string]chan uint64{}
	for _, name := range []string{"b", "c"} {
		l, err := connectTo(t, url, nil).Log(testContext(t), "Orders")
		if err != nil {
			t.Fatal(err)
		}
		claimed := make(chan uint64, 1)
		claimers[name] = claimed
		go func() {
			w, err := l.Claim(testContext(t), ClaimOptions{Owner: name, TTL: time.Hour})
			if err == nil {
				claimed <- w.Epoch()
			}
		}()
	}
	if err := w.HandOver(testContext(t), "c"); err != nil {
		t.Fatal(err)
	}
	select {
	case epoch := <-claimers["c"]:
		if epoch != 2 {
			t.Errorf("epoch %d", epoch)
		}
	case <-claimers["b"]:
		t.Error("claimed by a process to which it was not handed over")
	}
}
