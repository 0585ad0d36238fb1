package front

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// conn is one connection of a client. The goroutine of serve reads requests. Answers come through a
// link: its goroutine writes them while an exchange is open; serve writes to the client only while
// none is. So there is one exchange at a time, also where a client sends several requests
// ahead.
type conn struct {
	f      *Front
	client net.Conn
	in     reader
	head   head
	out    []byte   // what goes to the service next
	tunnel *service // from CONNECT; nil: there was none
	asked  bool     // a request was sent whose answer was not awaited

	mu       sync.Mutex
	link     *link // nil: no request has come
	open     bool  // an exchange is open
	ended    bool  // the service has ended its connection: no request can follow
	draining bool  // the connection ends with its exchange
	reset    bool  // the connection ends with a reset, as that of the service did
}

func newConn(f *Front, client net.Conn) *conn {
	c := &conn{f: f, client: client, in: reader{from: client}}
	f.mu.Lock()
	f.conns[c] = struct{}{}
	draining := f.draining
	f.mu.Unlock()
	if draining {
		c.drain()
	}
	return c
}

// abandoned is how long the service may take over an answer after the client has ended its
// direction. The client may still read: one that has closed both looks the same until it is written
// to.
const abandoned = 2 * time.Minute

// past is a deadline that ends a read at once.
var past = time.Unix(1, 0)

// serve handles the requests of the connection until it ends. ctx has no end of its own.
func (c *conn) serve(ctx context.Context) {
	defer c.leave()
	defer c.end()
	for {
		err := c.in.wait()
		if c.asked && !c.await(err) || err != nil || !c.begin() || !c.handle(ctx) {
			return
		}
	}
}

// leave takes the connection out of the front's.
func (c *conn) leave() {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	delete(c.f.conns, c)
}

// await waits for the end of the open exchange. err comes from reading the client meanwhile. It
// reports whether a request may follow.
func (c *conn) await(err error) bool {
	c.asked = false
	switch {
	case err == nil, errors.Is(err, errTimeout):
	case errors.Is(err, io.EOF):
		_ = c.link.service.SetReadDeadline(time.Now().Add(abandoned)) // fails only if it is closed
	default: // the client has reset the connection
		_ = c.link.service.Close()
	}
	select {
	case <-c.link.answered:
		return true
	case <-c.link.gone:
	}
	select {
	case <-c.link.answered:
		return true
	default:
		return false
	}
}

// begin opens an exchange, of which the first bytes have come. It reports whether it may be.
func (c *conn) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	if c.open = true; c.draining {
		_ = c.client.SetReadDeadline(time.Time{}) // fails only if it is closed
	}
	return true
}

// finish closes an exchange. If the front drains, the next read of the client ends at once.
func (c *conn) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open = false; c.draining {
		_ = c.client.SetReadDeadline(past)
	}
}

// drain ends the connection with its exchange. If none is open, it waits for one a little: the
// client may just send a request, and behind an answer it does not.
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining = true; !c.open {
		_ = c.client.SetReadDeadline(time.Now().Add(lingering))
	}
}

// cut closes both connections. serve ends for that.
func (c *conn) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.client.Close()
	if c.link != nil {
		_ = c.link.service.Close()
	}
}

// lingering is how long a client has to read the end of the connection, and to send a last request
// while the front drains. If unread bytes of it were
// left, closing the connection would reset it, and the client could lose an answer.
const (
	lingering      = time.Second
	lingeringBytes = 32 << 20
)

// end closes both connections, as the service closed its own.
func (c *conn) end() {
	defer c.client.Close()
	c.dropLink()
	c.mu.Lock()
	reset := c.reset
	c.mu.Unlock()
	tcp, ok := c.client.(*net.TCPConn)
	switch {
	case !ok:
	case reset:
		_ = tcp.SetLinger(0)
	default:
		_ = tcp.CloseWrite()
		_ = tcp.SetReadDeadline(time.Now().Add(lingering))
		_, _ = io.Copy(io.Discard, io.LimitReader(struct{ io.Reader }{tcp}, lingeringBytes))
	}
}

// handle handles one request. It reports whether another may follow.
func (c *conn) handle(ctx context.Context) bool {
	h := &c.head
	n, err := c.in.head()
	if err == nil {
		err = h.parseRequest(c.in.buffered()[:n])
	}
	switch {
	case err == nil:
	case errors.Is(err, errMalformed):
		return c.refuse(malformed("the head of the request is malformed"))
	case errors.Is(err, errLongHead):
		return c.refuse(&refusal{status: http.StatusRequestHeaderFieldsTooLarge, code: codeTooLarge,
			hint: fmt.Sprintf("the head of the request is longer than %d bytes", maxHead)})
	default: // the client has ended the connection
		return false
	}
	to, target, bad := c.f.route(h, c.tunnel)
	switch {
	case bad != nil:
		bad.shown = string(h.method) == connect
		return c.refuse(bad)
	case to == nil:
		return c.mirror(n)
	case string(h.method) == connect:
		c.in.consume(n)
		c.tunnel = to
		defer c.finish()
		return c.reply("HTTP/1.1 200 Connection Established\r\n\r\n")
	}
	if err := c.openLink(ctx, to); err != nil {
		return c.unreached("connect to DynamoDB", err)
	}
	return c.pass(ctx, to, target, n)
}

