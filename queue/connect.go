package queue

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
)

// connect dials and keeps the connection alive for ever. Nothing is buffered while it is down: a publish that
// comes out after a reconnect would meet another state of the stream than the one it was made for.
func (q *Queue) connect(ctx context.Context, url string, more ...nats.Option) error {
	opts := append([]nats.Option{
		nats.Name("tailrace " + q.opts.Pipeline),
		nats.MaxReconnects(-1), nats.ReconnectBufSize(-1), nats.ReconnectWait(250 * time.Millisecond),
		nats.PingInterval(5 * time.Second), nats.MaxPingsOutstanding(2), nats.Timeout(5 * time.Second),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				q.log.Warn("queue connection lost, reconnecting", zap.Error(err))
			}
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { q.away.Store(&err) }),
		nats.ReconnectHandler(func(*nats.Conn) { q.log.Info("queue connection is back") }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			q.log.Warn("queue connection reported an error", zap.Error(err))
		}),
	}, more...)
	opts = append(opts, q.opts.credentials()...)
	nc, err := q.dial(ctx, url, opts)
	if err != nil {
		return err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return fmt.Errorf("make JetStream context: %w", err)
	}
	q.nc, q.js, q.consume = nc, js, js.CreateConsumer
	if q.opts.Replicas == 0 {
		q.opts.Replicas, q.keepCopies = q.replicas(), true
	}
	return nil
}

// dial lets ctx cut the attempt short: nats.Connect knows no context.
func (q *Queue) dial(ctx context.Context, url string, opts []nats.Option) (*nats.Conn, error) {
	d := &dialer{Dialer: net.Dialer{Timeout: 5 * time.Second}, connection: &q.connection}
	if deadline, ok := ctx.Deadline(); ok {
		d.Timeout = max(min(time.Until(deadline), d.Timeout), time.Millisecond)
	}
	nc, err := nats.Connect(url, append(opts, nats.Timeout(d.Timeout), nats.SetCustomDialer(d))...)
	if err != nil {
		return nil, d.explain(ctx, err)
	}
	return nc, nil
}

func (o Options) credentials() (opts []nats.Option) {
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
