package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/tailrace-cdc/replicator/sandbox"
)

// group is several daemons of one pipeline on one NATS server, which is in this process, as all
// servers are.
type group struct {
	b       *testing.B
	load    load
	dir     string
	sb      *sandbox.Sandbox
	rnd     *rand.Rand // of the load's items
	nats    *server.Server
	members []*member
}

// member is a daemon of a group. Each has a front of its own, so that its calls are told from those
// of the others.
type member struct {
	name    string
	front   *front
	config  string // paths
	log     string
	metrics string
	cmd     *exec.Cmd // of its newest start
	begun   time.Time // when that was
}

// newGroup makes the tables of a load, of so many shards, with their items, and no member yet.
func newGroup(b *testing.B, l load, shards int) *group {
	b.Helper()
	g := &group{b: b, dir: b.TempDir(), nats: serveNATS(b, b.TempDir())}
	l.options += ", backfill: none"
	if l.queue == "" {
		l.queue = fmt.Sprintf("{url: %q, replicas: 1}", g.nats.ClientURL())
	}
	g.load = l
	var err error
	g.sb, err = sandbox.Start(sandbox.Options{NoLedger: true, NoNATS: true, NoS3: true, Seed: 1, Partitions: shards})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = g.sb.Close() })
	g.rnd = l.prepare(b, g.sb)
	config := g.load.configure(b, g.dir, g.sb.Endpoint(), freeAddress(b))
	run(b, g.dir, environment(g.sb.Bigtable.Addr()), binary(b, g.dir), "schema", "--apply", "-c", config)
	return g
}

// serveNATS starts a server that syncs every write.
func serveNATS(b *testing.B, dir string) *server.Server {
	b.Helper()
	srv, err := server.NewServer(&server.Options{
		ServerName: "bench", Host: "127.0.0.1", Port: server.RANDOM_PORT, MaxPayload: 8 << 20, JetStream: true,
		StoreDir: dir, SyncAlways: true, NoSigs: true, NoLog: true, JetStreamMaxStore: 16 << 40,
	})
	if err != nil {
		b.Fatal(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(time.Minute) {
		b.Fatal("nats is not ready")
	}
	b.Cleanup(func() {
		srv.Shutdown()
		srv.WaitForShutdown()
	})
	return srv
}

// start starts one more member. Its null server needs a latency for each write.
func (g *group) start(latency time.Duration) *member {
	g.b.Helper()
	front := serveFront(g.b, g.sb.Bigtable.Addr(), true, network{latency: latency})
	m := &member{name: fmt.Sprint("r", len(g.members)), front: front}
	m.front.forgets = true
	dir := filepath.Join(g.dir, m.name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		g.b.Fatal(err)
	}
	admin := freeAddress(g.b)
	m.metrics, m.log = "http://"+admin+"/metrics", filepath.Join(dir, "log")
	m.config = g.load.configure(g.b, dir, g.sb.Endpoint(), admin)
	g.members = append(g.members, m)
	g.b.Cleanup(func() {
		if m.cmd.ProcessState == nil { // the benchmark has failed
			_ = m.cmd.Process.Kill()
			_ = m.cmd.Wait()
		}
	})
	g.launch(m)
	return m
}

// launch starts a member for the first time or again.
func (g *group) launch(m *member) {
	g.b.Helper()
	stderr, err := os.OpenFile(m.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		g.b.Fatal(err)
	}
	defer func() { _ = stderr.Close() }()
	m.front.first.Store(nil)
	m.cmd = exec.Command(binary(g.b, g.dir), "run", "-c", m.config)
	m.cmd.Env, m.cmd.Stderr = environment(m.front.address), stderr
	m.begun = time.Now()
	if err := m.cmd.Start(); err != nil {
		g.b.Fatal(err)
	}
}

// share waits until the members carry so many tables each.
func (g *group) share(tables ...int) {
	g.b.Helper()
	g.until("the tables are shared", 5*time.Minute, func() bool {
		var n []int
		for _, m := range g.members {
			owned, _ := sample(m.metrics, "tailrace_table_owner{")
			n = append(n, int(owned))
		}
		return slices.Equal(n, tables)
	})
}

// until waits until it is good.
func (g *group) until(what string, atMost time.Duration, good func() bool) {
	g.b.Helper()
	deadline := time.After(atMost)
	for !good() {
		select {
		case <-deadline:
			g.b.Fatalf("waited in vain until %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// calls is how many writes the null servers have had.
func (g *group) calls() (n int) {
	for _, m := range g.members {
		n += int(m.front.calls.Load())
	}
	return n
}

// processorTime is what all members have used so far.
func (g *group) processorTime() (sum time.Duration) {
	for _, m := range g.members {
		sum += processorTime(g.b, m.cmd.Process.Pid)
	}
	return sum
}

// stop ends all members, the last one first.
func (g *group) stop() {
	g.b.Helper()
	for _, m := range slices.Backward(g.members) {
		if m.cmd.ProcessState == nil {
			stop(g.b, m.cmd)
		}
	}
}

// logged returns when a member first logged a message that begins so, about a table.
func (m *member) logged(b *testing.B, message, table string) time.Time {
	b.Helper()
	f, err := os.Open(m.log)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var line struct{ TS, Msg, Table string }
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.Table != table || !strings.HasPrefix(line.Msg, message) {
			continue
		}
		at, err := time.Parse("2006-01-02T15:04:05.000Z0700", line.TS)
		if err != nil {
			b.Fatal(err)
		}
		return at
	}
	b.Fatalf("%s has not logged %q of %s", m.name, message, table)
	return time.Time{}
}
