package conn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"
)

// dial connects. The library gives a server up that refused the credentials twice, unless it is
// told not to: the refusal may be a mistake of the server, or the credentials may be replaced (Rule
// 13). Nothing is buffered while the connection is down: a publish that is sent only after a
// reconnect could find the stream in another state than the one it was made for.
func (c *Conn) dial(ctx context.Context) error {
	d := &dialer{Dialer: net.Dialer{Timeout: 5 * time.Second}, connections: &c.Connections}
	if deadline, ok := ctx.Deadline(); ok { // nats.Connect takes no context
		d.Timeout = max(min(time.Until(deadline), d.Timeout), time.Millisecond)
	}
	servers, user := c.opts.servers()
	opts := append(c.opts.natsOptions(),
		user, nats.IgnoreAuthErrorAbort(), nats.ClosedHandler(c.noteClosed),
		nats.MaxReconnects(-1), nats.ReconnectBufSize(-1), nats.ReconnectWait(250*time.Millisecond),
		nats.PingInterval(2*time.Second), nats.MaxPingsOutstanding(2), nats.Timeout(d.Timeout), nats.SetCustomDialer(d),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				c.log.Warn("queue connection lost, reconnecting", zap.Error(err))
			}
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { c.reconnectError.Store(&err) }),
		nats.ReconnectHandler(func(*nats.Conn) { c.log.Info("queue connection is back") }),
		nats.ErrorHandler(c.report),
	)
	if c.opts.InProcess != nil {
		opts = append(opts, nats.InProcessServer(inProcess{c.opts.InProcess, &c.Connections}))
	}
	nc, err := nats.Connect(servers, opts...)
	if err != nil {
		return d.explain(ctx, err)
	}
	c.NC = nc
	return nil
}

// The oldest server that keeps all settings of our streams: older ones drop the metadata in
// silence, by which a stream is known as a pipeline's.
const minMajor, minMinor = 2, 10

// newEnough reports whether a server's version is the oldest that will do, or newer. A version that
// cannot be read is one of a build of the server's developers.
func newEnough(version string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return true
	}
	return major > minMajor || major == minMajor && minor >= minMinor
}

// servers returns the addresses of the servers, and an option with the credentials for each of
// them. If all addresses carry the same user, it is taken out of them and read again before each
// connection, so that a password or token that was replaced meanwhile is used.
func (o Options) servers() (addresses string, user nats.Option) {
	none := func(*nats.Options) error { return nil }
	users, bare := map[string]bool{}, []string{}
	for address := range strings.SplitSeq(o.URL, ",") {
		u, err := url.Parse(strings.TrimSpace(address))
		if err != nil || u.User == nil {
			return o.URL, none
		}
		users[u.User.String()] = true
		u.User = nil
		bare = append(bare, u.String())
	}
	if o.URLNow == nil || len(users) != 1 {
		return o.URL, none
	}
	return strings.Join(bare, ","), func(to *nats.Options) error {
		to.UserInfo = func() (string, string) {
			if name, password, ok := o.user(); ok && password != "" {
				return name, password
			}
			return "", ""
		}
		to.TokenHandler = func() string {
			if token, password, ok := o.user(); ok && password == "" {
				return token
			}
			return ""
		}
		return nil
	}
}

// user returns the user and the password of the first address as it is now. A user without a
// password is a token.
func (o Options) user() (name, password string, ok bool) {
	address, _, _ := strings.Cut(o.URLNow(), ",")
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.User == nil {
		return "", "", false
	}
	password, _ = u.User.Password()
	return u.User.Username(), password, true
}

// noteClosed notes that the client library has given the connection up. It does so where the server
// ends the connection with an error that the library does not define.
func (c *Conn) noteClosed(nc *nats.Conn) {
	err := nc.LastError()
	if err == nil {
		err = nats.ErrConnectionClosed
	}
	c.closing.Do(func() {
		c.closedBy = err
		close(c.closed)
	})
}

// report logs an error that concerns no single call, with the subscription if its reader is too
// slow.
func (c *Conn) report(_ *nats.Conn, sub *nats.Subscription, err error) {
	fields := []zap.Field{zap.Error(err)}
	if sub != nil {
		dropped, _ := sub.Dropped() // fails when the subscription has ended meanwhile
		fields = append(fields, zap.String("subject", sub.Subject), zap.Int("dropped", dropped))
	}
	c.reported.Do(func() { c.log.Warn("queue connection reported an error", fields...) })
}

// natsOptions returns the options of the client library that follow from the configuration.
func (o Options) natsOptions() []nats.Option {
	opts := []nats.Option{nats.Name(o.Name)}
	if o.Token != "" {
		opts = append(opts, nats.Token(o.Token))
	}
	if o.Creds != "" {
		opts = append(opts, nats.UserCredentials(o.Creds))
	}
	if o.CA != "" {
		opts = append(opts, nats.RootCAs(o.CA))
	}
	if o.Cert != "" {
		opts = append(opts, nats.ClientCert(o.Cert, o.Key))
	}
	if o.InboxPrefix != "" {
		opts = append(opts, nats.CustomInboxPrefix(o.InboxPrefix))
	}
	return opts
}

// inProcess connects to a server in this process and counts the connections, as dialer does: the
// client library calls it for each reconnect.
type inProcess struct {
	nats.InProcessConnProvider
	connections *atomic.Uint64
}

// InProcessConn makes one connection.
func (p inProcess) InProcessConn() (net.Conn, error) {
	c, err := p.InProcessConnProvider.InProcessConn()
	if err == nil {
		p.connections.Add(1)
	}
	return c, err
}

// dialer counts the connections, each before anything is sent on it: the client library's own
// handler for reconnects is called later, from another goroutine. It also records why servers could
// not be reached, because the library's error states only that none could.
type dialer struct {
	net.Dialer
	connections *atomic.Uint64

	mu   sync.Mutex
	errs map[string]error // by address
}

// Dial connects to one address.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	c, err := d.Dialer.Dial(network, address)
	if err == nil {
		d.connections.Add(1)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.errs == nil {
		d.errs = map[string]error{}
	}
	d.errs[address] = err
	return c, err
}

// explain returns the error of a connection that was not made: ErrDenied or ErrUnreachable, with
// the causes by address.
func (d *dialer) explain(ctx context.Context, err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err // without the URL, which may hold a password
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var causes []string
	for _, cause := range d.errs {
		if cause != nil {
			causes = append(causes, cause.Error()) // net.OpError names the address
		}
	}
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked):
		return fmt.Errorf("connect to the queue: %w: %w", ErrDenied, err)
	case len(causes) > 0:
		slices.Sort(causes)
		return fmt.Errorf("connect to the queue: %w: %s", ErrUnreachable, strings.Join(causes, "; "))
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: %w", err, context.Cause(ctx))
	}
	return fmt.Errorf("connect to the queue: %w: %w", ErrUnreachable, err)
}
