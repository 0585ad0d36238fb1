package daemon

import (
	"cmp"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/admin"
	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
)

// Options are what a daemon is given beside its configuration.
type Options struct {
	Version string
	Adopt   bool // targets that another pipeline has written
	Log     *zap.Logger
	// Announce is called once everything is open and nothing was written yet, with the tables as
	// far as DynamoDB describes them; nil: it is not called. sink is nil when every table is
	// archived only.
	Announce func(ctx context.Context, cfg *config.Config, tables *catalog.Catalog, sink *bigtable.Client) error
	// Show is called every second with the status; nil: it is not shown.
	Show func(*pipeline.Status)
}

// Daemon is a running replicator: what it has open.
type Daemon struct {
	o        Options
	cfg      *config.Config                // with the tables that were found at the start
	now      atomic.Pointer[config.Config] // with those that are replicated now
	finder   *catalog.Finder               // nil: the configuration names every table
	log      *zap.Logger
	errors   *admin.ErrorLog // what log said last, for the status page
	reg      *prometheus.Registry
	heap     *HeapWatcher
	admin    net.Listener
	owner    string // this process
	traces   *Traces
	pushed   *Pushed
	services pipeline.Services
	outages  outages // begins and ends of failures of services, for the status page
	clients  *clients.Clients
	source   *source.Source
	pipeline *pipeline.Pipeline
}

// New takes the admin port, and makes the clients, which connect when they are used first.
func New(ctx context.Context, cfg *config.Config, o Options) (*Daemon, error) {
	build := BuildOf(o.Version)
	d := &Daemon{o: o, cfg: cfg, errors: &admin.ErrorLog{}, owner: OwnerName(), reg: Registry(build)}
	d.log = o.Log.WithOptions(zap.WrapCore(d.errors.Beside))
	d.heap = NewHeapWatcher(cfg, d.reg)
	d.now.Store(cfg)
	var err error
	if d.admin, err = clients.ListenAdmin(ctx, cfg); err != nil {
		return nil, cmp.Or(clients.StoreInUse(cfg), err) // a second daemon of one volume lacks more than a port
	}
	d.services.OnChange(d.noteService)
	d.clients = clients.ForDaemon(cfg, d.log, d.reg, &d.services)
	if cfg.Metrics.Endpoint != "" || cfg.Tracing.Endpoint != "" {
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
			d.log.Warn("traces or metrics for the collector are lost", zap.Error(err))
		}))
	}
	if d.pushed, err = PushMetrics(ctx, cfg, build, d.owner, d.reg, d.log); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if d.traces, err = Tracing(ctx, cfg, build, d.owner, d.log); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Open opens the clients and wires the pipeline; tables are those that the file names. It returns
// the problems of their mappings, and opens no more where one of them is an error.
func (d *Daemon) Open(ctx context.Context, tables *catalog.Catalog) (problems []problem.Problem, err error) {
	src, err := d.clients.Source(ctx)
	if err != nil {
		return nil, err
	}
	if problems = d.compile(ctx, src, tables); problem.AnyError(problems) {
		return problems, nil
	}
	q, err := d.clients.Queue(ctx)
	if err != nil {
		return problems, err
	}
	if err := d.find(ctx, src, q); err != nil {
		return problems, err
	}
	var sink *bigtable.Client // nil: every table is archived only
	if d.cfg.Replicates() {
		if sink, err = d.clients.Bigtable(ctx); err != nil {
			return problems, err
		}
	}
	if err := d.announce(ctx, src, tables, sink); err != nil {
		return problems, err
	}
	arch, err := d.clients.Archive(ctx)
	if err != nil {
		return problems, err
	}
	d.log.Info("replicator starts", zap.String("version", d.o.Version), zap.String("pipeline", d.cfg.Pipeline),
		zap.String("owner", d.owner), zap.Int("tables", len(d.cfg.Tables)))
	d.source, d.pipeline = src, pipeline.New(d.options(src, arch), src, q, sink, d.log, d.reg)
	return problems, nil
}

// announce calls Announce with the tables of the file and those that were found.
func (d *Daemon) announce(
	ctx context.Context, src *source.Source, tables *catalog.Catalog, sink *bigtable.Client,
) error {
	if d.o.Announce == nil {
		return nil
	}
	if d.finder != nil {
		tables, _ = catalog.Parse(d.cfg)
		d.describe(ctx, src, tables)
	}
	return d.o.Announce(ctx, d.cfg, tables, sink)
}

const describeTimeout = 10 * time.Second // that DynamoDB has for the tables at the start

