package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/admin"
	"github.com/tailrace-cdc/replicator/cmd/replicator/applied"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/heap"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

// lockPatience is how long run waits for a store that somebody else has open: a command that looks at it, or the
// predecessor that is about to end.
const lockPatience = 15 * time.Second

// runOptions are the flags of run.
type runOptions struct {
	drain, dry, upgrade bool
}

func (a *app) runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Carry the tables, until stopped",
		Long: `run is the daemon. The first SIGTERM or Ctrl-C finishes what is in hand within shutdown_timeout and saves the marks;
the second one ends it at once. Ending it in any way, at any moment, loses nothing.`,
		Args: a.args(cobra.NoArgs),
		RunE: a.body(func(ctx context.Context, _ []string) error { return a.run(ctx, o) }),
	}
	f := cmd.Flags()
	f.BoolVar(&o.drain, "drain-and-exit", false, "stop when everything that was written before the start is applied")
	f.BoolVar(&o.dry, "dry-run", false, "only check that it could run, as `replicator check` does")
	f.BoolVar(&o.upgrade, "upgrade", false, "raise logs of an older format to the newest: stop every older replicator first")
	cmd.MarkFlagsMutuallyExclusive("drain-and-exit", "dry-run")
	cmd.MarkFlagsMutuallyExclusive("upgrade", "dry-run")
	return cmd
}

func (a *app) run(ctx context.Context, o runOptions) (err error) {
	if o.dry {
		return a.check(ctx, checkOptions{sample: defaultSample})
	}
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if _, problems := parseMappings(cfg.Tables); config.Refused(problems) {
		return a.refused(problems)
	}
	log, reg := a.logger(zapcore.InfoLevel), registry()
	watcher := heap.NewWatcher(cfg, reg)
	ln, err := listenAdmin(ctx, cfg)
	if err != nil {
		return err
	}
	d := &daemon{a: a, cfg: cfg, log: log, reg: reg, admin: ln, upgrade: o.upgrade, heap: watcher}
	defer func() { err = errors.Join(err, d.close()) }()
	if err := d.open(ctx); err != nil {
		return err
	}
	log.Info("replicator starts", zap.String("version", buildVersion()), zap.String("pipeline", cfg.Pipeline), zap.Int("tables", len(cfg.Tables)))
	return d.run(ctx, o.drain)
}

// daemon is a running replicator: what it has open.
type daemon struct {
	a     *app
	cfg   *config.Config
	log   *zap.Logger
	reg   *prometheus.Registry
	admin net.Listener

	upgrade bool
	heap    *heap.Watcher

	services pipeline.Services
	src      *source.Source
	q        *queue.Queue
	sink     *bigtable.Client
	arch     archiveSink
}

func (d *daemon) open(ctx context.Context) (err error) {
	from := sourceOptions(d.cfg)
	from.Report = d.services.Reporter(pipeline.DynamoDB)
	if d.src, err = source.Open(ctx, from, d.log.Named("source"), d.reg); err != nil {
		return exit.Source(err)
	}
	if err := d.compile(ctx); err != nil {
		return err
	}
	if d.q, err = d.openQueue(ctx); err != nil {
		return exit.Queue(err, d.cfg)
	}
	to := bigtableOptions(d.cfg, d.src)
	to.Report = d.services.Reporter(pipeline.Bigtable)
	if d.sink, err = bigtable.Open(ctx, to, d.log.Named("bigtable"), d.reg); err != nil {
		return exit.Bigtable(err)
	}
	if d.arch, err = openArchive(ctx, d.cfg, d.q, d.log, d.reg); err != nil {
		return err
	}
	return nil
}

// compile refuses a mapping at once where DynamoDB can be asked. Where it cannot, each table waits for its answer.
func (d *daemon) compile(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	all, _ := parseMappings(d.cfg.Tables)
	for _, err := range describeTables(ctx, d.src, all) {
		d.log.Warn("table cannot be described yet", zap.Error(err), zap.String("hint", source.Hint(err)))
	}
	if problems := compile(d.cfg, all); config.Refused(problems) {
		return d.a.refused(problems)
	}
	return nil
}

func (d *daemon) openQueue(ctx context.Context) (*queue.Queue, error) {
	patience, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		o := queueOptions(d.cfg)
		o.Report = d.services.Reporter(pipeline.NATS)
		q, err := queue.Open(ctx, o, d.log.Named("queue"), d.reg)
		if !errors.Is(err, queue.ErrLocked) {
			return q, err
		}
		select {
		case <-patience.Done():
			return nil, err
		case <-tick.C:
		}
	}
}

