package queue

import (
	"cmp"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/conn"
)

// reservePorts returns ports that are free, for servers that must find them free again after a
// restart. They lie below those that the system gives to clients and to whoever listens on port 0.
func reservePorts(t testing.TB, n int) (ports []int) {
	t.Helper()
	for range 1000 {
		port := 12_000 + rand.IntN(20_000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil || slices.Contains(ports, port) {
			continue
		}
		l.Close()
		if ports = append(ports, port); len(ports) == n {
			return ports
		}
	}
	t.Fatal("no free ports")
	return nil
}

// externalServer is a NATS server outside of the queue, which tests stop, start and restore to
// older copies.
type externalServer struct {
	t    testing.TB
	dir  string
	port int
	edit func(*server.Options)
	srv  *server.Server

	payload int32 // 0: conn.MaxPayload
}

func startExternal(t testing.TB) *externalServer {
	t.Helper()
	return startExternalWith(t, nil)
}

func startExternalWith(t testing.TB, edit func(*server.Options)) *externalServer {
	t.Helper()
	o := &externalServer{t: t, dir: t.TempDir(), port: reservePorts(t, 1)[0], edit: edit}
	o.start()
	t.Cleanup(o.stop)
	return o
}

func (o *externalServer) start() {
	o.t.Helper()
	opts := &server.Options{
		Host: "127.0.0.1", Port: o.port, JetStream: true, StoreDir: o.dir, SyncAlways: true, NoSigs: true, NoLog: true,
		JetStreamMaxStore: 4 << 30, MaxPayload: cmp.Or(o.payload, conn.MaxPayload),
	}
	if o.edit != nil {
		o.edit(opts)
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		o.t.Fatal(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(time.Minute) {
		o.t.Fatal("server is not ready")
	}
	o.srv = srv
}

func (o *externalServer) stop() {
	if o.srv != nil {
		o.srv.Shutdown()
		o.srv.WaitForShutdown()
		o.srv = nil
	}
}

func (o *externalServer) addr() string { return o.srv.Addr().String() }

// copyStore copies the store of the stopped server.
func (o *externalServer) copyStore() (kept string) {
	o.t.Helper()
	kept = filepath.Join(o.t.TempDir(), "copy")
	if err := os.CopyFS(kept, os.DirFS(o.dir)); err != nil {
		o.t.Fatal(err)
	}
	return kept
}

func (o *externalServer) restore(kept string) {
	o.t.Helper()
	if err := os.RemoveAll(o.dir); err != nil {
		o.t.Fatal(err)
	}
	if err := os.CopyFS(o.dir, os.DirFS(kept)); err != nil {
		o.t.Fatal(err)
	}
}

// withShortAckTimeout calls f with a short AckTimeout, for requests that are not answered.
func withShortAckTimeout(q *Queue, f func()) {
	usual := q.conn.AckTimeout
	q.conn.AckTimeout = 300 * time.Millisecond
	f()
	q.conn.AckTimeout = usual
}

func connectTo(t testing.TB, addr string, edit func(*Options)) *Queue {
	t.Helper()
	o := Options{
		Pipeline: "shop", URL: "nats://" + addr, MaxBytes: 256 << 20, LettersMaxBytes: 16 << 20, ReplayWindow: -1,
		AckTimeout: 10 * time.Second, IdleCheck: 50 * time.Millisecond,
	}
	if edit != nil {
		edit(&o)
	}
	q, err := Open(testContext(t), o, logger(t), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	return q
}

// restart stops the server, does something while it is away, starts it again and waits until the
// queue is connected.
func (o *externalServer) restart(q *Queue, away func()) {
	o.t.Helper()
	before := q.conn.Connections.Load()
	o.stop()
	away()
	o.start()
	awaitReconnected(o.t, q, before)
}

// awaitReconnected waits until the queue has another connection than before.
func awaitReconnected(t testing.TB, q *Queue, before uint64) {
	t.Helper()
	ctx := testContext(t)
	for q.conn.Connections.Load() == before || !q.conn.NC.IsConnected() {
		if err := failure.Pause(ctx, 5*time.Millisecond); err != nil {
			t.Fatal("not reconnected: ", err)
		}
	}
}

// proxy stands between a queue and its server and can withhold the server's answers.
type proxy struct {
	net.Listener
	to string

	mu    sync.Mutex
	deaf  bool          // discard the server's answers
	held  chan struct{} // closed when the server's answers may pass again; nil = they may
	conns []net.Conn
}

func startProxy(t testing.TB, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, to: to}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() { l.Close(); p.cut(); wg.Wait() })
	return p
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	srv, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer srv.Close()
	p.mu.Lock()
	p.conns = append(p.conns, client, srv)
	p.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = io.Copy(srv, client); srv.Close() })
	buf := make([]byte, 64<<10)
	for {
		n, err := srv.Read(buf)
		if err != nil {
			break
		}
		p.mu.Lock()
		deaf, held := p.deaf, p.held
		p.mu.Unlock()
		if held != nil {
			<-held
		}
		if deaf {
			continue
		}
		if _, err := client.Write(buf[:n]); err != nil {
			break
		}
	}
	client.Close()
	wg.Wait()
}

// setDeaf withholds the server's answers, or lets them through again; what was withheld is lost,
// and so is the connection it was lost from.
func (p *proxy) setDeaf(deaf bool) {
	p.mu.Lock()
	p.deaf = deaf
	p.mu.Unlock()
	if !deaf {
		p.cut()
	}
}

// hold delays the server's answers until releaseHeld.
func (p *proxy) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = make(chan struct{})
}

func (p *proxy) releaseHeld() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.held)
	p.held = nil
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}