// compile compiles the mappings of the tables that DynamoDB describes now, so that a mapping with
// errors is refused at once. The other tables are compiled when they can be described.
func (d *Daemon) compile(ctx context.Context, src *source.Source, tables *catalog.Catalog) []problem.Problem {
	d.describe(ctx, src, tables)
	return append(tables.Compile(), tables.Settings()...)
}

func (d *Daemon) describe(ctx context.Context, src *source.Source, tables *catalog.Catalog) {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	for _, err := range tables.Describe(ctx, src) {
		d.log.Warn("table cannot be described yet", zap.Error(err), zap.String("hint", source.Hint(err)))
	}
}

// options returns the options of the pipeline.
func (d *Daemon) options(src *source.Source, arch *archiving.Place) pipeline.Options {
	o := PipelineOptions(d.cfg, src)
	o.Owner, o.Build, o.Adopt, o.Services = d.owner, d.o.Version, d.o.Adopt, &d.services
	o.Archive, o.Tracer = arch, d.traces.Tracer()
	for i := range d.cfg.Tables {
		d.watch(&d.cfg.Tables[i], &o.Tables[i])
	}
	return o
}

// watch lets a found table begin as the finder decides.
func (d *Daemon) watch(t *config.Table, o *pipeline.Table) {
	if t.Found {
		o.NewAfter, o.Sole = d.finder.FirstStart, t.Target != ""
	}
}

// Run replicates the tables until ctx ends. If drain is not nil, it also ends once everything that
// was written before the start is in Bigtable, but for what drain accepts. The admin server and the
// heap watcher run on until the tables have drained.
func (d *Daemon) Run(ctx context.Context, drain *protocol.Accept) error {
	p := d.pipeline
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	ctx, end := context.WithCancel(ctx)
	defer end()
	g.Go(func() error {
		defer end() // without the admin server the daemon could not be observed
		metrics := WithTargets(d.reg, func() []config.Table { return d.now.Load().Tables })
		err := admin.Serve(serving, d.admin, admin.Options{
			Health: health{p, d.errors, &d.outages, d.o.Version}, Metrics: metrics,
			Hosts: d.now.Load().Admin.Hosts, Log: d.log.Named("admin"),
		})
		if err != nil {
			d.log.Error("replicator is ended by an error of its admin server", zap.Error(err))
		}
		return err
	})
	g.Go(func() error { return d.heap.Run(serving, d.log) })
	if d.finder != nil {
		g.Go(func() error { return d.finder.Run(ctx, growing{d, p, d.source}) })
	}
	if d.o.Show != nil {
		g.Go(func() error {
			for failure.Pause(serving, time.Second) == nil {
				s := p.Status()
				d.o.Show(&s)
			}
			return nil
		})
	}
	if drain != nil {
		g.Go(func() error {
			defer end()
			err := control.NewObserver(d.cfg, d.cfg.Tables, d.clients).UntilApplied(ctx, *drain)
			if ctx.Err() == nil {
				d.log.Info("replicator is ended by --drain-and-exit: the wait is over", zap.Error(err))
			}
			return err
		})
	}
	g.Go(func() error {
		defer stop()
		err := p.Run(ctx)
		var refused *pipeline.RefusedError
		if errors.As(err, &refused) {
			return failure.With(failure.Unready, refused.Hint, err)
		}
		return err
	})
	err := g.Wait()
	if tables := p.Unsaved(); len(tables) > 0 {
		d.log.Warn("replicator ends, and logs are not released with their newest marks: what was applied behind "+
			"the stored marks is applied again after the next start, as the same cells", zap.Strings("tables", tables))
	} else if err == nil {
		d.log.Info("replicator ends: each log that it owned is released, with its newest marks")
	}
	return err
}

// Close closes the clients and, if the admin server has not, its port.
func (d *Daemon) Close() error {
	d.traces.End()
	d.pushed.End()
	err := d.clients.Close()
	if closed := d.admin.Close(); !errors.Is(closed, net.ErrClosed) {
		err = errors.Join(err, closed)
	}
	_ = d.log.Sync() // stderr of a terminal cannot be synced
	return err
}

// health is a pipeline as the admin server needs it.
type health struct {
	*pipeline.Pipeline
	errors  *admin.ErrorLog
	outages *outages
	version string
}

// Past returns what the page shows of what happened before now.
func (h health) Past(source string, events int) pipeline.Past {
	past := h.Pipeline.Past(source, events)
	past.Events = status.Newest(events, past.Events, h.outages.all())
	return past
}

// Table returns what the page of a table shows beside the status.
func (h health) Table(ctx context.Context, source string) (admin.TablePage, bool) {
	detail, hour, ok := h.Detail(ctx, source)
	return admin.TablePage{Detail: detail, Hour: hour, Errors: h.errors.Of(source)}, ok
}

// Version names the build.
func (h health) Version() string { return h.version }
