package daemontest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// World is a sandbox with a configuration. Its log is in the sandbox's NATS, so commands and
// replicators come and go.
type World struct {
	*sandbox.World
	Config *config.Config
	Adopt  bool // run --adopt
	// Options changes the options of the replicators that begin from now on; nil: nothing.
	Options func(*pipeline.Options)
	Window  string // queue.replay_window of the next Configure; default 0s: the log is trimmed as early as can be

	t      sandbox.TB
	dir    string
	daemon *Daemon // the newest one; nil: none was started
}

// New starts a sandbox that ends with the test.
func New(t sandbox.TB, seed uint64) *World {
	t.Helper()
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		if err := os.Setenv(name, "sandbox"); err != nil {
			t.Fatalf("%v", err)
		}
	}
	dir, err := os.MkdirTemp("", "daemontest-")
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w := &World{World: sandbox.NewWorld(t, sandbox.WorldOptions{Options: sandbox.Options{Seed: seed}}), t: t, dir: dir}
	w.Watch.State = w.state
	w.Watch.Err = w.ended
	return w
}

// Write writes a file beside the configuration, such as a mapping.
func (w *World) Write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
		w.t.Fatalf("%v", err)
	}
}

// Configure sets the configuration from now on. tables are the entries of its key `tables`, each in
// YAML on one line.
func (w *World) Configure(tables ...string) {
	w.t.Helper()
	text := fmt.Sprintf(`pipeline: shop
source: {region: us-east-1, endpoint: %q, idle_poll: 50ms, start: trim_horizon}
bigtable: {project: local, instance: local, endpoint: %q}
queue: {url: %q, replicas: 1, max_bytes: 64MiB, replay_window: %s}
scratch: %q
testing: {date_trust: 1ns, patience: 300ms, claim_ttl: 2s, beat: 100ms, listing: 500ms, describe: 200ms, `+
		`mark_interval: 50ms, trim: 100ms, `+
		`retry_halted: 300ms}
tables:
- %s
`, w.Endpoint(), w.Bigtable.Addr(), w.NATS.URL(), cmp.Or(w.Window, "0s"),
		filepath.Join(w.dir, "scratch"), strings.Join(tables, "\n- "))
	cfg, problems := config.Parse([]byte(text), filepath.Join(w.dir, "tailrace.yaml"))
	if problem.AnyError(problems) {
		w.t.Fatalf("configuration: %s", problem.Join(problems))
	}
	w.Config = cfg
}

// Prepare creates source tables, and the target tables of the configuration.
func (w *World) Prepare(sources ...string) {
	w.t.Helper()
	for _, name := range sources {
		w.CreateTable(name)
	}
	c := w.Clients()
	if _, err := w.Sink(c).Ensure(w.t.Context(), w.Catalog(c).BigtableTables()); err != nil {
		w.t.Fatalf("%v", err)
	}
}

// Clients returns the clients of one command, until the test ends.
func (w *World) Clients() *clients.Clients {
	c := clients.ForCommand(w.Config, func(zapcore.Level) *zap.Logger { return zap.NewNop() })
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

// Catalog compiles the configured tables.
func (w *World) Catalog(c *clients.Clients) *catalog.Catalog {
	w.t.Helper()
	src, err := c.Source(w.t.Context())
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	tables, err := catalog.Load(w.t.Context(), w.Config, src)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	return tables
}

// Sink returns the client of Bigtable.
func (w *World) Sink(c *clients.Clients) *bigtable.Client {
	w.t.Helper()
	sink, err := c.Bigtable(w.t.Context())
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	return sink
}

// Pair opens both sides of the target of a table, as a command does.
func (w *World) Pair(table string) (*clients.Clients, *pair.Pair) {
	w.t.Helper()
	c := w.Clients()
	s, err := pair.Open(w.t.Context(), w.Config, c, w.Catalog(c), table)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	return c, s
}

// Log folds the log of a table.
func (w *World) Log(table string) *control.Log {
	w.t.Helper()
	q, err := w.Clients().Queue(w.t.Context())
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	l, err := control.Open(w.t.Context(), q, table)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	return l
}

// Control appends a control entry to the log of a table, beside its owner. On a busy machine an owner
// that beats every 100 ms wins the place of the entry again and again, so it is tried until it is there.
func (w *World) Control(table, what string, c checkpoint.Control) {
	w.t.Helper()
	for {
		_, err := w.Log(table).Append(w.t.Context(), what, c)
		if err == nil {
			return
		}
		if !errors.Is(err, context.DeadlineExceeded) || w.t.Context().Err() != nil {
			w.t.Fatalf("%v", err)
		}
	}
}

// Trim deletes everything from the log of a table that is applied, which a replicator does only
// where that is worth it. No replicator may run.
func (w *World) Trim(table string) {
	w.t.Helper()
	ctx, l := w.t.Context(), w.Log(table)
	owner, err := l.Log.Claim(ctx, queue.ClaimOptions{Owner: "trim", TTL: time.Second})
	if err != nil {
		w.t.Fatalf("trim: %v", err)
	}
	first, err := owner.Trim(ctx, math.MaxUint64)
	if err == nil {
		err = owner.Release(ctx)
	}
	if err != nil || first < l.State.Marks[checkpoint.SinkBigtable].Seq {
		w.t.Fatalf("trim: the log begins at %d: %v", first, err)
	}
}

// EditRow changes the row of a table in tailrace_state.
func (w *World) EditRow(table string, edit func(*bigtable.State)) {
	w.t.Helper()
	sink := w.Sink(w.Clients())
	for {
		row, err := sink.LoadState(w.t.Context(), w.Config.Pipeline, table)
		if err != nil {
			w.t.Fatalf("%v", err)
		}
		next := *row
		edit(&next)
		if sink.CompareAndSet(w.t.Context(), row, &next) == nil {
			return
		}
	}
}

// While runs f on another goroutine, and moves the sandbox's time on until it returns: that
// everything is known to be applied takes some seconds of that time. It goes no faster than the
// replicator follows.
func (w *World) While(what string, f func()) {
	w.t.Helper()
	over := make(chan struct{})
	go func() {
		defer close(over)
		f()
	}()
	w.Until(what, func() bool {
		select {
		case <-over:
			return true
		default:
			w.hasten()
			return false
		}
	})
}

// hasten moves the sandbox's time on a little, unless the replicator does not follow: commands take
// an owner for gone that gives no sign of life for three times the claim's time, which is six
// seconds here.
func (w *World) hasten() {
	if d := w.daemon; d != nil {
		behind := func(t pipeline.TableStatus) bool { return t.SourceLag > 4 }
		if slices.ContainsFunc(d.pipeline.Status().Tables, behind) {
			return
		}
	}
	w.Clock.Advance(100 * time.Millisecond)
}
