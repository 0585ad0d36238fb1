package clients

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/embedded"
)

const (
	openTimeout    = time.Minute            // for a command: a large embedded store needs time to open
	connectTimeout = 2 * time.Second        // for one attempt to connect to the daemon's embedded server
	daemonPeriod   = 250 * time.Millisecond // how often RunningQueue looks for the daemon
)

// Queue returns the logs. A command gets the logs of the running daemon, or opens the store by
// itself when none runs; the daemon opens the store.
func (c *Clients) Queue(ctx context.Context) (*queue.Queue, error) {
	if c.queue != nil {
		return c.queue, nil
	}
	open := c.commandQueue
	if c.daemon != nil {
		open = c.daemonQueue
	}
	q, err := open(ctx)
	if err != nil {
		return nil, err
	}
	c.queue = q
	return q, nil
}

// commandQueue opens the logs beside a running daemon, or the store itself. It makes no store where
// there is none.
func (c *Clients) commandQueue(ctx context.Context) (*queue.Queue, error) {
	if dir := c.cfg.Queue.Dir; dir != "" {
		if _, err := os.Stat(dir); err != nil {
			return nil, failure.With(failure.Unready,
				"is queue.dir right, and has `replicator run` been started once? If the directory was there and is lost: "+
					"`replicator recover --all`",
				fmt.Errorf("open queue: %w", err))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	q, err := queue.OpenClient(ctx, QueueOptions(c.cfg), c.logger(zapcore.WarnLevel).Named("queue"))
	if err != nil {
		return nil, queue.Explain(c.cfg.Queue.Dir, err)
	}
	return q, nil
}

// daemonQueue opens the store, and waits for a command that has it open.
func (c *Clients) daemonQueue(ctx context.Context) (*queue.Queue, error) {
	o := QueueOptions(c.cfg)
	o.URLNow = urlNow(c.cfg)
	o.Report = c.daemon.services.Reporter(status.NATS)
	q, err := queue.Open(ctx, o, c.logger(zapcore.WarnLevel).Named("queue"), c.daemon.reg)
	if err != nil {
		return nil, queue.Explain(c.cfg.Queue.Dir, err)
	}
	return q, nil
}

// urlNow returns a function that reads queue.url again: from the configuration, and from the file
// that it may name. It returns the known one while that is impossible.
func urlNow(cfg *config.Config) func() string {
	return func() string {
		now, _, err := config.Load(cfg.File)
		if err != nil || now.Queue.URL == "" {
			return cfg.Queue.URL
		}
		return now.Queue.URL
	}
}

// StoreWasClosed reports whether this command opened the embedded store by itself: no replicator
// had it open, and none can open it until CloseQueue. The daemon opens its own store, so it gets
// false.
func (c *Clients) StoreWasClosed() bool {
	return c != nil && c.daemon == nil && c.queue != nil && c.queue.Embedded()
}

// RunningQueue waits for a running daemon and returns its logs. Unlike Queue it never opens the
// embedded store, and closes it where Queue has opened it: the daemon could not start.
func (c *Clients) RunningQueue(ctx context.Context) (*queue.Queue, error) {
	if c.cfg.Queue.URL != "" || c.daemon != nil || c.queue != nil && !c.queue.Embedded() {
		return c.Queue(ctx)
	}
	if err := c.CloseQueue(); err != nil {
		return nil, err
	}
	for began := time.Now(); ; {
		q, err := c.connect(ctx)
		if err == nil {
			c.queue = q
			return q, nil
		}
		if failure.Pause(ctx, daemonPeriod) != nil {
			return nil, failure.With(failure.Unready, "start `replicator run`",
				fmt.Errorf("waited %s for a replicator that runs: %w", time.Since(began).Round(time.Second), err))
		}
	}
}

// connect connects to the embedded server of the daemon that runs now.
func (c *Clients) connect(ctx context.Context) (*queue.Queue, error) {
	address, err := QueueURL(c.cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	o := QueueOptions(c.cfg)
	o.Dir, o.URL = "", address
	return queue.Open(ctx, o, c.logger(zapcore.ErrorLevel).Named("queue"), prometheus.NewRegistry())
}

// CloseQueue closes the queue alone; the next call of Queue or RunningQueue opens it again.
func (c *Clients) CloseQueue() error {
	if c.queue == nil {
		return nil
	}
	q := c.queue
	c.queue = nil
	return q.Close()
}

// QueueURL returns the address of the NATS server that has the logs: the configured one, or the
// embedded one of the running daemon with its token.
func QueueURL(cfg *config.Config) (string, error) {
	if cfg.Queue.URL != "" {
		return cfg.Queue.URL, nil
	}
	client, err := embedded.ReadClientFile(cfg.Queue.Dir)
	if err == nil && client.Command {
		err = fmt.Errorf("a command, pid %d, has %s open", client.PID, cfg.Queue.Dir)
	}
	if err != nil {
		return "",
			failure.With(failure.Unready, "the embedded server listens only while `replicator run` does",
				fmt.Errorf("find running daemon: %w", err))
	}
	u, err := url.Parse(client.URL)
	if err != nil {
		return "", fmt.Errorf("read address of running daemon: %w", err)
	}
	if client.Token != "" {
		u.User = url.User(client.Token)
	}
	return u.String(), nil
}

// StoreInUse returns why the embedded store of a configuration cannot be opened by a second daemon;
// nil when none has it open, or the log is in a cluster.
func StoreInUse(cfg *config.Config) error {
	if cfg.Queue.Dir == "" {
		return nil
	}
	err := embedded.CheckNoDaemon(cfg.Queue.Dir)
	if !errors.Is(err, queue.ErrLocked) {
		return nil
	}
	return queue.Explain(cfg.Queue.Dir, fmt.Errorf("open the log: %w", err))
}
