package queue

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/queue/embedded"
)

// The test binary is also the child process that tests kill: with this variable it opens the queue
// in that directory, goes on appending to the log, and prints how many changes are acknowledged.
const childDir = "TAILRACE_QUEUE_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := appendForever(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if store := os.Getenv(childServer); store != "" {
		if err := serveForever(store, os.Getenv(childPort)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m)
}

// With these variables the test binary is a NATS server with that store, on that port.
const (
	childServer = "TAILRACE_QUEUE_TEST_SERVER"
	childPort   = "TAILRACE_QUEUE_TEST_PORT"
)

func serveForever(store, port string) error {
	n, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	srv, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: n, JetStream: true, StoreDir: store, SyncAlways: true, NoSigs: true, NoLog: true,
		JetStreamMaxStore: 4 << 30, MaxPayload: conn.MaxPayload,
	})
	if err != nil {
		return err
	}
	srv.Start()
	srv.WaitForShutdown()
	return nil
}

// process runs this test binary with an addition to its environment.
func process(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(testContext(t), exe)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	return cmd
}

// SIGKILL of the server's process, in the middle of appends: what was acknowledged is stored, once,
// and the writer goes on after Recover.
func TestKilledServerLosesNoAcknowledgedAppend(t *testing.T) {
	long(t, "6 s")
	ctx := testContext(t)
	free := startExternal(t)
	free.stop()
	addr, store := fmt.Sprintf("127.0.0.1:%d", free.port), t.TempDir()
	start := func() *exec.Cmd {
		cmd := process(t, childServer+"="+store, childPort+"="+strconv.Itoa(free.port))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	kill := func(cmd *exec.Cmd) error {
		err := cmd.Process.Kill()
		_ = cmd.Wait()
		return err
	}
	srv := start()
	defer func() { _ = kill(srv) }()
	var w *Writer
	for w == nil {
		q, err := Open(ctx, Options{Pipeline: "shop", URL: "nats://" + addr, AckTimeout: time.Second, MaxBytes: 1 << 30},
			zap.NewNop(), prometheus.NewRegistry())
		if err != nil {
			if err := failure.Pause(ctx, 20*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			continue
		}
		defer q.Close()
		w = owned(t, q)
	}
	acknowledged := uint64(0)
	recovered := func() {
		t.Helper()
		if err := w.Recover(ctx); err != nil {
			t.Fatal(err)
		}
		if got := w.State().Changes; got < acknowledged || got > acknowledged+20 {
			t.Fatalf("%d changes stored, %d acknowledged", got, acknowledged)
		}
	}
	for round := range 4 {
		killed, killing := make(chan error, 1), false
		for n := 0; ; n++ {
			if n >= 10+7*round && !killing {
				killing = true
				go func() { killed <- kill(srv) }() // while appends are under way
			}
			frame := mustPack(t, conn.MaxPayload, pageOf(t, w.State(), 20, 2000))[0]
			_, err := w.Append(ctx, frame.Body, frame.Data)
			if err == nil {
				acknowledged = w.State().Changes
				continue
			}
			if !errors.Is(err, ErrOutcomeUnknown) {
				t.Fatal(err)
			}
			if killing {
				break
			}
			recovered() // on a slow machine an acknowledgement may be late without a kill
		}
		if err := <-killed; err != nil {
			t.Fatal(err)
		}
		srv = start()
		recovered()
		acknowledged = w.State().Changes
	}
	if d := cmp.Diff(sequences(1, int(w.State().Changes)), readSeqs(t, w.Log(), w.State().Seq)); d != "" {
		t.Fatal(d)
	}
}

func appendForever(dir string) error {
	ctx := context.Background()
	q, err := Open(ctx, Options{Pipeline: "shop", Dir: dir, MaxBytes: 256 << 20}, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		return err
	}
	l, err := q.CreateLog(ctx, "Orders", "t0ken")
	if err != nil {
		return err
	}
	w, err := l.Claim(ctx, ClaimOptions{Owner: "child " + strconv.Itoa(os.Getpid()), TTL: 100 * time.Millisecond})
	if err != nil {
		return err
	}
	t := &testing.T{}
	if len(w.State().Streams) == 0 {
		if _, err := w.Append(ctx, &checkpoint.Start{Stream: stream, Date: second,
			Shards: []checkpoint.ShardSeen{{ID: "shard-1"}}}, nil); err != nil {
			return err
		}
	}
	for {
		frame := mustPack(t, conn.MaxPayload, pageOf(t, w.State(), 20, 2000))[0]
		if _, err := w.Append(ctx, frame.Body, frame.Data); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(os.Stdout, w.State().Changes)
	}
}

// appendAndKill starts the child, waits for some acknowledged appends and kills it in the middle of
// the next. It returns how many changes were acknowledged.
func appendAndKill(t *testing.T, dir string, appends int) (acknowledged uint64) {
	t.Helper()
	cmd := process(t, childDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		if acknowledged, err = strconv.ParseUint(lines.Text(), 10, 64); err != nil {
			t.Fatal(err)
		}
		if n == appends {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || acknowledged == 0 {
		t.Fatalf("child ended by itself after %d changes: %v", acknowledged, err)
	}
	return acknowledged
}

// SIGKILL at any moment: every acknowledged append is stored, nothing is stored twice, and the log
// goes on.
func TestKilledProcessLosesNoAcknowledgedAppend(t *testing.T) {
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(7, 7))
	for range 4 {
		acknowledged := appendAndKill(t, dir, 5+rng.IntN(100))
		q := embeddedIn(t, dir, nil)
		l, err := q.Log(testContext(t), "Orders")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Check(testContext(t), l.Created()); err != nil {
			t.Fatal(err)
		}
		s := fold(t, l)
		if s.Changes < acknowledged || s.Foreign > 0 {
			t.Fatalf("%d changes stored, %d acknowledged, %d foreign", s.Changes, acknowledged, s.Foreign)
		}
		if d := cmp.Diff(sequences(1, int(s.Changes)), readSeqs(t, l, s.Seq)); d != "" {
			t.Fatal(d)
		}
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// The server is restarted under the writer, several times.
func TestWriterGoesOnAfterItsServerRestarted(t *testing.T) {
	ctx := testContext(t)
	srv := startExternal(t)
	w := owned(t, connectTo(t, srv.addr(), nil))
	for round := range 3 {
		appendPage(t, w, 4, 100)
		srv.restart(w.Log().q, func() {})
		if _, err := w.Append(ctx, &checkpoint.Beat{Date: second}, nil); !errors.Is(err, ErrOutcomeUnknown) {
			t.Fatalf("round %d: append after a restart: %v, want an unknown outcome", round, err)
		}
		before := w.State().Seq
		if err := w.Recover(ctx); err != nil || w.State().Seq != before {
			t.Fatalf("round %d: an entry was sent to a server that had restarted: %v", round, err)
		}
	}
	if d := cmp.Diff(sequences(1, 12), readSeqs(t, w.Log(), w.State().Seq)); d != "" {
		t.Fatal(d)
	}
}

func TestErrLockedNamesTheProcessThatHasTheStore(t *testing.T) {
	q := embeddedQueue(t)
	_, err := Open(testContext(t), Options{Pipeline: "shop", Dir: q.opts.Dir}, logger(t), prometheus.NewRegistry())
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Fatalf("second open: %v", err)
	}
}

func TestCommandsWorkBesideTheDaemon(t *testing.T) {
	ctx := testContext(t)
	q := embeddedQueue(t)
	w := owned(t, q)
	appendPage(t, w, 5, 10)
	file := filepath.Join(q.opts.Dir, "client.json")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("client file: %v, %v", info.Mode(), err)
	}
	beside, err := OpenClient(ctx, Options{Pipeline: "shop", Dir: q.opts.Dir}, logger(t))
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Close()
	if tables, err := beside.Tables(ctx); err != nil || !cmp.Equal(tables, []string{"Orders"}) {
		t.Fatalf("tables %v: %v", tables, err)
	}
	l, err := beside.Log(ctx, "Orders")
	if err != nil {
		t.Fatal(err)
	}
	sameState(t, fold(t, l), w.State())
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("client file after the end: %v", err)
	}
}

func TestCommandsWorkWithoutADaemon(t *testing.T) {
	ctx := testContext(t)
	q := embeddedQueue(t)
	w := owned(t, q)
	appendPage(t, w, 5, 10)
	want := w.State()
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	left := `{"url":"nats://127.0.0.1:1","token":"x","pid":1}` // by a process that was killed
	if err := os.WriteFile(filepath.Join(q.opts.Dir, "client.json"), []byte(left), 0o600); err != nil {
		t.Fatal(err)
	}
	alone, err := OpenClient(ctx, Options{Pipeline: "shop", Dir: q.opts.Dir}, logger(t))
	if err != nil {
		t.Fatal(err)
	}
	defer alone.Close()
	l, err := alone.Log(ctx, "Orders")
	if err != nil {
		t.Fatal(err)
	}
	sameState(t, fold(t, l), want)
}

// A command that starts while the daemon waits for another command's store does not use that store,
// which is about to be closed: it waits for the daemon's address.
func TestCommandWaitsForADaemonThatIsAboutToStart(t *testing.T) {
	ctx, dir := testContext(t), t.TempDir()
	o := Options{Pipeline: "shop", Dir: dir}
	first, err := OpenClient(ctx, o, logger(t))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	daemon := make(chan *Queue, 1)
	go func() {
		q, err := Open(ctx, o, logger(t), prometheus.NewRegistry())
		if err != nil {
			t.Error(err)
		}
		daemon <- q
	}()
	for embedded.CheckNoDaemon(dir) == nil {
		if err := failure.Pause(ctx, time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	if q, err := connectToDaemon(ctx, o, logger(t)); !errors.Is(err, ErrLocked) {
		t.Errorf("connected to another command's store: %v, %v", q, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := OpenClient(ctx, o, logger(t))
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if second.Embedded() {
		t.Error("a command took the store from the daemon")
	}
	if q := <-daemon; q != nil {
		defer q.Close()
	}
}

func TestTokenIsNeededToGetIn(t *testing.T) {
	q := embeddedQueue(t)
	c, ok := q.Client()
	if !ok {
		t.Fatal("no client")
	}
	for _, url := range []string{c.URL, strings.Replace(c.URL, "nats://", "nats://wrong@", 1)} {
		o := Options{Pipeline: "shop", URL: url}
		if other, err := Open(testContext(t), o, logger(t), prometheus.NewRegistry()); err == nil {
			other.Close()
			t.Fatalf("let in by %s", url)
		}
	}
}

// When the store's directory is gone, opening returns ErrNoLog and never makes a new log silently.
func TestEmptyVolumeHasNoLog(t *testing.T) {
	q := embeddedQueue(t)
	owned(t, q)
	dir := q.opts.Dir
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "jetstream")); err != nil {
		t.Fatal(err)
	}
	if _, err := embeddedIn(t, dir, nil).Log(testContext(t), "Orders"); !errors.Is(err, ErrNoLog) {
		t.Fatalf("open: %v, want no log", err)
	}
}

// Rule 11.
func TestNewerLogIsRefused(t *testing.T) {
	ctx := testContext(t)
	q := embeddedQueue(t)
	l := createLog(t, q)
	config := l.stream.CachedInfo().Config
	config.Metadata[conn.MetaFormat] = strconv.Itoa(conn.FormatNumber + 1)
	if _, err := q.conn.JS.UpdateStream(ctx, config); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Log(ctx, "Orders"); !errors.Is(err, conn.ErrNewer) {
		t.Fatalf("open: %v, want newer", err)
	}
}

func TestTablesWithSimilarNamesHaveSeparateLogs(t *testing.T) {
	q := embeddedQueue(t)
	names := map[string]string{}
	for _, table := range []string{"a.b", "a-b", "a_b", "a b", strings.Repeat("x", 60), strings.Repeat("x", 61)} {
		name := streamName(q.opts.Pipeline, table)
		if other, ok := names[name]; ok {
			t.Fatalf("%q and %q are both %s", table, other, name)
		}
		names[name] = table
		if _, err := q.CreateLog(testContext(t), table, "t0ken"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestForeignTokenIsNotTakenOver(t *testing.T) {
	q := embeddedQueue(t)
	createLog(t, q)
	createLog(t, q) // may be repeated
	if _, err := q.CreateLog(testContext(t), "Orders", "other"); err == nil {
		t.Fatal("took over a log with another token")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]Options{
		"no pipeline": {Dir: "x"}, "neither": {Pipeline: "p"}, "both": {Pipeline: "p", Dir: "x", URL: "y"},
		"replicas embedded": {Pipeline: "p", Dir: "x", Replicas: 3},
	} {
		if _, err := Open(testContext(t), o, zap.NewNop(), nil); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
