package front

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/shadow/exchange"
)

func discard(*exchange.Exchange) {}

// TestContinue is a client that waits before it sends its body. The front answers it, and keeps the
// answer of the service back.
func TestContinue(t *testing.T) {
	const proceed = "HTTP/1.1 100 Continue\r\n\r\n"
	waiting := func(text string) (head, body string) {
		text = strings.Replace(text, "Content-Length", "Expect: 100-Continue\r\nContent-Length", 1)
		head, body, _ = strings.Cut(text, "\r\n\r\n")
		return head + "\r\n\r\n", body
	}
	service := serve(t, func(c *net.TCPConn) {
		for {
			got := readRequest(c)
			if got == "" {
				return
			}
			_, _ = io.WriteString(c, proceed+answer(got))
		}
	})
	for _, mode := range []Mode{Keep, Sign, Mirror} {
		f := start(t, service, Options{Mode: mode, Sign: unsigned})
		c := dial(t, f)
		for range 2 {
			text := passed("{}")
			if mode == Keep {
				text = request("{}")
			}
			head, body := waiting(text)
			send(t, c, head)
			expect(t, c, proceed)
			send(t, c, body)
			switch head, body = waiting(passed("{}")); mode {
			case Keep:
				expect(t, c, answer(head+body))
			case Sign:
				line, fields, _ := strings.Cut(head, "\r\n")
				fields = strings.Replace(fields, "Host: "+serviceName+"\r\n", "", 1)
				fields = strings.TrimSuffix(fields, "\r\n") + "Host: " + strings.TrimPrefix(service, "http://") + "\r\n\r\n"
				expect(t, c, answer(line+"\r\n"+fields+body))
			case Mirror:
				expect(t, c, "HTTP/1.1 204 No Content\r\n\r\n")
			}
		}
	}
}

// TestRequestsSentAhead sends requests without waiting for answers. The service gets each after its
// answer to the one before.
func TestRequestsSentAhead(t *testing.T) {
	early := make(chan string, 10)
	f := start(t, serve(t, func(c *net.TCPConn) {
		buf := make([]byte, 1<<16)
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			if count := strings.Count(string(buf[:n]), "POST"); count > 1 {
				early <- string(buf[:n])
			}
			_, _ = io.WriteString(c, answer(string(buf[:n])))
		}
	}), Options{})
	c := dial(t, f)
	send(t, c, request("1")+request("2")+request("3"))
	for _, body := range []string{"1", "2", "3"} {
		expect(t, c, answer(passed(body)))
	}
	send(t, c, request("4")+"nonsense\r\n\r\n")
	expect(t, c, answer(passed("4")))
	if got, _ := io.ReadAll(c); parseReply(t, string(got)).status != 400 {
		t.Errorf("got %s", short(got))
	}
	if len(early) > 0 {
		t.Errorf("the service got %q at once", <-early)
	}
}

// TestHalfClosedConnection is a client that ends its direction behind the request.
func TestHalfClosedConnection(t *testing.T) {
	closed := make(chan bool)
	f := start(t, serve(t, func(c *net.TCPConn) {
		got := readRequest(c)
		<-closed
		_, _ = io.WriteString(c, answer(got))
		_, _ = io.Copy(io.Discard, c)
		closed <- true
	}), Options{})
	c := dial(t, f)
	send(t, c, request("{}"))
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	closed <- true
	expect(t, c, answer(passed("{}")))
	expectEnd(t, c)
	<-closed // the service's connection has ended too
}

// TestClientThatResets: the service's connection ends with that of the client, within the request
// and before the answer.
func TestClientThatResets(t *testing.T) {
	for _, text := range []string{request("{}")[:50], request("{}")[:len(request("{}"))-1], request("{}")} {
		got, ended := make(chan bool, 1), make(chan bool, 1)
		f := start(t, serve(t, func(c *net.TCPConn) {
			if readSome(c) {
				got <- true
			}
			_, _ = io.Copy(io.Discard, c)
			ended <- true
		}), Options{})
		c := dial(t, f)
		send(t, c, text)
		if !strings.Contains(text, "\r\n\r\n") {
			_ = c.SetLinger(0)
			_ = c.Close()
			continue // nothing has come to the service
		}
		<-got
		_ = c.SetLinger(0)
		_ = c.Close()
		<-ended
	}
}

func readSome(c net.Conn) bool {
	_, err := c.Read(make([]byte, 10))
	return err == nil
}

