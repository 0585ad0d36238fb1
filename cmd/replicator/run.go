package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/admin"
	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/bars"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/dry"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/upgrading"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/daemon"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/preflight"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

// runOptions are the flags of run.
type runOptions struct {
	drain, dry, adopt, trial bool
	accept                   []string
	rehearsal                dry.Options
}

// bind declares the flags.
func (o *runOptions) bind(f *pflag.FlagSet) {
	f.BoolVar(&o.drain, "drain-and-exit", false, "stop when everything that was written before the start "+
		"is in Bigtable; exit code 4 when gaps or dead letters stand before that")
	f.StringSliceVar(&o.accept, "accept", nil, "with --drain-and-exit: obstacles that do not count: gaps, letters")
	f.BoolVar(&o.dry, "dry-run", false,
		"read the streams and apply the mappings, write nothing, and say what a run would do and cost")
	f.DurationVar(&o.rehearsal.Duration, "duration", 0, "with --dry-run: how long; without it until Ctrl-C")
	f.StringVar(&o.rehearsal.From, "from", dry.Latest, "with --dry-run: latest or trim_horizon")
	f.BoolVar(&o.adopt, "adopt", false,
		"take targets that another pipeline has written: only at a first start, and only when that pipeline is stopped")
	f.BoolVar(&o.trial, "trial", false, "also where a power cut could lose what the log holds: for the demo")
	_ = f.MarkHidden("trial") // the flag exists
}

// runCommand returns the command `replicator run`.
func (a *app) runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Replicate the tables until stopped",
		Long: `run is the daemon. The first SIGTERM or Ctrl-C finishes the work in progress within shutdown_timeout and saves
the marks; the second one ends it at once. Ending it in any way, at any moment, loses nothing.`,
		Args: a.Args(cobra.NoArgs),
		RunE: a.Body(func(ctx context.Context, _ []string) error { return a.run(ctx, o) }),
	}
	o.bind(cmd.Flags())
	cmd.MarkFlagsMutuallyExclusive("drain-and-exit", "dry-run")
	cmd.MarkFlagsMutuallyExclusive("adopt", "dry-run")
	cmd.SetFlagErrorFunc(upgrading.FlagError(a.App))
	return cmd
}

// run reads and checks the configuration, takes the admin port, opens the clients (package clients
// has the picture), and replicates the tables until ctx ends.
func (a *app) run(ctx context.Context, o runOptions) (err error) {
	if o.dry {
		return dry.Run(ctx, a.App, o.rehearsal)
	}
	if o.rehearsal != (dry.Options{From: dry.Latest}) {
		return failure.Usagef("`replicator run --dry-run`, or without them", "--duration and --from belong to --dry-run")
	}
	accept, err := acceptOf(o.accept, o.drain, "--drain-and-exit")
	if err != nil {
		return err
	}
	cfg, err := a.File()
	if err != nil {
		return err
	}
	problems := catalog.Mappings(cfg)
	if !o.trial {
		problems = append(problems, preflight.NotDurable(cfg)...)
	}
	if problem.AnyError(problems) {
		return a.Refused(problems)
	}
	tables, _ := catalog.Parse(cfg)
	if a.ShowsBars() {
		a.Bars = bars.New(a.Errs)
		defer a.Bars.Close()
	}
	build := clients.BuildOf(buildVersion())
	d := newDaemon(cfg, o)
	d.bars, d.reg = a.Bars, clients.Registry(build)
	d.log = a.Logger(zapcore.InfoLevel).WithOptions(zap.WrapCore(d.errors.Beside))
	d.heap = daemon.NewHeapWatcher(cfg, d.reg)
	d.now.Store(cfg)
	if d.admin, err = clients.ListenAdmin(ctx, cfg); err != nil {
		return err
	}
	d.clients = clients.ForDaemon(cfg, d.log, d.reg, &d.services)
	defer func() { err = errors.Join(err, d.close()) }()
	if d.traces, err = clients.Tracing(ctx, cfg, build, d.owner, d.log); err != nil {
		return err
	}
	p, err := a.open(ctx, d, tables)
	if err != nil {
		return err
	}
	return d.run(ctx, p, accept)
}