// close closes what is open, last opened first.
func (d *daemon) close() error {
	var errs []error
	if d.arch != nil {
		errs = append(errs, d.arch.Close())
	}
	if d.sink != nil {
		errs = append(errs, d.sink.Close())
	}
	if d.q != nil {
		errs = append(errs, d.q.Close())
	}
	if d.src != nil {
		d.src.Close()
	}
	if err := d.admin.Close(); !errors.Is(err, net.ErrClosed) {
		errs = append(errs, err)
	}
	_ = d.log.Sync() // stderr of a terminal cannot be synced
	return errors.Join(errs...)
}

// run carries the tables until ctx ends, and answers over HTTP until they are drained.
func (d *daemon) run(ctx context.Context, drain bool) error {
	p := pipeline.New(d.options(), d.src, d.q, d.sink, d.arch, d.log, d.reg)
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	ctx, end := context.WithCancel(ctx)
	defer end()
	g.Go(func() error {
		defer end() // without its pages nobody would know how it is
		return admin.Serve(serving, d.admin, health{p}, d.reg, d.log.Named("admin"))
	})
	g.Go(func() error { return d.heap.Run(serving, d.log) })
	if drain {
		g.Go(func() error {
			defer end()
			return d.drained(ctx)
		})
	}
	g.Go(func() error {
		defer stop()
		err := p.Run(ctx)
		var refused *pipeline.RefusedError
		if errors.As(err, &refused) {
			return exit.Environment(err, refused.Hint)
		}
		return err
	})
	err := g.Wait()
	if lost := p.Unsaved(); len(lost) > 0 {
		d.log.Warn("replicator ends without saving all marks: what was applied since is applied again after the next start, as the same cells",
			zap.Strings("tables", lost))
	} else if err == nil {
		d.log.Info("replicator ends: marks are saved")
	}
	return err
}

// drained returns when everything that was written before the call is applied, or ctx has ended.
func (d *daemon) drained(ctx context.Context) error {
	l := &looker{cfg: d.cfg, tables: d.cfg.Tables, src: d.src, q: d.q}
	w := applied.New(serviceTime(d.src).Add(time.Second), len(l.tables))
	tick := time.NewTicker(statusPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		_, all, err := l.now(ctx)
		switch {
		case err != nil && (ctx.Err() != nil || queue.Classify(err) == failure.Transient):
		case err != nil:
			return fmt.Errorf("look at logs: %w", err)
		case w.Met(all):
			return nil
		default:
			w.Nudge(all)
		}
	}
}

func (d *daemon) options() pipeline.Options {
	t, c := &d.cfg.Testing, d.cfg
	o := pipeline.Options{
		Name: c.Pipeline, Owner: ownerName(), Upgrade: d.upgrade, Start: pipeline.Start{Latest: c.Source.Start.Latest, At: c.Source.Start.At},
		Services: &d.services,
		Memory:   int64(c.Memory.Total) / 6, // pages on their way into the log have a quarter; the rest is for what both become
		Periods: pipeline.Periods{
			ClaimTTL: time.Duration(t.ClaimTTL), Beat: time.Duration(t.Beat), Listing: time.Duration(t.Listing), Describe: time.Duration(t.Describe),
			Mark: time.Duration(t.MarkInterval), Trim: time.Duration(t.Trim), Retry: time.Duration(t.RetryHalted), Shutdown: time.Duration(c.ShutdownTimeout),
			Lead: time.Duration(t.Lead), Late: lateAfter(c),
		},
	}
	for _, table := range c.Tables {
		one := compiler(c, table, d.src)
		o.Tables = append(o.Tables, pipeline.Table{
			Source: table.Source, Target: table.Target, OnReject: table.OnReject, Archive: d.arch != nil,
			Compile: func(info source.TableInfo) (*transform.Program, error) {
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				return one(ctx, info)
			},
		})
	}
	return o
}

// lateAfter is how far behind a table may be before it must be seen to move: a shard that is idle is asked so seldom.
func lateAfter(c *config.Config) time.Duration {
	return pipeline.DefaultLate + 2*time.Duration(c.Source.IdlePoll)
}

// health lets the admin server ask a pipeline.
type health struct{ *pipeline.Pipeline }

// Status is the pipeline's, for encoding/json.
func (h health) Status() any { return h.Pipeline.Status() }

// registry has the process's own metrics too.
func registry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}

// ownerName is new at every start: two processes are never the same owner.
func ownerName() string {
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails
	host, err := os.Hostname()
	if err != nil {
		host = "replicator"
	}
	return host + "-" + hex.EncodeToString(id[:])
}

// listenAdmin takes the admin port before anything else is started.
func listenAdmin(ctx context.Context, cfg *config.Config) (net.Listener, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", cfg.Admin.Listen)
	if err != nil {
		return nil, exit.Environment(fmt.Errorf("listen for admin: %w", err), "another replicator? choose a port with admin.listen")
	}
	return ln, nil
}
