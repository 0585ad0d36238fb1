package control

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sandbox/nats"
)

// TestHaltOfTheDaemonIsTheReason: a table that halts before it opens its log has no halt there. The
// daemon's answer names the cause; without a daemon, or another error, nothing changes.
func TestHaltOfTheDaemonIsTheReason(t *testing.T) {
	cfg := config.Default()
	cfg.Pipeline, cfg.Tables = "shop", []config.Table{{Source: "Orders", Target: "orders"}}
	halt := "the mapping changed"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		table := pipeline.TableStatus{Source: "Orders", Target: "orders", Halt: halt}
		_ = json.NewEncoder(w).Encode(pipeline.Status{Pipeline: "shop", Tables: []pipeline.TableStatus{table}})
	}))
	defer server.Close()
	cfg.Admin.Listen = server.Listener.Addr().String()
	none := CheckOwner("Orders", &checkpoint.State{}, Signs{TTL: time.Minute})
	const want = "table Orders is halted: the mapping changed"
	if err := WhyNotOwned(t.Context(), &cfg, none); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	other := errors.New("x")
	if err := WhyNotOwned(t.Context(), &cfg, other); !errors.Is(err, other) || WhyNotOwned(t.Context(), &cfg, nil) != nil {
		t.Errorf("another error: %v", err)
	}
	halt = ""
	if err := WhyNotOwned(t.Context(), &cfg, none); !errors.Is(err, none) {
		t.Errorf("no halt: %v", err)
	}
}

