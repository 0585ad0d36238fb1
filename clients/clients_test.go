package clients

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

func nop(zapcore.Level) *zap.Logger { return zap.NewNop() }

// TestCommandNeedsAQueueThatExists: a command that only reads must not create a store.
func TestCommandNeedsAQueueThatExists(t *testing.T) {
	cfg := config.Default()
	cfg.Pipeline, cfg.Queue.Dir = "shop", filepath.Join(t.TempDir(), "none")
	clients := ForCommand(&cfg, nop)
	_, err := clients.Queue(t.Context())
	if class, hint := failure.Of(err); class != failure.Unready || hint == "" {
		t.Errorf("%v", err)
	}
	_, err = QueueURL(&cfg)
	if class, _ := failure.Of(err); class != failure.Unready {
		t.Errorf("address of a daemon that does not run: %v", err)
	}
	if err := clients.Close(); err != nil {
		t.Error(err)
	}
}

// TestClientsWithoutAnything: no archive is nil, the clock is this machine's, and closing twice is
// harmless.
func TestClientsWithoutAnything(t *testing.T) {
	cfg := config.Default()
	clients := ForCommand(&cfg, nop)
	if arch, err := clients.Archive(t.Context()); arch != nil || err != nil {
		t.Errorf("%v %v", arch, err)
	}
	if d := time.Since(clients.Now()); d < 0 || d > time.Minute {
		t.Errorf("the clock is off by %v", d)
	}
	if err := errors.Join(clients.Close(), clients.Close()); err != nil {
		t.Error(err)
	}
}

// TestBigtableThatNeverAnswersIsSaid: a command takes the end of its own patience for what it is,
// and does not go on to wait for ever.
func TestBigtableThatNeverAnswersIsSaid(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel takes connections, and nobody answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	cfg := config.Default()
	cfg.Pipeline, cfg.Bigtable.Endpoint = "shop", l.Addr().String()
	cfg.Bigtable.Project, cfg.Bigtable.Instance = "p", "i"
	clients := ForCommand(&cfg, nop)
	defer clients.Close()
	_, err = clients.Bigtable(t.Context())
	if class, hint := failure.Of(err); class != failure.Unready || !strings.Contains(hint, "reachable") ||
		!strings.Contains(err.Error(), "no answer for 5s") {
		t.Errorf("%v: %v, %q", err, class, hint)
	}
}

// TestWaitingForTheDaemonLeavesItTheStore: a command that began without a daemon has the store
// open. When it waits for a daemon, that daemon gets the store.
func TestWaitingForTheDaemonLeavesItTheStore(t *testing.T) {
	cfg := config.Default()
	cfg.Pipeline, cfg.Queue.Dir = "shop", t.TempDir()
	command := ForCommand(&cfg, nop)
	defer command.Close()
	if q, err := command.Queue(t.Context()); err != nil || !q.Embedded() {
		t.Fatalf("a command without a daemon: %v", err)
	}
	if address, err := QueueURL(&cfg); err == nil {
		t.Errorf("the address of a command is taken for the daemon's: %s", address)
	}
	daemon := ForDaemon(&cfg, zap.NewNop(), prometheus.NewRegistry(), &pipeline.Services{})
	started := make(chan error, 1)
	go func() {
		_, err := daemon.Queue(t.Context())
		started <- err
	}()
	running, err := command.RunningQueue(t.Context())
	if err != nil || running.Embedded() {
		t.Errorf("its store is still open: %v", err)
	}
	if err := errors.Join(command.Close(), <-started, daemon.Close()); err != nil {
		t.Error(err)
	}
}

// TestIdlePollOfATableIsItsOwn, in what is read and in how late it may be; others have the common
// one.
func TestIdlePollOfATableIsItsOwn(t *testing.T) {
	cfg := config.Default()
	cfg.Tables = []config.Table{{Source: "A"}, {Source: "B", IdlePoll: config.Duration(time.Minute)}}
	o := sourceOptions(&cfg)
	for i, want := range []time.Duration{time.Second, time.Minute} {
		table := &cfg.Tables[i]
		if got := o.IdlePolls[table.Source]; got != want {
			t.Errorf("%s is polled every %v, want %v", table.Source, got, want)
		}
		if got, dollars := IdleCost(&cfg, table, 44), []float64{23.13, 0.39}[i]; got.Dollars != dollars ||
			got.Poll != want.Seconds() {
			t.Errorf("%s: %+v, want %v dollars", table.Source, got, dollars)
		}
		if got := LateAfter(&cfg, table); got != status.DefaultLate+2*want {
			t.Errorf("%s is late after %v", table.Source, got)
		}
	}
	// Heartbeats keep shards awake, and only those that are written.
	beaten := config.Table{Source: "C", Heartbeat: config.Heartbeat{Every: config.Duration(10 * time.Second)}}
	if got := IdleCost(&cfg, &beaten, 1).Dollars; got != 0.53 {
		t.Errorf("without heartbeats %v dollars", got)
	}
	beaten.Heartbeat.Write = true
	if got := IdleCost(&cfg, &beaten, 1).Dollars; got != 2.63 {
		t.Errorf("with heartbeats %v dollars", got)
	}
}

func TestNoReplayWindowKeepsNothing(t *testing.T) {
	cfg := config.Default()
	cfg.Queue.ReplayWindow = 0
	if got := QueueOptions(&cfg).ReplayWindow; got >= 0 {
		t.Errorf("%v: zero would be the package's default", got)
	}
	cfg.Queue.ReplayWindow = config.Duration(time.Hour)
	if got := QueueOptions(&cfg).ReplayWindow; got != time.Hour {
		t.Errorf("%v", got)
	}
}

// TestBucketIsInTheRegionOfTheTables, unless its URL says another: nothing else need be set.
func TestBucketIsInTheRegionOfTheTables(t *testing.T) {
	cfg := config.Default()
	cfg.Pipeline, cfg.Source.Region, cfg.Archive.URL = "shop", "eu-west-1", "s3://acme-archive/prefix"
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	clients := ForCommand(&cfg, nop)
	if _, err := clients.Archive(t.Context()); err != nil {
		t.Error(err)
	}
	if err := clients.Close(); err != nil {
		t.Error(err)
	}
}

// TestWaitForADaemonSaysHowLong: the error names the wait and what is missing, each once, and what
// to do.
func TestWaitForADaemonSaysHowLong(t *testing.T) {
	cfg := config.Default()
	cfg.Queue.Dir = t.TempDir()
	c := ForCommand(&cfg, nop)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.RunningQueue(ctx)
	if err == nil || strings.Count(err.Error(), "find running daemon") != 1 ||
		!strings.HasPrefix(err.Error(), "waited 0s for a replicator that runs: ") {
		t.Errorf("%v", err)
	}
	if class, hint := failure.Of(err); class != failure.Unready || !strings.Contains(hint, "replicator run") {
		t.Errorf("class %v, next: %s", class, hint)
	}
}