// open opens the clients and wires the pipeline; tables are those that the file names.
func (a *app) open(ctx context.Context, d *replicator, tables *catalog.Catalog) (none growing, err error) {
	src, err := d.clients.Source(ctx)
	if err != nil {
		return none, err
	}
	if problems := d.compile(ctx, src, tables); problem.AnyError(problems) {
		return none, a.Refused(problems)
	}
	q, err := d.clients.Queue(ctx)
	if err != nil {
		return none, err
	}
	if err := d.find(ctx, src, q); err != nil {
		return none, err
	}
	if d.finder != nil && a.Terminal() { // the copies are announced
		tables, _ = catalog.Parse(d.cfg)
		d.describe(ctx, src, tables)
	}
	var sink *bigtable.Client // nil: every table is archived only
	if d.cfg.Replicates() {
		if sink, err = d.clients.Bigtable(ctx); err != nil {
			return none, err
		}
	}
	if err := a.announceCopies(ctx, d, tables, sink); err != nil {
		return none, err
	}
	arch, err := d.clients.Archive(ctx)
	if err != nil {
		return none, err
	}
	d.log.Info("replicator starts", zap.String("version", buildVersion()), zap.String("pipeline", d.cfg.Pipeline),
		zap.String("owner", d.owner), zap.Int("tables", len(d.cfg.Tables)))
	p := pipeline.New(d.options(src, arch), src, q, sink, d.log, d.reg)
	return growing{d, p, src}, nil
}

// announceDelay is how long run waits on a terminal before it begins to copy tables.
const announceDelay = 10 * time.Second

// announceCopies says on a terminal what the copies take that are about to begin, and which tables are not copied, and
// waits: a copy costs money, and Ctrl-C leaves everything as it was. The log says both without a terminal.
func (a *app) announceCopies(ctx context.Context, d *replicator, tables *catalog.Catalog, sink *bigtable.Client) error {
	copies, problems := preflight.FirstStarts(ctx, d.cfg, tables, sink)
	if !a.Terminal() {
		return nil
	}
	for _, p := range problems {
		fmt.Fprintln(a.Errs, p.String())
	}
	if len(copies) == 0 {
		return nil
	}
	for _, text := range copies {
		fmt.Fprintln(a.Errs, text)
	}
	fmt.Fprintf(a.Errs, "%s\nThe copies begin in %s, beside the stream; Ctrl-C stops, nothing was written yet.\n",
		preflight.PriceNote(), announceDelay)
	return failure.Pause(ctx, announceDelay)
}

// replicator is a running one: what it has open.
type replicator struct {
	cfg      *config.Config                // with the tables that were found at the start
	now      atomic.Pointer[config.Config] // with those that are replicated now
	finder   *catalog.Finder               // nil: the configuration names every table
	bars     *bars.Bars                    // nil: stderr is no terminal
	adopt    bool
	log      *zap.Logger
	errors   *admin.ErrorLog // what log said last, for the status page
	reg      *prometheus.Registry
	heap     *daemon.HeapWatcher
	admin    net.Listener
	owner    string // this process
	traces   *clients.Traces
	services pipeline.Services
	clients  *clients.Clients
}

// newDaemon returns a daemon that has nothing open yet.
func newDaemon(cfg *config.Config, o runOptions) *replicator {
	return &replicator{cfg: cfg, adopt: o.adopt, errors: &admin.ErrorLog{}, owner: clients.OwnerName()}
}

const describeTimeout = 10 * time.Second // that DynamoDB has for the tables at the start

// compile compiles the mappings of the tables that DynamoDB describes now, so that a mapping with errors is refused at
// once. The other tables are compiled when they can be described.
func (d *replicator) compile(ctx context.Context, src *source.Source, tables *catalog.Catalog) []problem.Problem {
	d.describe(ctx, src, tables)
	return append(tables.Compile(), tables.Settings()...)
}

func (d *replicator) describe(ctx context.Context, src *source.Source, tables *catalog.Catalog) {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	for _, err := range tables.Describe(ctx, src) {
		d.log.Warn("table cannot be described yet", zap.Error(err), zap.String("hint", source.Hint(err)))
	}
}

