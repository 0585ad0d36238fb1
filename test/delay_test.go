package test

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
)

// delayProxy is a TCP proxy that can hold what its clients send and forward it long after they are
// dead.
type delayProxy struct {
	t    *testing.T
	addr string
	next string

	mu    sync.Mutex
	conns []*delayedConn
	tasks sync.WaitGroup
}

type delayedConn struct {
	mu      sync.Mutex
	up      net.Conn
	hold    bool
	pending bytes.Buffer
}

func newDelayProxy(t *testing.T, next string) *delayProxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &delayProxy{t: t, addr: ln.Addr().String(), next: next}
	p.tasks.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			p.tasks.Go(func() { p.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		p.release()
		p.mu.Lock()
		for _, c := range p.conns {
			_ = c.up.Close()
		}
		p.mu.Unlock()
		p.tasks.Wait()
	})
	return p
}

func (p *delayProxy) serve(down net.Conn) {
	defer func() { _ = down.Close() }()
	up, err := net.Dial("tcp", p.next)
	if err != nil {
		return
	}
	c := &delayedConn{up: up}
	p.mu.Lock()
	p.conns = append(p.conns, c)
	p.mu.Unlock()
	p.tasks.Go(func() {
		_, _ = io.Copy(down, up) // replies to a dead client are discarded
		_, _ = io.Copy(io.Discard, up)
	})
	_, _ = io.Copy(c, down)
}

// Write forwards bytes to the server, or holds them. The connection to the server outlives the
// client.
func (c *delayedConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold {
		return c.pending.Write(b)
	}
	return c.up.Write(b)
}

// hold holds what the present clients send from now on. Later clients are served.
func (p *delayProxy) hold() {
	p.each(func(c *delayedConn) { c.hold = true })
}

// isHolding reports whether the held bytes contain text.
func (p *delayProxy) isHolding(text string) (found bool) {
	p.each(func(c *delayedConn) { found = found || bytes.Contains(c.pending.Bytes(), []byte(text)) })
	return found
}

// release forwards the held bytes.
func (p *delayProxy) release() {
	p.each(func(c *delayedConn) {
		c.hold = false
		_, _ = c.pending.WriteTo(c.up)
	})
}

func (p *delayProxy) each(f func(*delayedConn)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.mu.Lock()
		f(c)
		c.mu.Unlock()
	}
}
