package queue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// Queue is a connection to the server that holds the logs, and that server itself when it is embedded.
type Queue struct {
	opts     Options
	log      *zap.Logger
	metrics  *metrics
	nc       *nats.Conn
	js       jetstream.JetStream
	embedded *embedded // nil outside

	keepCopies bool  // nobody said how many copies a log has: those that exist keep theirs
	disk       *disk // nil outside

	// connection counts connections to the server: what was known under another number is in doubt.
	connection atomic.Uint64
	attempts   atomic.Uint64         // appends sent
	said       sync.Map              // what was said of each log: it is not said again at every look
	away       atomic.Pointer[error] // why the newest try to connect again failed

	// consume makes the consumers of cursors. Tests put them where a replica lags.
	consume func(ctx context.Context, stream string, cfg jetstream.ConsumerConfig) (jetstream.Consumer, error)
}

// Open starts the embedded server (Options.Dir) or connects (Options.URL), and checks that JetStream answers
// and is healthy. ErrLocked when another process has the directory open. Embedded, it blocks while a store
// recovers; outside, while a cluster that lets clients in elects its leader. Close it after everything that was made
// from it.
func Open(ctx context.Context, o Options, log *zap.Logger, reg prometheus.Registerer) (*Queue, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	q := newQueue(o, log, reg)
	if err := q.open(ctx); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

func newQueue(o Options, log *zap.Logger, reg prometheus.Registerer) *Queue {
	q := &Queue{opts: o.withDefaults(), log: log, metrics: newMetrics(reg)}
	if q.opts.Dir != "" {
		q.disk = newDisk(q.opts, reg)
	}
	return q
}

func (q *Queue) open(ctx context.Context) (err error) {
	if q.opts.Dir == "" {
		if err := q.connect(ctx, q.opts.URL); err != nil {
			return err
		}
		return q.awaitHealth(ctx)
	}
	if q.embedded, err = startEmbedded(ctx, q.opts, q.log); err != nil {
		return err
	}
	if err := q.connect(ctx, "", nats.InProcessServer(inProcess{q}), nats.Token(q.embedded.client.Token)); err != nil {
		return err
	}
	q.checkStore(ctx)
	return q.Health(ctx)
}

// OpenClient is for commands: it connects to the daemon that has Options.Dir open, or to Options.URL. When no
// daemon runs it opens the store itself, under the lock, until Close.
func OpenClient(ctx context.Context, o Options, log *zap.Logger) (*Queue, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.URL != "" {
		return Open(ctx, o, log, prometheus.NewRegistry())
	}
	for {
		q, err := Open(ctx, o, log, prometheus.NewRegistry())
		if !errors.Is(err, ErrLocked) {
			return q, err
		}
		if q, err = openBeside(ctx, o, log); err == nil {
			return q, nil
		}
		// The daemon is starting (no file yet, or that of its predecessor) or just ended.
		if werr := wait(ctx, 100*time.Millisecond); werr != nil {
			return nil, errors.Join(err, werr)
		}
	}
}

func openBeside(ctx context.Context, o Options, log *zap.Logger) (*Queue, error) {
	c, err := ReadClient(o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reach the daemon: %w", err)
	}
	if err != nil {
		return nil, err
	}
	q := newQueue(o, log, prometheus.NewRegistry())
	if err := q.connect(ctx, c.URL, nats.Token(c.Token)); err != nil {
		return nil, err
	}
	return q, nil
}

// Close ends the connection and the embedded server. Entries that were acknowledged are on disk either way.
func (q *Queue) Close() error {
	if q.nc != nil {
		q.nc.Close()
	}
	if q.embedded != nil {
		return q.embedded.close()
	}
	return nil
}

// Embedded tells whether the server runs in this process.
func (q *Queue) Embedded() bool { return q.embedded != nil }

// Client returns how others reach the embedded server; ok is false for an outside one.
func (q *Queue) Client() (c Client, ok bool) {
	if q.embedded == nil {
		return c, false
	}
	q.embedded.mu.Lock()
	defer q.embedded.mu.Unlock()
	return q.embedded.client, true
}

// Notes are sentences for the start-up check: what this package cannot ask the server and relies on.
func (q *Queue) Notes() []string {
	if q.opts.URL == "" {
		return nil
	}
	return []string{"the NATS server must run with `jetstream { sync_interval: always }`: with its default of two minutes a power cut loses acknowledged entries, and a client cannot see the setting"}
}

// Health asks the server whether it can store. It is for the liveness probe: cheap, and the only thing that
// shows a full disk.
func (q *Queue) Health(ctx context.Context) error {
	ctx, cancel := q.ask(ctx)
	defer cancel()
	if _, err := q.js.AccountInfo(ctx); err != nil {
		return fmt.Errorf("ask JetStream: %w", explain(err))
	}
	if q.embedded != nil {
		return q.embedded.health(ctx)
	}
	return nil
}

// awaitHealth waits while the cluster elects.
func (q *Queue) awaitHealth(ctx context.Context) error {
	said := time.Time{}
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		err := q.Health(ctx)
		if err == nil || !transient(err) {
			return err
		}
		if time.Since(said) > sayAgain {
			said = time.Now()
			q.log.Warn("the queue does not answer yet, waiting: is its cluster electing?", zap.Error(q.unanswered(err)))
		}
		if wait(ctx, pause) != nil {
			return q.unanswered(err)
		}
	}
}

// sayAgain is the pause between lines that say the same.
const sayAgain = 10 * time.Second

// ask bounds one request: what was sent on a connection that has just died is never answered, however long the
// caller has time.
func (q *Queue) ask(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, q.opts.AckTimeout)
}

// report tells how a request ended. Refusals are answers.
func (q *Queue) report(ctx context.Context, err error) {
	switch {
	case q.opts.Report == nil || ctx.Err() != nil:
	case err == nil || !transient(err):
		q.opts.Report("", nil)
	default:
		q.opts.Report("", q.unanswered(err))
	}
}

// unanswered adds to an error which servers were asked, and why there is no connection to them.
func (q *Queue) unanswered(err error) error {
	if q.embedded != nil || q.nc == nil {
		return err
	}
	var hosts []string
	for _, s := range q.nc.Servers() {
		if u, perr := url.Parse(s); perr == nil {
			hosts = append(hosts, u.Host)
		}
	}
	where := strings.Join(hosts, ", ")
	if q.nc.IsConnected() {
		return fmt.Errorf("%s: %w", where, err)
	}
	if why := q.away.Load(); why != nil {
		return fmt.Errorf("no connection to %s: %w", where, *why)
	}
	return fmt.Errorf("no connection to %s", where)
}

// wait blocks for d or until ctx ends, whose cause it returns.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
