package test

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox"
)

// relay is a TCP proxy that can be cut: then it refuses connections, as the address of a server that is down does. It
// can also be slow, stand still, and lose what one client sends.
type relay struct {
	t    *testing.T
	addr string
	to   string

	mu    sync.Mutex
	ln    net.Listener
	conns map[net.Conn]bool
	late  time.Duration // of each piece of data
	other chan struct{} // closed and replaced when late is another
	text  []byte        // of loseFrom; nil: nothing is lost
	lost  chan struct{} // closed when it was sent
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	r := &relay{t: t, to: to, conns: map[net.Conn]bool{}, other: make(chan struct{})}
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

// still is the delay of a relay that stands still: its connections are open, and nothing comes.
const still = time.Hour

// slow lets each piece of data come late, in both directions.
func (r *relay) slow(late time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late = late
	close(r.other)
	r.other = make(chan struct{})
}

// linger waits as long as a piece of data is late.
func (r *relay) linger() {
	for began := time.Now(); ; {
		r.mu.Lock()
		rest, other := r.late-time.Since(began), r.other
		r.mu.Unlock()
		if rest <= 0 {
			return
		}
		select {
		case <-time.After(rest):
		case <-other:
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
	for c := range r.conns {
		_ = c.Close()
	}
	clear(r.conns)
}

func (r *relay) serve(in net.Conn) {
	out, err := net.Dial("tcp", r.to)
	if err != nil {
		_ = in.Close()
		return
	}
	r.mu.Lock()
	if r.ln == nil {
		_, _ = in.Close(), out.Close()
	}
	r.conns[in], r.conns[out] = true, true
	r.mu.Unlock()
	go func() {
		r.forward(out, in, true)
		_ = out.Close()
	}()
	r.forward(in, out, false)
	_ = in.Close()
}

// loseFrom loses everything that a client sends from a small message on that contains a text. Other connections are not
// touched. The returned channel is closed when the message was sent.
func (r *relay) loseFrom(text string) (lost <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text, r.lost = []byte(text), make(chan struct{})
	return r.lost
}

// forward copies what one side sends until the connection ends, or until loseFrom's text is in what a client sends; the
// rest is lost.
func (r *relay) forward(out io.Writer, in io.Reader, client bool) {
	p := make([]byte, 64<<10)
	for {
		n, err := in.Read(p)
		r.linger()
		r.mu.Lock()
		if client && r.text != nil && bytes.Contains(p[:n], r.text) {
			r.text = nil
			close(r.lost)
			out = io.Discard
		}
		r.mu.Unlock()
		if _, failed := out.Write(p[:n]); err != nil || failed != nil {
			return
		}
	}
}