// TestCommandsNeedAnOwner: a command needs an owner that carries out what it asks for. A table that
// is halted has none until the next try, although status shows no missing owner. A halt is a sign
// of life.
func TestCommandsNeedAnOwner(t *testing.T) {
	const ttl = time.Minute
	now := time.UnixMilli(10_000_000)
	at := func(silent time.Duration) change.Millis { return change.MillisOf(now.Add(-silent)) }
	halts := func(sink string, silent time.Duration) map[string]*checkpoint.Halt {
		return map[string]*checkpoint.Halt{sink: {Sink: sink, At: at(silent), Reason: "the mapping changed"}}
	}
	long, released := at(3*ttl+time.Millisecond), checkpoint.Chain{Released: true}
	for name, c := range map[string]struct {
		s    checkpoint.State
		want protocol.Life
		text string
	}{
		"just seen":       {checkpoint.State{Owner: "a", Date: at(0)}, protocol.LifeSeen, ""},
		"silent":          {checkpoint.State{Owner: "a", Date: at(3 * ttl)}, protocol.LifeSeen, ""},
		"silent for long": {checkpoint.State{Owner: "a", Date: long}, protocol.LifeSilent, "no sign of life"},
		"a sink halted lately": {
			checkpoint.State{Owner: "a", Date: long, Halts: halts("bigtable", ttl)}, protocol.LifeSeen, "",
		},
		"released": {checkpoint.State{Owner: "a", Date: at(0), Chain: released}, protocol.LifeNone, "no replicator"},
		"halted, and tried again": {
			checkpoint.State{Owner: "a", Date: at(0), Halts: halts(checkpoint.SinkPipeline, 0), Chain: released},
			protocol.LifeNone, "table Orders is halted: the mapping changed",
		},
		"paused":      {checkpoint.State{Owner: "a", Date: at(0), Paused: true}, protocol.LifeSeen, "paused"},
		"never owned": {checkpoint.State{Date: at(0)}, protocol.LifeNone, "no replicator"},
	} {
		c.s.Format = checkpoint.Format
		if got := OwnerLife(&c.s, Signs{Silent: OwnerSilence(&c.s, now), TTL: ttl}); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
		err := CheckOwner("Orders", &c.s, Signs{Silent: OwnerSilence(&c.s, now), TTL: ttl})
		if (err == nil) != (c.text == "") || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAnswerOfTheQueueThatIsNoneIsOfTheEnvironment: such an error ends a command with exit code 3.
func TestAnswerOfTheQueueThatIsNoneIsOfTheEnvironment(t *testing.T) {
	a := &Requester{store: &request.Store{}}
	odd := errors.New("invalid jetstream publish response")
	err := a.repeat(t.Context(), func(context.Context, *request.Store) error { return odd })
	if class, hint := failure.Of(err); class != failure.Unready || hint == "" || !errors.Is(err, odd) {
		t.Errorf("%v, %s, %q", err, class, hint)
	}
}

// TestFirstRequestAwaitsALifeSign, Rule 13: by the clock of the service the owner has been silent
// for an hour, and it goes on beating. The life that was seen counts at each later look, too.
func TestFirstRequestAwaitsALifeSign(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	w := sandbox.NewWorld(t, sandbox.WorldOptions{})
	w.CreateTable("Orders")
	server, err := nats.Open(nats.Options{Addr: "127.0.0.1:0", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	cfg := config.Default()
	cfg.Pipeline, cfg.Queue.Dir, cfg.Queue.URL = "shop", "", server.URL()
	cfg.Source.Region, cfg.Source.Endpoint = "us-east-1", w.Endpoint()
	clients := clients.ForCommand(&cfg, func(zapcore.Level) *zap.Logger { return zap.NewNop() })
	t.Cleanup(func() { _ = clients.Close() })
	beat := ownerOf(t, server.URL(), change.MillisOf(w.Clock.Now().Add(-time.Hour)))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
				beat()
			}
		}
	}()
	a := &Requester{Table: "Orders", Clients: clients, ClaimTTL: time.Minute}
	err = a.first(t.Context())
	close(stop)
	<-stopped
	if err != nil {
		t.Fatalf("the owner lives: %v", err)
	}
	if err := a.look(t.Context(), a.store); err != nil {
		t.Errorf("a later look: %v", err)
	}
}

// ownerOf makes the log of Orders and claims it. The returned function stores the owner's next
// beat.
func ownerOf(t *testing.T, url string, date change.Millis) (beat func()) {
	t.Helper()
	q, err := queue.Open(t.Context(), queue.Options{Pipeline: "shop", URL: url, MaxBytes: 64 << 20}, zap.NewNop(),
		prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	log, err := q.CreateLog(t.Context(), "Orders", "t0ken")
	if err != nil {
		t.Fatal(err)
	}
	w, err := log.Claim(t.Context(), queue.ClaimOptions{Owner: "a"})
	if err != nil {
		t.Fatal(err)
	}
	beat = func() {
		date++
		if _, err := w.Append(t.Context(), &checkpoint.Beat{Date: date}, nil); err != nil {
			t.Error(err)
		}
	}
	beat()
	return beat
}

// TestSilenceOfAnOwnerIsObserved, Rule 13: an old beat alone is no silence. The log is looked at
// again, and only an owner that stores nothing meanwhile has given no sign of life.
func TestSilenceOfAnOwnerIsObserved(t *testing.T) {
	ctx := t.Context()
	q, err := queue.Open(ctx, queue.Options{Pipeline: "shop", Dir: t.TempDir(), MaxBytes: 64 << 20}, zap.NewNop(),
		prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	log, err := q.CreateLog(ctx, "Orders", "t0ken")
	if err != nil {
		t.Fatal(err)
	}
	w, err := log.Claim(ctx, queue.ClaimOptions{Owner: "a"})
	if err != nil {
		t.Fatal(err)
	}
	const began = change.Millis(1_790_000_000_000)
	start := &checkpoint.Start{
		Stream: "arn:aws:dynamodb:eu-west-1:1:table/Orders/stream/2026-01-01T00:00:00.000", Date: began,
		Shards: []checkpoint.ShardSeen{{ID: "shard-1"}},
	}
	if _, err := w.Append(ctx, start, nil); err != nil {
		t.Fatal(err)
	}
	l, err := Open(ctx, q, "Orders")
	if err != nil {
		t.Fatal(err)
	}
	later := began + 2*60_000 // the clock was set
	now := func() time.Time { return later.Time() }
	silent, err := new(SilenceWatch).Await(ctx, l, now, time.Second, 3*betweenLooks)
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckOwner("Orders", l.State, Signs{Silent: silent, TTL: time.Second}); err == nil ||
		!strings.Contains(err.Error(), "no sign of life") {
		t.Errorf("an owner that stores nothing: %v", err)
	}
	if alive, err := OwnerLives(ctx, l, now, time.Millisecond); alive || err != nil {
		t.Errorf("an owner that stores nothing: %v, %v", alive, err)
	}
	for _, date := range []change.Millis{began + 1, later} { // by the owner's clock, and by the one that was set
		if _, err := w.Append(ctx, &checkpoint.Beat{Date: date}, nil); err != nil {
			t.Fatal(err)
		}
		silent, err := new(SilenceWatch).Await(ctx, l, now, time.Second, time.Hour) // l has not read the beat
		if err != nil || silent > 3*time.Second {
			t.Errorf("an owner that lives is silent for %s: %v", silent, err)
		}
	}
}

// TestCommandWaitsUntilAnOwnerMayHaveTakenOver: for as long as the former one counts as alive and
// another one needs to start, and not for ever.
func TestCommandWaitsUntilAnOwnerMayHaveTakenOver(t *testing.T) {
	cfg := config.Default()
	cfg.Queue.Dir = t.TempDir()
	const ttl = 15 * time.Second
	synctest.Test(t, func(t *testing.T) {
		away := 0
		a := &Requester{
			Table: "Orders", ClaimTTL: ttl, Away: func(error) { away++ },
			Clients: clients.ForCommand(&cfg, func(zapcore.Level) *zap.Logger { return zap.NewNop() }),
		}
		began := time.Now()
		err := a.repeat(t.Context(), func(context.Context, *request.Store) error { return nil })
		class, hint := failure.Of(err)
		if class != failure.Unready || !strings.Contains(hint, "replicator run") || away != 1 {
			t.Errorf("%v, %q, told %d times", err, hint, away)
		}
		patience := protocol.TakeoverPatience(ttl)
		if waited := time.Since(began); waited <= patience || waited > patience+2*lookPeriod+retryPause {
			t.Errorf("it waited for %s, and another owner may need %s", waited, patience)
		}
	})
}
