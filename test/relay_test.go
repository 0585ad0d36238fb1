package test

import (
	"bytes"
	"io"
	"net"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox"
)

// relay is a TCP proxy that can be cut: then it refuses connections, as the address of a server
// that is down does. It can also be slow, stand still, and lose what one client sends.
type relay struct {
	t    *testing.T
	addr string
	to   string

	mu      sync.Mutex
	ln      net.Listener
	conns   map[*ends]bool
	late    map[string]time.Duration // of each piece of data, by the NATS server that has connected; "": of all
	changed chan struct{}            // closed and replaced when late is
	text    []byte                   // of loseFrom; nil: nothing is lost
	lost    chan struct{}            // closed when it was sent
}

// ends are the two connections that a relay joins.
type ends struct {
	in, out net.Conn
	server  string // the name of the NATS server that has connected; "" for a client, and before it has said so
}

func (e *ends) close() { _, _ = e.in.Close(), e.out.Close() }

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	r := &relay{t: t, to: to, conns: map[*ends]bool{}, late: map[string]time.Duration{}, changed: make(chan struct{})}
	for tries := 1; ; tries++ { // tests in another process may take the address just then
		r.addr = sandbox.FreeAddr(t)
		ln, err := net.Listen("tcp", r.addr)
		if err == nil {
			r.listen(ln)
			break
		} else if tries == 100 {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { r.cut(); r.slow(0) })
	return r
}

const (
	// still is the delay of a relay that stands still: its connections are open, and nothing comes.
	still = time.Hour
	// never is the delay of connections that are closed.
	never = 2 * still
)

// slow lets each piece of data come late, in both directions.
func (r *relay) slow(late time.Duration) { r.from("", late) }

// from is slow for the connections of one NATS server.
func (r *relay) from(server string, late time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late[server] = late
	close(r.changed)
	r.changed = make(chan struct{})
	for e := range r.conns {
		if r.delay(e) == never {
			e.close()
		}
	}
}

// delay returns how late a piece of data comes. The mutex is held.
func (r *relay) delay(e *ends) time.Duration { return max(r.late[""], r.late[e.server]) }

// linger waits as long as a piece of data is late, and returns whether it comes at all.
func (r *relay) linger(e *ends) bool {
	for began := time.Now(); ; {
		r.mu.Lock()
		delay, changed := r.delay(e), r.changed
		r.mu.Unlock()
		rest := delay - time.Since(began)
		if delay == never || rest <= 0 {
			return delay != never
		}
		select {
		case <-time.After(rest):
		case <-changed:
		}
	}
}

// restore listens again, at the same address as before.
func (r *relay) restore() {
	r.t.Helper()
	ln, err := net.Listen("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.listen(ln)
}

func (r *relay) listen(ln net.Listener) {
	r.mu.Lock()
	r.ln = ln
	r.mu.Unlock()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go r.serve(c)
		}
	}()
}

// cut refuses new connections and closes the open ones.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ln != nil {
		_ = r.ln.Close()
		r.ln = nil
	}
	for e := range r.conns {
		e.close()
	}
	clear(r.conns)
}

func (r *relay) serve(in net.Conn) {
	out, err := net.Dial("tcp", r.to)
	if err != nil {
		_ = in.Close()
		return
	}
	e := &ends{in: in, out: out}
	r.mu.Lock()
	if r.ln == nil {
		e.close()
	}
	r.conns[e] = true
	r.mu.Unlock()
	go func() {
		r.forward(e, out, in)
		_ = out.Close()
	}()
	r.forward(e, in, out)
	_ = in.Close()
	r.mu.Lock()
	delete(r.conns, e)
	r.mu.Unlock()
}

// loseFrom loses everything that a client sends from a small message on that contains a text. Other
// connections are not touched. The returned channel is closed when the message was sent.
func (r *relay) loseFrom(text string) (lost <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text, r.lost = []byte(text), make(chan struct{})
	return r.lost
}

// serverName is in the first things that a NATS server says where it connects to another one.
var serverName = regexp.MustCompile(`"server_name":"([^"]+)"`)

// forward copies what one side sends until the connection ends, or until loseFrom's text is in what
// a client sends; the rest is lost.
func (r *relay) forward(e *ends, to io.Writer, from net.Conn) {
	p := make([]byte, 64<<10)
	for pieces := 0; ; pieces++ {
		n, err := from.Read(p)
		if from == e.in {
			r.mu.Lock()
			if pieces < 4 && e.server == "" {
				if name := serverName.FindSubmatch(p[:n]); name != nil {
					e.server = string(name[1])
				}
			}
			if r.text != nil && bytes.Contains(p[:n], r.text) {
				r.text = nil
				close(r.lost)
				to = io.Discard
			}
			r.mu.Unlock()
		}
		if !r.linger(e) {
			e.close()
		}
		if _, failed := to.Write(p[:n]); err != nil || failed != nil {
			return
		}
	}
}