// pass passes one request on. Its head has n bytes.
func (c *conn) pass(ctx context.Context, to *service, target []byte, n int) bool {
	h := &c.head
	s := c.f.queue.begin(h)
	b := requestBody(h)
	var ok bool
	if s.continued, ok = c.answerExpect(&b, n); ok && c.f.o.Mode == Sign {
		ok = c.appendSigned(ctx, s, &b, to, target, n)
	} else if ok {
		c.out = append(appendHead(c.out[:0], h, target, keepAll), endOfLine...)
		c.in.consume(n)
		ok = c.appendBody(s, &b) || c.refuse(badBody)
	}
	if !ok {
		s.request.stop()
		return false
	}
	c.asked = true
	c.link.ask(s)
	defer s.done()
	return c.send(s, &b)
}

// send sends what c.out holds, and the rest of the body as it comes.
func (c *conn) send(s *sample, b *body) bool {
	for {
		if _, err := c.link.service.Write(c.out); err != nil {
			// The service may have answered before it closed the connection.
			_ = c.link.service.SetReadDeadline(time.Now().Add(lingering))
			<-c.link.gone
			return false
		}
		if c.out = c.out[:0]; b.state == ended {
			if cap(c.out) > maxHead+firstBuffer {
				c.out = nil // it held a request to be signed
			}
			return true
		}
		if err := c.in.fill(); err != nil || !c.appendBody(s, b) {
			return false // the service gets as much of the request as has come
		}
	}
}

// appendBody moves what is buffered of a body to c.out. It reports whether the body is well-formed.
func (c *conn) appendBody(s *sample, b *body) bool {
	n, err := b.take(c.in.buffered(), &s.request)
	c.out = append(c.out, c.in.buffered()[:n]...)
	c.in.consume(n)
	return err == nil
}

// answerExpect answers a client that waits before it sends a body: the service would do so only
// after the front has connected to it, or not at all before a signature. n is the length of the
// head. It reports whether it answered, and whether the client may go on.
func (c *conn) answerExpect(b *body, n int) (answered, ok bool) {
	if b.state == ended || len(c.in.buffered()) > n || !strings.EqualFold(string(c.head.get("expect")), "100-continue") {
		return false, true
	}
	return true, c.reply("HTTP/1.1 100 Continue\r\n\r\n")
}

// maxSigned is the longest body that the front signs, with its chunks. DynamoDB accepts 16 MiB.
const maxSigned = 17 << 20

// appendSigned reads a request to its end, because the signature covers the body, and moves it to
// c.out with the front's signature. If it cannot, it answers the request, and returns false.
func (c *conn) appendSigned(ctx context.Context, s *sample, b *body, to *service, target []byte, n int) bool {
	h := &c.head
	plain := requestOf(h, to, target)
	if plain == nil {
		return c.refuse(malformed("the target of the request is malformed"))
	}
	c.out = appendHead(c.out[:0], h, target, keepUnsigned) // the head is not valid behind the next fill
	c.in.consume(n)
	headLength := len(c.out)
	s.request.hash = sha256.New()
	for {
		if !c.appendBody(s, b) {
			return c.refuse(badBody)
		}
		if b.state == ended {
			break
		}
		if len(c.out)-headLength > maxSigned {
			return c.refuse(&refusal{status: http.StatusRequestEntityTooLarge, code: codeTooLarge,
				hint: "the request is larger than 16 MiB"})
		}
		if c.in.fill() != nil {
			return false
		}
	}
	if err := c.f.o.Sign(ctx, plain, hex.EncodeToString(s.request.hash.Sum(nil))); err != nil {
		return c.unreached("sign the request", err)
	}
	s.request.hash = nil
	c.insertSignature(plain, to, headLength)
	return true
}

// insertSignature inserts the signature of a request behind its head.
func (c *conn) insertSignature(signed *http.Request, to *service, at int) {
	var b strings.Builder
	b.WriteString("Host: " + to.name + "\r\n")
	for _, name := range []string{"Authorization", "X-Amz-Date", "X-Amz-Security-Token"} {
		if value := signed.Header.Get(name); value != "" {
			b.WriteString(name + ": " + value + "\r\n")
		}
	}
	b.WriteString("\r\n")
	length := len(c.out)
	c.out = append(c.out, b.String()...)
	copy(c.out[at+b.Len():], c.out[at:length])
	copy(c.out[at:], b.String())
}

// requestOf returns what a signature covers of a request beside its body; nil: its target is no
// path.
func requestOf(h *head, to *service, target []byte) *http.Request {
	u, err := url.ParseRequestURI(string(target))
	if err != nil {
		return nil
	}
	r := &http.Request{Method: string(h.method), URL: u, Host: to.name, Header: http.Header{}}
	u.Host, u.Scheme = to.name, "https"
	for i := range h.fields {
		f := &h.fields[i]
		if keepUnsigned(f) && (f.begins("x-amz-") || f.is("content-type")) {
			r.Header.Add(string(f.name), string(f.value))
		}
	}
	return r
}

// mirror takes a request with a head of n bytes, and answers it without the service.
func (c *conn) mirror(n int) bool {
	s := c.f.queue.begin(&c.head)
	b := requestBody(&c.head)
	if _, ok := c.answerExpect(&b, n); !ok {
		s.request.stop()
		return false
	}
	c.in.consume(n)
	for {
		taken, err := b.take(c.in.buffered(), &s.request)
		c.in.consume(taken)
		if err != nil {
			s.request.stop()
			return c.refuse(badBody)
		}
		if b.state == ended {
			break
		}
		if c.in.fill() != nil {
			s.request.stop()
			return false
		}
	}
	s.done()
	s.done() // there is no answer to wait for
	defer c.finish()
	return c.reply("HTTP/1.1 204 No Content\r\n\r\n")
}
