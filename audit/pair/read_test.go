package pair

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sandbox/nats"
	"github.com/tailrace-cdc/replicator/source"
)

// TestAskedTimeIsThatOfTheReply: DynamoDB's clock went on while ours stood still, as it does on a
// machine that is suspended.
func TestAskedTimeIsThatOfTheReply(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	w := sandbox.NewWorld(t, sandbox.WorldOptions{})
	w.CreateTable("Orders")
	src, err := source.Open(t.Context(), source.Options{
		Region: "us-east-1", Endpoint: w.Endpoint(), DateTrust: -1,
	}, zap.NewNop(),
		prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	orders := &catalog.Table{Table: config.Table{Source: "Orders"}}
	cfg := config.Default()
	s := &Pair{cfg: &cfg, source: src, Tables: []*catalog.Table{orders}, budgets: []*source.Budget{nil}}
	before, err := s.Ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(time.Hour)
	now, err := s.Ask(t.Context())
	if err != nil || now.Time().Sub(before.Time()) < 59*time.Minute { // a Date has whole seconds
		t.Errorf("an hour later it is %s, after %s: %v", now.Time(), before.Time(), err)
	}
	// Rule 13: if that time is wrong, the owner's beats are an hour old, and that they come shows
	// that it lives.
	state := &checkpoint.State{Owner: "a", Date: before}
	if err := s.CheckOwner("Orders", state); err == nil {
		t.Error("an owner is alive whose log has nothing newer than an hour")
	}
	state.Date += 5000
	if err := s.CheckOwner("Orders", state); err != nil {
		t.Errorf("a beat came: %v", err)
	}
	if err := s.CheckOwner("Others", state); err == nil {
		t.Error("the beat of one table is taken for another's")
	}
	// Where nothing else stands in the way, a table without an owner has no proof, and one is
	// awaited unless the table is paused.
	unowned := logState(int64(now), int64(now), 7, 7)
	if err := s.obstacle("Orders", unowned); err == nil || !s.Away("Orders", unowned) {
		t.Errorf("a table without an owner: %v", err)
	}
	if unowned.Paused = true; s.Away("Orders", unowned) {
		t.Error("an owner of a paused table is awaited")
	}
}

// TestAskedTimeIsCertain, Rule 13: the first Date is 100 s behind, and is not what a proof reaches
// to.
func TestAskedTimeIsCertain(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	w := sandbox.NewWorld(t, sandbox.WorldOptions{})
	w.CreateTable("Orders")
	src, err := source.Open(t.Context(), source.Options{
		Region: "us-east-1", Endpoint: w.Endpoint(), DateTrust: time.Second,
	}, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	w.Faults.Skew(-100 * time.Second)
	if _, err := src.Table(t.Context(), "Orders"); err != nil {
		t.Fatal(err)
	}
	w.Faults.Skew(0)
	cfg, asked := config.Default(), w.Clock.Now()
	orders := &catalog.Table{Table: config.Table{Source: "Orders"}}
	s := &Pair{cfg: &cfg, source: src, Tables: []*catalog.Table{orders}, budgets: []*source.Budget{nil}}
	if now, err := s.Ask(t.Context()); err != nil || asked.Sub(now.Time()) > 2*time.Second { // a Date has whole seconds
		t.Errorf("asked at %s, and it is %s: %v", asked, now.Time(), err)
	}
}

// TestDaemonThatStaysAwayIsNotAwaitedForEver: a read of the logs of a daemon that stays away ends
// with an error, and its hint names the command to start.
func TestDaemonThatStaysAwayIsNotAwaitedForEver(t *testing.T) {
	cfg := config.Default()
	cfg.Queue.Dir = t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		clients := clients.ForCommand(&cfg, func(zapcore.Level) *zap.Logger { return zap.NewNop() })
		s := &Pair{cfg: &cfg, clients: clients, Tables: []*catalog.Table{{Table: config.Table{Source: "Orders"}}}}
		began := time.Now()
		_, err := s.Entries(t.Context(), "Orders", queue.Walk{}, func(*queue.WalkedEntry) error { return nil })
		if _, hint := failure.Of(err); !strings.Contains(hint, "replicator run") {
			t.Errorf("%v", err)
		}
		if waited := time.Since(began); waited < protocol.Restart || waited > 2*protocol.Restart {
			t.Errorf("it waited for %s", waited)
		}
	})
}

// TestReadinessAwaitsALifeSign, Rule 13: by the clock of the service the owner has been silent for
// an hour, and it goes on beating.
func TestReadinessAwaitsALifeSign(t *testing.T) {
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
	cfg.Protocol.ClaimTTL = config.Duration(time.Minute)
	clients := clients.ForCommand(&cfg, func(zapcore.Level) *zap.Logger { return zap.NewNop() })
	t.Cleanup(func() { _ = clients.Close() })
	s := &Pair{cfg: &cfg, clients: clients, Tables: []*catalog.Table{{Table: config.Table{Source: "Orders"}}}}
	if s.source, err = clients.Source(t.Context()); err != nil {
		t.Fatal(err)
	}
	q, err := clients.Queue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	log, err := q.CreateLog(t.Context(), "Orders", "t0ken")
	if err != nil {
		t.Fatal(err)
	}
	owner, err := log.Claim(t.Context(), queue.ClaimOptions{Owner: "a"})
	if err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for date := change.MillisOf(w.Clock.Now().Add(-time.Hour)); ; date++ {
			if _, err := owner.Append(t.Context(), &checkpoint.Beat{Date: date}, nil); err != nil {
				t.Error(err)
			}
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	err = s.Ready(t.Context())
	close(stop)
	<-stopped
	if err == nil || strings.Contains(err.Error(), "no sign of life") || !strings.Contains(err.Error(), "not started") {
		t.Errorf("the owner lives, and its table is not started: %v", err)
	}
	for _, body := range []any{
		&checkpoint.Start{
			Stream: "arn:aws:dynamodb:us-east-1:000000000000:table/Orders/stream/2026-01-01T00:00:00.000",
			Date:   change.MillisOf(w.Clock.Now()), Shards: []checkpoint.ShardSeen{{ID: "shard-1"}},
			Backfill: checkpoint.FromScan,
		},
		&checkpoint.Marks{Sinks: map[string]checkpoint.Mark{checkpoint.SinkBigtable: {Seq: owner.State().Seq}}},
	} {
		if _, err := owner.Append(t.Context(), body, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "is being copied") {
		t.Errorf("what the copy brings is missing: %v", err)
	}
}
