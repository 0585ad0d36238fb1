package archiving

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/queue"
	sandbox "github.com/tailrace-cdc/replicator/sandbox/nats"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
)

// way is the way to a server, which keeps its address when the server is another one.
type way struct {
	listener net.Listener
	muteAt   atomic.Pointer[string] // once this has passed on its way there, nothing comes back
	mute     atomic.Bool

	mu     sync.Mutex // covers what follows
	to     string
	conns  []net.Conn
	closed bool
}

// openWay opens a way to a server; nothing passes before lead.
func openWay(t *testing.T) *way {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &way{listener: l}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.carry(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.cut()
		all.Wait()
	})
	return p
}

// carry joins a client with the server until one of them ends.
func (p *way) carry(client net.Conn) {
	p.mu.Lock()
	server, err := net.Dial("tcp", p.to)
	if err == nil && p.closed {
		err = server.Close()
	} else if err == nil {
		p.conns = append(p.conns, client, server)
	}
	ended := p.closed
	p.mu.Unlock()
	if err != nil || ended {
		_ = client.Close()
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(&watched{Conn: server, p: p}, client)
		_ = server.Close()
	})
	both.Go(func() {
		_, _ = io.Copy(deaf{client, p}, server)
		_ = client.Close()
	})
	both.Wait()
}

// watched writes to a server, and looks for the text behind which nothing is to come back.
type watched struct {
	net.Conn
	p    *way
	last []byte
}

func (w *watched) Write(b []byte) (int, error) {
	if at := w.p.muteAt.Load(); at != nil {
		if w.last = append(w.last, b...); bytes.Contains(w.last, []byte(*at)) && w.p.muteAt.CompareAndSwap(at, nil) {
			w.p.mute.Store(true)
		}
		w.last = w.last[max(0, len(w.last)-len(*at)):]
	}
	return w.Conn.Write(b)
}

// deaf writes to a client, unless nothing is to come back.
type deaf struct {
	net.Conn
	p *way
}

func (d deaf) Write(b []byte) (int, error) {
	if d.p.mute.Load() {
		return len(b), nil
	}
	return d.Conn.Write(b)
}

// lead leads to a server from now on.
func (p *way) lead(to string) {
	p.mu.Lock()
	p.to = to
	p.mu.Unlock()
	p.cut()
}

// cut ends all connections.
func (p *way) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

// startNATS starts a server, and leads there.
func startNATS(t *testing.T, dir string, p *way) *sandbox.Server {
	t.Helper()
	s, err := sandbox.Open(sandbox.Options{Addr: "127.0.0.1:0", Dir: dir})
	must(t, err)
	p.lead(strings.TrimPrefix(s.URL(), "nats://"))
	return s
}

// queueBy opens a queue on a way.
func queueBy(t *testing.T, p *way) *queue.Queue {
	t.Helper()
	o := queueOptions("")
	o.URL, o.AckTimeout = "nats://"+p.listener.Addr().String(), 3*time.Second
	q, err := queue.Open(t.Context(), o, zap.NewNop(), prometheus.NewRegistry())
	must(t, err)
	t.Cleanup(func() { _ = q.Close() })
	return q
}

// TestAcknowledgementOfAnAppendIsLost: what was stored is not stored again.
func TestAcknowledgementOfAnAppendIsLost(t *testing.T) {
	w, owner, looker := newWorld(t), openWay(t), openWay(t)
	s := startNATS(t, t.TempDir(), owner)
	t.Cleanup(func() { _ = s.Close() })
	looker.lead(strings.TrimPrefix(s.URL(), "nats://"))
	w.use(queueBy(t, looker), "Sessions")
	own, err := queueBy(t, owner).Log(t.Context(), "Sessions")
	must(t, err)
	w.edit = func(o *Options) { o.Open = own.Archive }
	r := w.start()
	r.store(w.deleted(0, 5))
	lost, hour := w.deleted(1, 3), (hour0 + 1).String()
	owner.muteAt.Store(&hour) // the entry with its events is the first that names it
	stored := make(chan struct{})
	go func() {
		defer close(stored)
		r.store(lost)
	}()
	w.until("the append has arrived", func(s *ledger.State) bool { return s.Counts[hour0+1].Deleted == 3 })
	owner.cut()
	if !owner.mute.Swap(false) {
		t.Error("its acknowledgement was not lost")
	}
	w.await("the events are stored", isOver(stored))
	w.proven(r.closed(1))
}

// TestServerOfTheStreamRestarts under an owner, which goes on.
func TestServerOfTheStreamRestarts(t *testing.T) {
	w, p, dir := newWorld(t), openWay(t), t.TempDir()
	s := startNATS(t, dir, p)
	w.use(queueBy(t, p), "Sessions")
	r := w.start()
	r.store(w.deleted(0, 5))
	w.until("it is stored", func(s *ledger.State) bool { return len(s.Objects) > 0 })
	more := w.deleted(1, 40)
	stored := make(chan struct{})
	go func() {
		defer close(stored)
		r.store(more)
	}()
	must(t, s.Close())
	s = startNATS(t, dir, p)
	t.Cleanup(func() { _ = s.Close() })
	w.await("the events are stored", isOver(stored))
	w.proven(r.closed(1))
}