// options returns the options of the pipeline.
func (d *replicator) options(src *source.Source, arch *archiving.Place) pipeline.Options {
	o := clients.PipelineOptions(d.cfg)
	o.Owner, o.Build, o.Adopt, o.Services = d.owner, buildVersion(), d.adopt, &d.services
	o.Archive, o.Tracer = arch, d.traces.Tracer()
	for i, table := range d.cfg.Tables {
		o.Tables[i] = d.table(src, d.cfg, table)
	}
	return o
}

// table returns the options of a table of a configuration. That has all tables that share its target.
func (d *replicator) table(src *source.Source, cfg *config.Config, table config.Table) pipeline.Table {
	o := clients.TableOptions(cfg, &table)
	o.Compile = func(info source.TableInfo) (*transform.Program, error) {
		ctx, cancel := context.WithTimeout(context.Background(), compileTimeout)
		defer cancel()
		return catalog.CompileTable(ctx, cfg, src, table, info)
	}
	o.Sharing = func(info source.TableInfo) (others []*transform.Program, err error) {
		own, all, err := compileTarget(src, cfg, table, info, nil)
		return slices.DeleteFunc(all, func(p *transform.Program) bool { return p == own }), err
	}
	o.CompileKept = func(
		info source.TableInfo, text []byte,
	) (own *transform.Program, all []*transform.Program, err error) {
		return compileTarget(src, cfg, table, info, text)
	}
	if table.Found {
		o.NewAfter, o.Sole = d.finder.FirstStart, table.Target != ""
	}
	return o
}

// compileTarget compiles the mappings of all tables that share a table's target.
func compileTarget(
	src *source.Source, cfg *config.Config, table config.Table, info source.TableInfo, kept []byte,
) (own *transform.Program, all []*transform.Program, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), compileTimeout)
	defer cancel()
	return catalog.CompileTarget(ctx, cfg, src, table, info, kept)
}

// compileTimeout is how long DynamoDB has to describe the tables that share a target, when one of them is compiled.
const compileTimeout = 30 * time.Second

// run replicates the tables until ctx ends. If drain is not nil, it also ends once everything that was
// written before the start is in Bigtable, but for what drain accepts. The admin server and the heap
// watcher run on until the tables have drained.
func (d *replicator) run(ctx context.Context, p growing, drain *protocol.Accept) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	ctx, end := context.WithCancel(ctx)
	defer end()
	g.Go(func() error {
		defer end() // without the admin server the daemon could not be observed
		metrics := clients.WithTargets(d.reg, func() []config.Table { return d.now.Load().Tables })
		return admin.Serve(serving, d.admin, admin.Options{
			Health: health{p.Pipeline, d.errors}, Metrics: metrics,
			Hosts: d.now.Load().Admin.Hosts, Log: d.log.Named("admin"),
		})
	})
	g.Go(func() error { return d.heap.Run(serving, d.log) })
	if d.finder != nil {
		g.Go(func() error { return d.finder.Run(ctx, p) })
	}
	if d.bars != nil {
		g.Go(func() error {
			for failure.Pause(serving, time.Second) == nil {
				d.bars.Show(render.Steps(p.Status(), ""))
			}
			return nil
		})
	}
	if drain != nil {
		g.Go(func() error {
			defer end()
			return control.NewObserver(d.cfg, d.cfg.Tables, d.clients).UntilApplied(ctx, *drain)
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
		d.log.Warn("replicator ends without saving all marks: "+
			"what was applied since is applied again after the next start, as the same cells", zap.Strings("tables", tables))
	} else if err == nil {
		d.log.Info("replicator ends: marks are saved")
	}
	return err
}

// close closes the clients and, if the admin server has not, its port.
func (d *replicator) close() error {
	d.traces.End()
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
	errors *admin.ErrorLog
}

// Table returns what the page of a table shows beside the status.
func (h health) Table(ctx context.Context, source string) (admin.TablePage, bool) {
	detail, hour, ok := h.Detail(ctx, source)
	return admin.TablePage{Detail: detail, Hour: hour, Errors: h.errors.Of(source)}, ok
}

// Version names the build.
func (health) Version() string { return buildVersion() }
