package queue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/queue/embedded"
)

// Queue is a connection to the server that holds the logs, and that server itself when it is
// embedded.
type Queue struct {
	opts     Options
	log      *zap.Logger
	metrics  *metrics
	conn     *conn.Conn       // nil until it is connected
	embedded *embedded.Server // nil with an external server

	replicasUnset bool                // Options.Replicas was 0: logs that exist keep their number of copies
	disk          *embedded.DiskWatch // nil with an external server
	tails         *tails              // nil with an external server

	attempts   atomic.Uint64 // appends sent: makes each message id unique
	lastLogged sync.Map      // number logged last, by stream and topic: Log.numberChanged
}

// Open starts the embedded server (Options.Dir) or connects (Options.URL), and checks that
// JetStream answers and is healthy. It blocks while an embedded store recovers, or a command has it
// open, or while a cluster elects its leader. Errors: ErrLocked when another process has the
// directory open, ErrNoSpace, ErrDenied, ErrUnreachable. Close the Queue after its readers and
// writers.
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
		q.disk = embedded.NewDiskWatch(q.opts.embedded(), reg)
	}
	return q
}

func (q *Queue) open(ctx context.Context) (err error) {
	if q.opts.Dir == "" {
		if err := q.connect(ctx, conn.Options{URL: q.opts.URL}); err != nil {
			return err
		}
		return q.awaitHealth(ctx)
	}
	q.tails = newTails(q.opts.BlocksMaxBytes)
	if q.embedded, err = embedded.Start(ctx, q.opts.embedded(), q.disk, q.log); err != nil {
		return err
	}
	if err := q.connect(ctx, conn.Options{InProcess: q.embedded, Token: q.embedded.Client().Token}); err != nil {
		return err
	}
	q.embedded.Check(ctx)
	return q.Health(ctx)
}

// OpenClient opens the queue for a command: it connects to the daemon that has Options.Dir open, or
// to Options.URL. When no daemon runs, or waits for the store, it opens the store itself, under the
// lock, until Close.
func OpenClient(ctx context.Context, o Options, log *zap.Logger) (*Queue, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.URL != "" {
		return Open(ctx, o, log, prometheus.NewRegistry())
	}
	o.command = true
	for {
		q, err := Open(ctx, o, log, prometheus.NewRegistry())
		if !errors.Is(err, ErrLocked) {
			return q, err
		}
		if q, err = connectToDaemon(ctx, o, log); err == nil {
			return q, nil
		}
		// The daemon is starting (no client file yet, or its predecessor's) or has just ended.
		if werr := failure.Pause(ctx, 100*time.Millisecond); werr != nil {
			return nil, errors.Join(err, werr)
		}
	}
}

// connectToDaemon connects to the daemon that has the store open.
func connectToDaemon(ctx context.Context, o Options, log *zap.Logger) (*Queue, error) {
	c, err := embedded.ReadClientFile(o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reach the daemon: %w", err)
	}
	if err == nil && c.Command {
		err = embedded.CheckNoDaemon(o.Dir) // it gets the store as soon as that command ends
	}
	if err != nil {
		return nil, err
	}
	q := newQueue(o, log, prometheus.NewRegistry())
	if err := q.connect(ctx, conn.Options{URL: c.URL, Token: c.Token}); err != nil {
		return nil, err
	}
	return q, nil
}

// connect dials with the options that all connections share.
func (q *Queue) connect(ctx context.Context, o conn.Options) (err error) {
	o.Name, o.AckTimeout, o.Report = "tailrace "+q.opts.Pipeline, q.opts.AckTimeout, q.opts.Report
	o.Creds, o.CA, o.Cert, o.Key, o.InboxPrefix = q.opts.Creds, q.opts.CA, q.opts.Cert, q.opts.Key, q.opts.InboxPrefix
	o.Domain = q.opts.Domain
	if q.opts.URL != "" {
		o.URLNow = q.opts.URLNow
	}
	if q.conn, err = conn.Dial(ctx, o, q.log); err != nil {
		return err
	}
	if q.opts.Replicas == 0 {
		q.opts.Replicas, q.replicasUnset = q.defaultReplicas(), true
	}
	return nil
}

// Close ends the connection and the embedded server. Entries that were acknowledged are on disk
// either way.
func (q *Queue) Close() error {
	if q.conn != nil {
		q.conn.Close()
	}
	if q.embedded != nil {
		return q.embedded.Close()
	}
	return nil
}

// Embedded reports whether the server runs in this process.
func (q *Queue) Embedded() bool { return q.embedded != nil }

// Client returns how other processes reach the embedded server; ok is false for an external one.
func (q *Queue) Client() (c embedded.ClientFile, ok bool) {
	if q.embedded == nil {
		return c, false
	}
	return q.embedded.Client(), true
}

// GivenUp blocks until ctx ends, and returns nil then, or an error with ErrGivenUp once the
// connection is closed for good.
func (q *Queue) GivenUp(ctx context.Context) error { return q.conn.GivenUp(ctx) }

// Run maintains the embedded store until ctx ends, see embedded.Server. With a server elsewhere
// there is nothing to do.
func (q *Queue) Run(ctx context.Context) error {
	if q.embedded == nil {
		<-ctx.Done()
		return nil
	}
	return q.embedded.Run(ctx)
}

// Notes returns settings of an external server that this package relies on and no client can query,
// as sentences for the start-up check.
func (q *Queue) Notes() []string {
	if q.opts.URL == "" {
		return nil
	}
	return []string{"the NATS server must run with `jetstream { sync_interval: always }`: " +
		"with its default of two minutes a power cut loses acknowledged entries, and a client cannot see the setting"}
}

// Health checks that the server can store. The liveness probe calls it: it is cheap, and the only
// request that shows a full disk.
func (q *Queue) Health(ctx context.Context) error {
	ctx, cancel := q.conn.WithAckTimeout(ctx)
	defer cancel()
	if _, err := q.conn.JS.AccountInfo(ctx); err != nil {
		return fmt.Errorf("ask JetStream: %w", conn.Explain(err))
	}
	if q.embedded != nil {
		return q.embedded.Health(ctx)
	}
	return nil
}

// awaitHealth waits until the server is healthy. It retries transient errors, as while a cluster
// elects its leader, until ctx ends.
//
// Rule 13: of a server elsewhere also what no rule explains is asked for again, such as an internal
// error or the page of a proxy. It would end the process at its start.
func (q *Queue) awaitHealth(ctx context.Context) error {
	logged := time.Time{}
	for pause := conn.LeastPause; ; pause = min(2*pause, conn.MostPause) {
		err := q.Health(ctx)
		class := conn.Classify(err)
		final := q.embedded != nil || class == failure.Denied || class == failure.Canceled
		if err == nil || class != failure.Transient && final {
			return err
		}
		q.conn.Report(ctx, err) // of several servers another one may answer
		if time.Since(logged) > repeatLogInterval {
			logged = time.Now()
			q.log.Warn("the queue does not answer yet, trying again; its cluster may be electing a leader",
				zap.Error(q.conn.WithServers(err)))
		}
		if failure.Pause(ctx, pause) != nil {
			return q.conn.WithServers(err)
		}
	}
}

// repeatLogInterval is the time between repetitions of the same warning.
const repeatLogInterval = 10 * time.Second
