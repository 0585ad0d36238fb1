package clients

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/staterow"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
)

// AskTimeout is how long a command waits for the reply to one request: the clients' own retries are
// longer, for the daemon.
const AskTimeout = 5 * time.Second

// commandAttempts is how often a command calls DynamoDB before it reports that the service cannot
// be reached.
const commandAttempts = 3

// Logger returns a logger for a client: at the level of --log-level, or at the given one where that
// flag is not set.
type Logger func(otherwise zapcore.Level) *zap.Logger

// Clients holds the clients of one command or of the daemon. Each is opened when it is first asked
// for; Close closes all. Clients is not safe for concurrent use.
type Clients struct {
	cfg    *config.Config
	logger Logger
	daemon *daemonParts // nil: a command

	source   *source.Source
	queue    *queue.Queue
	bigtable *bigtable.Client
	bucket   bucket.Bucket
}

// daemonParts is what only the daemon's clients get.
type daemonParts struct {
	reg      prometheus.Registerer
	services *pipeline.Services
}

// ForCommand returns the clients of a command.
func ForCommand(cfg *config.Config, logger Logger) *Clients {
	return &Clients{cfg: cfg, logger: logger}
}

// ForDaemon returns the clients of the daemon: they count in reg, and report the outcome of each
// call to services.
func ForDaemon(cfg *config.Config, log *zap.Logger, reg prometheus.Registerer, services *pipeline.Services) *Clients {
	logger := func(zapcore.Level) *zap.Logger { return log }
	return &Clients{cfg: cfg, logger: logger, daemon: &daemonParts{reg, services}}
}

// Config returns the configuration that the clients follow.
func (c *Clients) Config() *config.Config { return c.cfg }

// Source returns the client of DynamoDB and its streams.
func (c *Clients) Source(ctx context.Context) (*source.Source, error) {
	if c.source != nil {
		return c.source, nil
	}
	o := sourceOptions(c.cfg)
	var reg prometheus.Registerer
	if c.daemon == nil {
		o.Attempts = commandAttempts
	} else {
		o.Report, reg = c.daemon.services.Reporter(status.DynamoDB), c.daemon.reg
	}
	src, err := source.Open(ctx, o, c.logger(zapcore.WarnLevel).Named("source"), reg)
	if err != nil {
		return nil, source.Explain(err)
	}
	c.source = src
	return src, nil
}

// Bigtable returns the client of Bigtable. For a command it reads one row first, because Google's
// client retries an address that does not answer until the deadline, and then does not report why.
func (c *Clients) Bigtable(ctx context.Context) (*bigtable.Client, error) {
	if c.bigtable != nil {
		return c.bigtable, nil
	}
	o, err := bigtableOptions(c.cfg)
	if err != nil {
		return nil, err
	}
	o.Now = c.Now
	var reg prometheus.Registerer
	if c.daemon != nil {
		o.Report, reg = c.daemon.services.Reporter(status.Bigtable), c.daemon.reg
	}
	sink, err := bigtable.Open(ctx, o, c.logger(zapcore.WarnLevel).Named("bigtable"), reg)
	if err != nil {
		return nil, bigtable.Explain(err)
	}
	if c.daemon == nil {
		if err := c.reach(ctx, sink); err != nil {
			_ = sink.Close()
			return nil, bigtable.Explain(fmt.Errorf("reach bigtable: %w", err))
		}
	}
	c.bigtable = sink
	return sink, nil
}

// Rows returns where the row of a table is kept: in Bigtable or, without a target, in the archive's
// bucket.
func (c *Clients) Rows(ctx context.Context, t *config.Table) (staterow.Store, error) {
	if !t.ArchivedOnly() {
		return c.Bigtable(ctx)
	}
	b, err := c.Bucket(ctx, bucket.Options{})
	if err != nil {
		return nil, err
	}
	return staterow.NewBucketStore(b), nil
}

// reach reads one row and returns the error of a server that cannot be reached. It ignores other
// errors: the caller's own calls report them.
func (c *Clients) reach(ctx context.Context, sink *bigtable.Client) error {
	ctx, cancel := context.WithTimeout(ctx, AskTimeout)
	defer cancel()
	table := "" // any will do
	if len(c.cfg.Tables) > 0 {
		table = c.cfg.Tables[0].Source
	}
	_, err := sink.LoadState(ctx, c.cfg.Pipeline, table)
	switch {
	case err != nil && ctx.Err() != nil: // nothing answers: a connection waits until the deadline, and has no error
		return fmt.Errorf("no answer for %s: %w", AskTimeout, err)
	case bigtable.Classify(err) == failure.Transient:
		return err
	}
	return nil
}

// Now returns the time of DynamoDB's clock, which positions and the sink's tombstones use; until
// DynamoDB has answered once, or without a Source, it is the time of this machine.
func (c *Clients) Now() time.Time {
	if c.source != nil {
		if ms, heard := c.source.Now(); heard {
			return ms.Time()
		}
	}
	return time.Now()
}

// ReadClock describes a table, so that Now returns the time of DynamoDB's clock. After an error Now
// returns the time of this machine.
func (c *Clients) ReadClock(ctx context.Context, table string) error {
	src, err := c.Source(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, AskTimeout)
	defer cancel()
	if _, err := src.Table(ctx, table); err != nil {
		if _, heard := src.Now(); !heard {
			return err
		}
	}
	return nil
}

// clockPeriod is the time between two questions for the time while it is uncertain.
const clockPeriod = time.Second

// AwaitClock blocks while the time of DynamoDB's clock is uncertain. An error means that ctx has
// ended.
//
// Rule 13: the first Date may be wrong. With one from an hour ago, all that was written before now
// would seem to be in Bigtable although the last hour is not.
func (c *Clients) AwaitClock(ctx context.Context, table string) error {
	for {
		src, err := c.Source(ctx)
		if err != nil || src.Certain() == nil {
			return nil //nolint:nilerr // Now returns the time of this machine
		}
		if err := failure.Pause(ctx, clockPeriod); err != nil {
			return err
		}
		_ = c.ReadClock(ctx, table) // without an answer it is asked again
	}
}

// ServiceTime returns the time of DynamoDB's clock, from a single request: ok is false where
// DynamoDB did not answer.
func (c *Clients) ServiceTime(ctx context.Context, table string) (now change.Millis, ok bool) {
	if c.source == nil {
		_ = c.ReadClock(ctx, table) // Now says whether it answered
	}
	if c.source == nil {
		return 0, false
	}
	return c.source.Now()
}

// Close closes the clients that were opened, the last one first. Clients may be used again
// afterwards.
func (c *Clients) Close() error {
	var errs []error
	if c.bucket != nil {
		errs = append(errs, c.bucket.Close())
	}
	if c.bigtable != nil {
		errs = append(errs, c.bigtable.Close())
	}
	errs = append(errs, c.CloseQueue())
	if c.source != nil {
		c.source.Close()
	}
	c.bucket, c.bigtable, c.source = nil, nil, nil
	return errors.Join(errs...)
}

// ListenAdmin listens on the address of the admin server.
func ListenAdmin(ctx context.Context, cfg *config.Config) (net.Listener, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", cfg.Admin.Listen)
	if err != nil {
		return nil, failure.With(failure.Unready, "another replicator? choose a port with admin.listen",
			fmt.Errorf("listen for admin: %w", err))
	}
	return ln, nil
}
