package admin

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// serveLimited serves with limits and returns a function that dials it.
func serveLimited(t *testing.T, h Health, l limits) (dial func() net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, ln, Options{Health: h, Metrics: prometheus.NewRegistry()}, l)
	return func() net.Conn {
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
}

// ask sends a request for a path and returns its reply. A test may leave the body unread.
func ask(t *testing.T, conn net.Conn, path string) *http.Response {
	t.Helper()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
	reply, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("get %s: %v", path, err)
	}
	return reply
}

// untilClosed reads until the server closes the connection; a server that keeps it open keeps the
// test from ending.
func untilClosed(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// TestConnectionsThatDoNothingEnd: without a header, in the middle of a body, and between requests.
func TestConnectionsThatDoNothingEnd(t *testing.T) {
	short := limits{header: 50 * time.Millisecond, read: 100 * time.Millisecond, write: time.Minute,
		idle: 50 * time.Millisecond, connections: 8}
	long := defaultLimits
	for name, c := range map[string]struct {
		limit func(l *limits)
		sent  string
	}{
		"silent":           {func(l *limits) { l.header = short.header }, ""},
		"part of a header": {func(l *limits) { l.header = short.header }, "GET /livez HTTP/1.1\r\nHo"},
		"part of a body": {func(l *limits) { l.read = short.read },
			"GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx"},
		"between two requests": {func(l *limits) { l.idle = short.idle }, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			l := long
			c.limit(&l)
			conn := serveLimited(t, &health{}, l)()
			fmt.Fprint(conn, c.sent)
			untilClosed(conn)
		})
	}
	for name, limit := range map[string]time.Duration{"header": long.header, "read": long.read, "write": long.write,
		"idle": long.idle} {
		if limit <= 0 || limit > 2*time.Minute {
			t.Errorf("the limit %s of a running replicator is %s", name, limit)
		}
	}
}

// slowReady answers /readyz once it is released.
type slowReady struct {
	health
	asked   chan struct{}
	release chan struct{}
}

func newSlowReady() *slowReady {
	return &slowReady{asked: make(chan struct{}), release: make(chan struct{})}
}

func (h *slowReady) Ready() (bool, []string) {
	h.asked <- struct{}{}
	<-h.release
	return true, nil
}

// hold sends a request that is in progress until the test ends.
func (h *slowReady) hold(conn net.Conn) {
	fmt.Fprint(conn, "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
	<-h.asked
}

// TestHeldConnectionsKeepNoProbeOut holds as many connections as there may be: a further one closes
// the one that waits longest, and none on which a request is in progress.
func TestHeldConnectionsKeepNoProbeOut(t *testing.T) {
	l, h := defaultLimits, newSlowReady()
	defer close(h.release)
	l.connections = 3
	dial := serveLimited(t, h, l)
	busy := dial()
	h.hold(busy)
	first, second := dial(), dial()
	for _, conn := range []net.Conn{first, second} {
		reply := ask(t, conn, "/livez")
		_, _ = io.Copy(io.Discard, reply.Body)
	}
	if code := ask(t, dial(), "/livez").StatusCode; code != http.StatusOK {
		t.Errorf("a probe gets %d", code)
	}
	untilClosed(first)
	if code := ask(t, second, "/livez").StatusCode; code != http.StatusOK {
		t.Errorf("the second connection gets %d", code)
	}
	h.release <- struct{}{}
	if reply, err := http.ReadResponse(bufio.NewReader(busy), nil); err != nil || reply.StatusCode != http.StatusOK {
		t.Errorf("the request in progress got no answer: %v", err)
	}
}

// TestConnectionsAreBoundedUnderRequests: where requests are in progress on all connections, a new
// one is closed.
func TestConnectionsAreBoundedUnderRequests(t *testing.T) {
	l, h := defaultLimits, newSlowReady()
	defer close(h.release)
	l.connections = 2
	dial := serveLimited(t, h, l)
	for range 2 {
		h.hold(dial())
	}
	untilClosed(dial())
}

// TestStrangeNamesAreRefused asks by names that another site may own.
func TestStrangeNamesAreRefused(t *testing.T) {
	own := hostsOf([]string{"Metrics.Example.com", "tailrace.prod"})
	for host, want := range map[string]bool{
		"127.0.0.1:9464": true, "10.1.2.3:9464": true, "203.0.113.9": true, "[::1]:9464": true, "[fe80::1]": true,
		"localhost:9464": true, "replicator:9464": true, "": true,
		"tailrace.prod.svc.cluster.local:9464": true, "tailrace.prod.svc": true, "ip-10-0-0-1.ec2.internal": true,
		"metrics.example.com": true, "METRICS.example.com.:443": true, "tailrace.prod:9464": true,
		"attacker.example": false, "attacker.example:9464": false, "127.0.0.1.attacker.example": false,
		"metrics.example.com.attacker.example": false, "svc.attacker.example": false, "a.svc.attacker.example.": false,
		"10.1.2.3.nip.io": false, "a:b:c": false, "notinternal.example": false,
	} {
		if got := own.answersTo(host); got != want {
			t.Errorf("Host %q is accepted: %v", host, got)
		}
	}

	base := serve(t, &health{}, prometheus.NewRegistry())
	for _, path := range []string{
		"/status", "/metrics", "/", "/table/Orders", "/readyz", "/page/page.css",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "attacker.example"
		reply, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		reply.Body.Close()
		if reply.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("%s of another name: %d", path, reply.StatusCode)
		}
	}
}
