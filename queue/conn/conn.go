package conn

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
	"golang.org/x/time/rate"
)

const (
	// MaxPayload is what the embedded server accepts in one message, and the most that package
	// queue ever sends.
	MaxPayload = 8 << 20
	// maxMessage leaves room for subject, headers and what the server adds per message, so that
	// every message fits into a pull request for pullBytes: a larger one would stop the consumer.
	maxMessage = MaxPayload - 64<<10
)

// Options are the addresses of the server, and how to authenticate.
type Options struct {
	Name  string // of the connection, for the server's operators
	URL   string
	Token string // of an embedded server
	// URLNow returns URL as it is now, for its user and password, which may be replaced while the
	// connection lasts. Optional; it is called before each connection.
	URLNow      func() string
	Creds       string // path of a credentials file
	CA          string // path of the certificate authority's certificate, when the system does not trust it
	Cert, Key   string // paths of a client certificate and its key
	InboxPrefix string // prefix of reply subjects, for accounts that restrict them
	Domain      string // of JetStream, where it is not that of the server: behind a leaf node

	// InProcess connects to a server in this process instead of URL.
	InProcess nats.InProcessConnProvider

	AckTimeout time.Duration // of one request
	// Report is called with the result of each request: nil where the server answered. Optional.
	Report func(op string, err error)
}

// Conn is a connection to a server or cluster. It reconnects by itself for ever, also after servers
// have refused its credentials. Its methods may be called by several goroutines. The exported
// fields are for package queue and the packages below it; tests replace them.
type Conn struct {
	NC *nats.Conn
	JS jetstream.JetStream
	// CreateConsumer makes the consumers of Consume. Tests replace it to read from a replica that
	// lags.
	CreateConsumer func(ctx context.Context, stream string, cfg jetstream.ConsumerConfig) (jetstream.Consumer, error)
	// Connections counts the connections that were made, each before anything is sent on it: the
	// outcome of what was sent under another number is unknown.
	Connections atomic.Uint64
	AckTimeout  time.Duration

	opts           Options
	log            *zap.Logger
	closed         chan struct{}
	closing        sync.Once
	closedBy       error                 // why the connection was given up, once closed is closed
	reconnectError atomic.Pointer[error] // why the newest try to connect again failed
	silent         unanswered
	reported       rate.Sometimes // by report; a subject that permissions forbid is refused every two seconds
}

// seldom is the rate of log lines about errors that concern no call.
func seldom() rate.Sometimes { return rate.Sometimes{First: 5, Interval: time.Minute} }

// Dial connects, within ctx. Errors: ErrDenied, ErrUnreachable, ErrOldServer.
func Dial(ctx context.Context, o Options, log *zap.Logger) (*Conn, error) {
	c := &Conn{opts: o, log: log, AckTimeout: o.AckTimeout, reported: seldom(), closed: make(chan struct{})}
	if err := c.dial(ctx); err != nil {
		return nil, err
	}
	if version := c.NC.ConnectedServerVersion(); !newEnough(version) {
		c.NC.Close()
		return nil, fmt.Errorf("connect to the queue: %w: it is %s, and %d.%d or newer is needed", ErrOldServer, version,
			minMajor, minMinor)
	}
	js, err := JetStream(c.NC, o.Domain)
	if err != nil {
		c.NC.Close()
		return nil, fmt.Errorf("make JetStream context: %w", err)
	}
	c.JS, c.CreateConsumer = bounded{js, c}, js.CreateConsumer
	return c, nil
}

// JetStream returns the client of a domain; "" for that of the server.
func JetStream(nc *nats.Conn, domain string) (jetstream.JetStream, error) {
	if domain == "" {
		return jetstream.New(nc)
	}
	return jetstream.NewWithDomain(nc, domain)
}

// Request sends a request of JetStream's API, such as STREAM.INFO.name, to the domain.
//
// Source: https://docs.nats.io/running-a-nats-service/configuration/leafnodes/jetstream_leafnodes
func (c *Conn) Request(ctx context.Context, what string, data []byte) (*nats.Msg, error) {
	prefix := "$JS.API."
	if c.opts.Domain != "" {
		prefix = "$JS." + c.opts.Domain + ".API."
	}
	return c.NC.RequestWithContext(ctx, prefix+what, data)
}

// Close ends the connection.
func (c *Conn) Close() {
	c.closing.Do(func() {}) // it is not given up
	c.NC.Close()
}

// GivenUp blocks until ctx ends, and returns nil then, or until the client library has given the
// connection up: nothing connects again, so the process must be started again.
func (c *Conn) GivenUp(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-c.closed:
		return fmt.Errorf("%w: %w", ErrGivenUp, c.closedBy)
	}
}

// MaxMessage returns the size of the largest message, headers included, that both the server and a
// Consumer take.
func (c *Conn) MaxMessage() int { return int(min(c.NC.MaxPayload(), maxMessage)) }

// WithAckTimeout returns a context for one request, bounded by AckTimeout: a request that was sent
// on a connection that has just broken is never answered, however late the caller's own deadline
// is.
func (c *Conn) WithAckTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.AckTimeout)
}

// Report passes the result of a request to Options.Report, and leaves a server that answers none.
// One that refuses a request has answered it.
func (c *Conn) Report(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	answered := err == nil || !Transient(err)
	if c.opts.Report != nil && answered {
		c.opts.Report("", nil)
	} else if c.opts.Report != nil {
		c.opts.Report("", c.WithServers(err))
	}
	if answered {
		c.silent.noteAnswer(c.Connections.Load(), time.Now())
		return
	}
	waited := time.Duration(0)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) {
		waited = c.AckTimeout
	}
	if c.silent.note(waited, c.Connections.Load(), time.Now()) {
		c.leave()
	}
}

// WithServers adds to an error which servers were asked, and why there is no connection to them.
func (c *Conn) WithServers(err error) error {
	if c.opts.InProcess != nil {
		return err
	}
	var hosts []string
	for _, s := range c.NC.Servers() {
		if u, perr := url.Parse(s); perr == nil {
			hosts = append(hosts, u.Host)
		}
	}
	servers := strings.Join(hosts, ", ")
	if c.NC.IsConnected() {
		return fmt.Errorf("%s: %w", servers, err)
	}
	if cause := c.reconnectError.Load(); cause != nil {
		return fmt.Errorf("no connection to %s: %w", servers, *cause)
	}
	return fmt.Errorf("no connection to %s", servers)
}
