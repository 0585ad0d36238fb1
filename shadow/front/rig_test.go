package front

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// serviceName is the name of the service in requests.
const serviceName = "dynamodb.us-east-1.amazonaws.com"

// serve starts a service that gives each connection to handle, and returns its endpoint.
func serve(t *testing.T, handle func(*net.TCPConn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			context.AfterFunc(ctx, func() { _ = c.Close() })
			all.Go(func() {
				defer c.Close()
				handle(c.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() {
		stop()
		_ = l.Close()
		all.Wait()
	})
	return "http://" + l.Addr().String()
}

// running is a front that runs.
type running struct {
	*Front
	end  context.CancelFunc
	done chan error
}

// start runs a front before a service until the test ends. The test goes on when the front has
// ended.
func start(t *testing.T, endpoint string, o Options) *running {
	t.Helper()
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Services == nil {
		o.Services = []Service{{Host: serviceName, Endpoint: endpoint}}
	}
	ctx, end := context.WithCancel(context.Background())
	f, err := New(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{Front: f, end: end, done: make(chan error, 1)}
	go func() { r.done <- f.Run(ctx) }()
	t.Cleanup(func() {
		end()
		if err := <-r.done; err != nil {
			t.Errorf("run front: %v", err)
		}
		c := f.Counts()
		if c.Passed != c.Taken+c.Unsampled+c.Dropped || c.Connections != 0 {
			t.Errorf("in the end %+v", c)
		}
		if f.queue.used != 0 {
			t.Errorf("%d bytes of the queue are in use in the end", f.queue.used)
		}
	})
	return r
}

// dial connects to a front.
func dial(t *testing.T, f *running) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", f.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// send writes a text.
func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// expect reads exactly the bytes of a text.
func expect(t *testing.T, c net.Conn, text string) {
	t.Helper()
	got := make([]byte, len(text))
	n, err := io.ReadFull(c, got)
	if string(got[:n]) != text {
		t.Fatalf("got %s (%v), want %s", short(got[:n]), err, short([]byte(text)))
	}
}

// expectEnd reads the end of a connection.
func expectEnd(t *testing.T, c net.Conn) {
	t.Helper()
	if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 {
		t.Fatalf("got %s (%v), want the end", short(rest), err)
	}
}

func short(b []byte) string {
	if len(b) > 2000 {
		return fmt.Sprintf("%q… (%d bytes)", b[:2000], len(b))
	}
	return fmt.Sprintf("%q", b)
}

// request returns a request as a proxy gets it.
func request(body string) string {
	return fmt.Sprintf("POST http://%s/ HTTP/1.1\r\nHost: %s\r\nX-Amz-Target: DynamoDB_20120810.GetItem\r\n"+
		"Content-Length: %d\r\n\r\n%s", serviceName, serviceName, len(body), body)
}

// passed returns that request as the service gets it.
func passed(body string) string {
	return strings.Replace(request(body), "http://"+serviceName, "", 1)
}

// answer returns an answer.
func answer(body string) string {
	const head = "HTTP/1.1 200 OK\r\nServer: Server\r\nContent-Length: %d\r\nx-amz-crc32: 1\r\n\r\n"
	return fmt.Sprintf(head+"%s", len(body), body)
}

// readRequest reads one request with a Content-Length, and returns it as it came; "" at the end.
func readRequest(c io.Reader) string {
	var got bytes.Buffer
	one := make([]byte, 1)
	for !bytes.HasSuffix(got.Bytes(), endOfHead) {
		if _, err := io.ReadFull(c, one); err != nil {
			return got.String()
		}
		got.Write(one)
	}
	var h head
	if h.parseRequest(got.Bytes()) == nil && h.length > 0 {
		_, _ = io.CopyN(&got, c, h.length)
	}
	return got.String()
}

// echo answers each request with the request as it came.
func echo(c *net.TCPConn) {
	for {
		got := readRequest(c)
		if got == "" {
			return
		}
		if _, err := io.WriteString(c, answer(got)); err != nil && !errors.Is(err, net.ErrClosed) {
			return
		}
	}
}
