package front

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// errTimeout is the error of a read after its deadline.
var errTimeout = os.ErrDeadlineExceeded

// link is the connection to the service of one client's connection. Its goroutine reads it, also
// between exchanges, so that its end reaches the client at once.
type link struct {
	c       *conn
	to      *service
	service net.Conn
	in      reader
	head    head
	tasks   sync.WaitGroup

	answered chan struct{} // has a token when an exchange has its answer
	gone     chan struct{} // closed when nothing more comes of the service

	mu      sync.Mutex
	sample  *sample // the open exchange; nil: none
	retired bool    // the front closes the connection, and not the service
}

// openLink connects to the service of a request, unless the connection has a link to it.
func (c *conn) openLink(ctx context.Context, to *service) error {
	if c.link != nil && c.link.to == to {
		return nil
	}
	c.dropLink()
	ctx, cancel := context.WithTimeout(ctx, c.f.o.Dial)
	defer cancel()
	service, err := new(net.Dialer).DialContext(ctx, "tcp", to.addr)
	if err != nil {
		return err
	}
	if to.tls != nil {
		secure := tls.Client(service, to.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = service.Close()
			return err
		}
		service = secure
	}
	l := &link{
		c: c, to: to, service: service, in: reader{from: service}, answered: make(chan struct{}, 1),
		gone: make(chan struct{}),
	}
	c.mu.Lock()
	c.link = l
	c.mu.Unlock()
	l.tasks.Go(l.run)
	return nil
}

// dropLink closes the link, if there is one, and waits until its goroutine has ended.
func (c *conn) dropLink() {
	l := c.link
	if l == nil {
		return
	}
	l.mu.Lock()
	l.retired = true
	l.mu.Unlock()
	_ = l.service.Close()
	l.tasks.Wait()
	l.cutExchange() // which was opened when the service had just ended the connection
	c.mu.Lock()
	c.link = nil
	c.mu.Unlock()
}

// ask makes an exchange the open one, before its first byte is sent.
func (l *link) ask(s *sample) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sample = s
}

// current returns the open exchange; nil: none is.
func (l *link) current() *sample {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sample
}

// run passes answers to the client until the service or the client ends.
func (l *link) run() {
	defer close(l.gone)
	err := l.answer()
	for err == nil {
		err = l.answer()
	}
	l.cutExchange()
	l.mu.Lock()
	retired := l.retired
	l.mu.Unlock()
	if !retired {
		l.c.serviceEnded(errors.Is(err, syscall.ECONNRESET))
	}
	_ = l.service.Close() // a request that is still sent goes nowhere
}

// cutExchange closes the open exchange, if there is one, without its answer or the rest of it.
func (l *link) cutExchange() {
	l.mu.Lock()
	s := l.sample
	l.sample = nil
	l.mu.Unlock()
	if s == nil {
		return
	}
	s.Cut = true
	s.Duration = time.Since(s.Begin)
	s.done()
}

// serviceEnded ends the client's connection as the service has ended its own.
func (c *conn) serviceEnded(reset bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended, c.reset = true, reset
	tcp, ok := c.client.(*net.TCPConn)
	switch {
	case ok && reset:
		_ = tcp.SetLinger(0)
		_ = tcp.Close()
	case ok:
		_ = tcp.CloseWrite()
	}
	_ = c.client.SetReadDeadline(time.Now().Add(lingering)) // wakes serve, which closes the rest
}

// errEnd is the end of a connection behind an answer that lasts until then.
var errEnd = errors.New("the answer ends the connection")

// answer passes one answer to the client. An error is of reading the service or writing to the
// client: what came before it has been passed on.
func (l *link) answer() error {
	n, err := l.in.head()
	if err == nil {
		err = l.head.parseAnswer(l.in.buffered()[:n])
	}
	s := l.current()
	switch {
	case errors.Is(err, errMalformed), errors.Is(err, errLongHead), err == nil && s == nil, // nothing was asked
		err == nil && l.head.status == 101:
		return l.passRest()
	case err != nil:
		return errors.Join(l.pass(len(l.in.buffered())), err)
	case l.head.status < 200:
		if l.head.status == 100 && s.continued {
			l.in.consume(n)
			return nil
		}
		return l.pass(n)
	}
	s.beginAnswer(&l.head)
	b := answerBody(&l.head, s.toHead)
	for {
		taken, malformed := b.take(l.in.buffered()[n:], &s.answer)
		if malformed != nil {
			return l.passRest()
		}
		if err := l.pass(n + taken); err != nil {
			return err
		}
		if b.state == ended {
			l.finish(s)
			return nil
		}
		n = 0
		err := l.in.fill()
		switch {
		case err == nil:
		case b.state == untilClose && errors.Is(err, io.EOF):
			l.finish(s)
			return errEnd
		default:
			return err
		}
	}
}

// pass writes the first n bytes that are buffered to the client.
func (l *link) pass(n int) error {
	if n == 0 {
		return nil
	}
	_, err := l.c.client.Write(l.in.buffered()[:n])
	l.in.consume(n)
	return err
}

// passRest passes on all that the service sends until it ends the connection.
func (l *link) passRest() error {
	for {
		if err := l.pass(len(l.in.buffered())); err != nil {
			return err
		}
		if err := l.in.fill(); err != nil {
			return err
		}
	}
}

// finish closes the open exchange, which has its whole answer.
func (l *link) finish(s *sample) {
	l.mu.Lock()
	l.sample = nil
	l.mu.Unlock()
	s.Duration = time.Since(s.Begin)
	s.done()
	l.c.finish()
	l.answered <- struct{}{}
}
