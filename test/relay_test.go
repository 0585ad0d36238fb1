package test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// relay is a TCP proxy that can be cut: then it refuses connections, as the address of a server that is down does.
type relay struct {
	t    *testing.T
	addr string
	to   string

	mu    sync.Mutex
	ln    net.Listener
	conns map[net.Conn]bool
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	r := &relay{t: t, addr: "127.0.0.1:0", to: to, conns: map[net.Conn]bool{}}
	r.restore()
	t.Cleanup(r.cut)
	return r
}

// restore listens again, at the same address as before.
func (r *relay) restore() {
	r.t.Helper()
	ln, err := net.Listen("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	r.ln, r.addr = ln, ln.Addr().String()
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
		_, _ = io.Copy(out, in)
		_ = out.Close()
	}()
	_, _ = io.Copy(in, out)
	_ = in.Close()
}
