package admin

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// limits bound what a client may hold of the server. Without them a client that reads or writes
// nothing keeps its connection, and a file descriptor of the daemon, until the daemon ends.
type limits struct {
	header time.Duration // from the first byte of a request to the end of its header
	read   time.Duration // the same to the end of its body
	write  time.Duration // from the end of the header to the end of the reply
	idle   time.Duration // between two requests; longer than the scrape interval of Prometheus

	connections int
}

// defaultLimits are the limits of a running replicator. A browser opens six connections at most, for
// all of its pages; Prometheus and a kubelet have one each.
var defaultLimits = limits{
	header: 5 * time.Second, read: 10 * time.Second, write: 30 * time.Second, idle: 90 * time.Second,
	connections: 256,
}

// connections counts the open connections of a server. Above the limit the one that has waited
// longest for a request is closed, so that held connections do not keep probes out; if requests are
// in progress on all of them, the new connection is closed.
type connections struct {
	limit int

	mu      sync.Mutex // covers what follows
	open    map[net.Conn]bool
	waiting []net.Conn // without a request in progress, the longest first
}

func newConnections(limit int) *connections {
	return &connections{limit: limit, open: map[net.Conn]bool{}}
}

// note follows the state of a connection; for http.Server.ConnState.
func (c *connections) note(conn net.Conn, state http.ConnState) {
	if excess := c.move(conn, state); excess != nil {
		_ = excess.Close() // the server then reports it as closed
	}
}

// move notes the state and returns the connection that must be closed, if there is one.
func (c *connections) move(conn net.Conn, state http.ConnState) (excess net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, w := range c.waiting {
		if w == conn {
			c.waiting = append(c.waiting[:i:i], c.waiting[i+1:]...)
			break
		}
	}
	switch state {
	case http.StateNew:
		if len(c.open) >= c.limit {
			excess = conn
			if len(c.waiting) > 0 {
				excess, c.waiting = c.waiting[0], c.waiting[1:]
				delete(c.open, excess)
			}
		}
		if excess != conn {
			c.open[conn] = true
			c.waiting = append(c.waiting, conn)
		}
	case http.StateIdle:
		if c.open[conn] {
			c.waiting = append(c.waiting, conn)
		}
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	case http.StateActive:
	}
	return excess
}