// TestSlowClient sends and reads byte by byte.
func TestSlowClient(t *testing.T) {
	f := start(t, serve(t, echo), Options{Tap: discard, Share: 1})
	c := dial(t, f)
	for range 2 {
		for _, b := range []byte(request("{}")) {
			send(t, c, string(b))
		}
		for _, b := range []byte(answer(passed("{}"))) {
			expect(t, c, string(b))
		}
	}
}

// TestLargeBodies passes 16 MiB in both directions, in one piece and in chunks.
func TestLargeBodies(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	service := serve(t, func(c *net.TCPConn) {
		in := &reader{from: c}
		for {
			n, err := in.head()
			if err != nil {
				return
			}
			var h head
			if err := h.parseRequest(in.buffered()[:n]); err != nil {
				t.Errorf("the service got a head that is malformed: %v", err)
				return
			}
			in.consume(n)
			b, content := requestBody(&h), capture{}
			for b.state != ended {
				if len(in.buffered()) == 0 && in.fill() != nil {
					return
				}
				taken, err := b.take(in.buffered(), &content)
				if err != nil {
					t.Error(err)
					return
				}
				in.consume(taken)
			}
			if content.size != int64(len(large)) {
				t.Errorf("the service got %d bytes", content.size)
			}
			_, _ = io.WriteString(c, answer(string(large)))
		}
	})
	for _, mode := range []Mode{Keep, Sign} {
		f := start(t, service, Options{Mode: mode, Sign: unsigned, Answers: true, Tap: func(x *exchange.Exchange) {
			if x.Request.Bytes != nil || x.Answer.Bytes != nil || x.Request.Size != 16<<20 || x.Answer.Size != 16<<20 {
				t.Errorf("Tap got bodies of %d and %d bytes, of which there are %d and %d", x.Request.Size, x.Answer.Size,
					len(x.Request.Bytes), len(x.Answer.Bytes))
			}
		}, Share: 1})
		whole := map[Mode]string{Keep: request(string(large)), Sign: passed(string(large))}[mode]
		head, _, _ := strings.Cut(whole, "Content-Length")
		for _, text := range []string{
			whole, head + "Transfer-Encoding: chunked\r\n\r\n1000000\r\n" + string(large) + "\r\n0\r\n\r\n",
		} {
			c := dial(t, f)
			send(t, c, text)
			expect(t, c, answer(string(large)))
		}
	}
	f := start(t, service, Options{Mode: Sign, Sign: unsigned})
	c := dial(t, f)
	go func() { _, _ = io.WriteString(c, passed(strings.Repeat("x", maxSigned+1<<20))) }()
	if got, _ := io.ReadAll(c); parseReply(t, string(got)).status != 413 {
		t.Errorf("got %s", short(got))
	}
}

// TestEarlyAnswer: the service answers before it has the request, and ends the connection.
func TestEarlyAnswer(t *testing.T) {
	f := start(t, serve(t, func(c *net.TCPConn) {
		_, _ = io.ReadFull(c, make([]byte, 100))
		_, _ = io.WriteString(c, answer("too large"))
		_ = c.CloseWrite()
		_, _ = io.Copy(io.Discard, c)
	}), Options{})
	c := dial(t, f)
	send(t, c, strings.Replace(request(""), "Content-Length: 0", "Content-Length: 1000000", 1))
	expect(t, c, answer("too large"))
	expectEnd(t, c)
}

// TestIdleConnectionEndsWithTheService: a client must not send a request to a connection that the
// service has ended.
func TestIdleConnectionEndsWithTheService(t *testing.T) {
	end := make(chan bool)
	f := start(t, serve(t, func(c *net.TCPConn) {
		got := readRequest(c)
		_, _ = io.WriteString(c, answer(got))
		<-end
	}), Options{})
	c := dial(t, f)
	send(t, c, request("{}"))
	expect(t, c, answer(passed("{}")))
	close(end)
	expectEnd(t, c)
}

func TestMirror(t *testing.T) {
	got := make(chan *exchange.Exchange, 10)
	f := start(t, "", Options{Mode: Mirror, Services: []Service{}, Share: 1, Tap: func(x *exchange.Exchange) { got <- x }})
	c := dial(t, f)
	for _, text := range []string{request("{}"), passed("{}")} {
		send(t, c, text)
		expect(t, c, "HTTP/1.1 204 No Content\r\n\r\n")
		x := <-got
		if string(x.Request.Bytes) != "{}" || x.Target != "DynamoDB_20120810.GetItem" || x.Status != 0 || x.Begin.IsZero() ||
			x.Answer.Bytes != nil {
			t.Errorf("Tap got %+v", x)
		}
	}
}
