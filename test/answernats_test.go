package test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// natsShim stands between the replicator and a NATS server, and gives wrong answers to the calls of
// JetStream: requests to its API, and messages that are to be stored. It reads the protocol's
// frames. Source: https://docs.nats.io/reference/reference-protocols/nats-protocol
type natsShim struct {
	shim *shim
	addr string
	to   string

	mu    sync.Mutex
	conns map[net.Conn]bool
}

func newNATSShim(t *testing.T, s *shim, to string) *natsShim {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &natsShim{shim: s, addr: ln.Addr().String(), to: strings.TrimPrefix(to, "nats://"), conns: map[net.Conn]bool{}}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			served.Go(func() { n.serve(in) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		n.mu.Lock()
		for c := range n.conns {
			_ = c.Close()
		}
		n.mu.Unlock()
		served.Wait()
	})
	return n
}

// natsConn is one connection of a client.
type natsConn struct {
	n       *natsShim
	in, out net.Conn

	mu    sync.Mutex
	subs  map[string]string // subject of each subscription, by sid
	holds map[string]wrong  // by the subject of a reply: what becomes of it
}

func (n *natsShim) serve(in net.Conn) {
	out, err := net.Dial("tcp", n.to)
	if err != nil {
		_ = in.Close()
		return
	}
	n.mu.Lock()
	n.conns[in], n.conns[out] = true, true
	n.mu.Unlock()
	c := &natsConn{n: n, in: in, out: out, subs: map[string]string{}, holds: map[string]wrong{}}
	var both sync.WaitGroup
	both.Go(func() { c.requests(); c.close() })
	both.Go(func() { c.replies(); c.close() })
	both.Wait()
	n.mu.Lock()
	delete(n.conns, in)
	delete(n.conns, out)
	n.mu.Unlock()
}

func (c *natsConn) close() { _, _ = c.in.Close(), c.out.Close() }

// natsFrame is one frame of the protocol: its line, and its payload with the line end, if it has
// one.
type natsFrame struct {
	line string
	body []byte
}

func (f *natsFrame) fields() []string { return strings.Fields(f.line) }

// readFrame reads one frame. PUB, HPUB, MSG and HMSG have a payload, whose length is their last
// field.
func readFrame(r *bufio.Reader) (f natsFrame, err error) {
	if f.line, err = r.ReadString('\n'); err != nil {
		return f, err
	}
	fields := f.fields()
	if len(fields) == 0 || !slices.Contains([]string{"PUB", "HPUB", "MSG", "HMSG"}, strings.ToUpper(fields[0])) {
		return f, nil
	}
	n, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		return f, err
	}
	f.body = make([]byte, n+2)
	_, err = io.ReadFull(r, f.body)
	return f, err
}

// requests forwards what the client sends.
func (c *natsConn) requests() {
	r := bufio.NewReaderSize(c.in, 1<<16)
	for {
		f, err := readFrame(r)
		if err != nil {
			return
		}
		forward := true
		switch fields := f.fields(); {
		case f.body != nil && len(fields) >= 4 && (fields[0] == "PUB" || len(fields) == 5): // it has a subject for the reply
			forward = c.request(fields[1], fields[2])
		case len(fields) >= 3 && fields[0] == "SUB":
			c.mu.Lock()
			c.subs[fields[len(fields)-1]] = fields[1]
			c.mu.Unlock()
		}
		if !forward {
			continue
		}
		if _, err := c.out.Write(append([]byte(f.line), f.body...)); err != nil {
			return
		}
	}
}

// request decides what becomes of a request: it reports whether the server gets it.
func (c *natsConn) request(subject, reply string) bool {
	name := natsCall(subject)
	if name == "" {
		return true
	}
	switch give := c.n.shim.ask(asked{"nats", name}); give {
	case "":
		return true
	case sayLate, sayLost, sayCut:
		c.mu.Lock()
		c.holds[reply] = give
		c.mu.Unlock()
		return true
	case sayNothing:
		return false
	default:
		c.answer(subject, reply, give)
		return false
	}
}

// answer answers a request in the server's place.
func (c *natsConn) answer(subject, reply string, give wrong) {
	sid := ""
	c.mu.Lock()
	for id, pattern := range c.subs {
		if pattern == reply || strings.HasSuffix(pattern, "*") && strings.HasPrefix(reply, strings.TrimSuffix(pattern, "*")) {
			sid = id
		}
	}
	c.mu.Unlock()
	apiError := func(code, number int, text string) string {
		return fmt.Sprintf(`{"error":{"code":%d,"err_code":%d,"description":%q}}`, code, number, text)
	}
	body := map[wrong]string{
		sayUnknown: apiError(404, 10059, "stream not found"),
		sayBusy:    apiError(503, 10008, "JetStream system temporarily unavailable"),
		sayFault:   apiError(500, 10049, "a wrong answer"),
		sayHTML:    "<html><body>Sign in to the guest network</body></html>",
		sayObject:  "{}",
		sayEmpty:   "",
	}[give]
	frame := fmt.Sprintf("MSG %s %s %d\r\n%s\r\n", reply, sid, len(body), body)
	if give == sayDenied {
		frame = fmt.Sprintf("-ERR 'Permissions Violation for Publish to %q'\r\n", subject)
	}
	c.toClient([]byte(frame))
}

func (c *natsConn) toClient(frame []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.in.Write(frame) // a client that has gone needs no answer
}

// replies forwards what the server sends.
func (c *natsConn) replies() {
	r := bufio.NewReaderSize(c.out, 1<<16)
	var laters sync.WaitGroup
	defer laters.Wait()
	for {
		f, err := readFrame(r)
		if err != nil {
			return
		}
		all := append([]byte(f.line), f.body...)
		var held wrong
		if f.body != nil {
			c.mu.Lock()
			held = c.holds[f.fields()[1]]
			delete(c.holds, f.fields()[1])
			c.mu.Unlock()
		}
		switch held {
		case sayLost:
		case sayCut:
			c.toClient(all[:len(all)/2])
			return
		case sayLate:
			laters.Go(func() {
				<-time.After(lateness)
				c.toClient(all)
			})
		default:
			c.toClient(all)
		}
	}
}

// natsNames are the parts of a subject that differ between tables and consumers, and what stands
// for them.
var natsNames = []struct {
	from *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`^\$JS\.API\.`), ""},
	{regexp.MustCompile(`^(CONSUMER\..*)\.[^.]+$`), "$1"},
	{regexp.MustCompile(`\.TAILRACE_shop_[A-Za-z0-9]+_[0-9a-f]{8}_`), " of "},
	{regexp.MustCompile(`\.TAILRACE_shop_[A-Za-z0-9]+_[0-9a-f]{8}`), " of log"},
	{regexp.MustCompile(`^tailrace\.[A-Z0-9]+\.[^.]+\.archive\.`), "store in archive: "},
	{regexp.MustCompile(`^tailrace\.[A-Z0-9]+\.[^.]+\.`), "store in log: "},
	{regexp.MustCompile(`^(store in log: request)\.[0-9a-f]+`), "$1"},
	{regexp.MustCompile(`^(store in log: letter)\.[0-9a-f]+`), "$1"},
}

// natsCall names a request by its subject; "" for one that JetStream does not answer.
func natsCall(subject string) string {
	if !strings.HasPrefix(subject, "$JS.") && !strings.HasPrefix(subject, "tailrace.") {
		return ""
	}
	for _, n := range natsNames {
		subject = n.from.ReplaceAllString(subject, n.to)
	}
	return subject
}
