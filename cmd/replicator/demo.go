package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/cmd/replicator/demo"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/sandbox"
)

// drainTimeout is what the demo gives the replicator to apply what is left when the writer has stopped.
const drainTimeout = 2 * time.Minute

// galleryShare is the worked examples' part of the demo's writes; the rest goes to the catalogue.
const galleryShare = 0.25

// mappingsDir is where the worked examples' mappings lie, beside the demo's configuration.
const mappingsDir = "mappings"

// demoOptions are the flags of demo.
type demoOptions struct {
	duration time.Duration
	rate     int
	seed     uint64
	kills    int
	keep     string
}

func (a *app) demoCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the whole way on this machine: write, split, kill, resume, compare every cell",
		Long: `demo starts a sandbox (DynamoDB with streams, Bigtable) in this process and the replicator as a process of its own.
Applications write a product catalogue and, beside it, the tables of all worked examples of the mapping language; shards
split and rotate under them; the replicator is killed with kill -9 and started again. Then the writers stop, and every
item is compared with every row, cell by cell. Exit 4 if anything differs.`,
		Args: a.args(cobra.NoArgs),
		RunE: a.body(func(ctx context.Context, _ []string) error { return a.demo(ctx, o) }),
	}
	f := cmd.Flags()
	f.DurationVar(&o.duration, "duration", 30*time.Second, "how long the applications write")
	f.IntVar(&o.rate, "rate", 2000, "writes a second, all tables together")
	f.Uint64Var(&o.seed, "seed", 1, "of everything random")
	f.IntVar(&o.kills, "kills", 2, "how often the replicator is killed")
	f.StringVar(&o.keep, "keep", "", "keep configuration, log and archive in this directory")
	return cmd
}

func (a *app) demo(ctx context.Context, o demoOptions) (err error) {
	if o.duration < time.Second || o.rate < 1 || o.kills < 0 {
		return exit.Usage("for example --duration 30s --rate 2000 --kills 2", "nothing would happen")
	}
	d, err := newStage(a, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if err := d.prepare(ctx); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	if err := d.play(ctx); err != nil {
		return d.withLog(err)
	}
	if err := d.drain(ctx); err != nil {
		return d.withLog(err)
	}
	summary, err := d.compare(ctx)
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	if err := d.child.Stop(ctx); err != nil {
		return d.withLog(err)
	}
	if err := a.printSummary(summary); err != nil {
		return err
	}
	if !summary.Equal {
		return exit.Silent(exit.CodeDifferences)
	}
	return nil
}

// stage is everything that a demo has set up.
type stage struct {
	a      *app
	o      demoOptions
	dir    string
	log    *os.File // of the replicator
	began  time.Time
	played time.Duration

	sandbox *sandbox.Sandbox
	writer  *demo.Writer
	gallery *demo.Gallery
	stream  *demo.Stream
	child   *demo.Child
	cfg     *config.Config
	admin   string
	kills   int
	probes  probes
	bar     *bar // nil: progress is told in lines
	last    progress
}

func newStage(a *app, o demoOptions) (d *stage, err error) {
	d = &stage{a: a, o: o, dir: o.keep}
	if _, err := os.Stat(filepath.Join(d.dir, "log")); d.dir != "" && err == nil {
		return nil, exit.Usage("a sandbox begins from nothing, so its log has to as well: choose another directory", "%s holds the log of an earlier demo", d.dir)
	}
	if d.dir == "" {
		d.dir, err = os.MkdirTemp("", "tailrace-demo-")
	} else {
		err = os.MkdirAll(d.dir, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	if d.log, err = os.Create(filepath.Join(d.dir, "replicator.log")); err != nil {
		return nil, fmt.Errorf("make log file: %w", err)
	}
	if d.sandbox, err = sandbox.Start(sandbox.Options{Seed: o.seed, Sweep: time.Second, NoNATS: true}); err != nil {
		return nil, exit.Environment(err, "the demo needs free ports on loopback")
	}
	return d, nil
}

func (d *stage) close() error {
	if d.child != nil {
		_ = d.child.Kill() // after a good end nothing runs any more
	}
	errs := []error{d.sandbox.Close(), d.log.Close()}
	if d.o.keep == "" {
		errs = append(errs, os.RemoveAll(d.dir))
	}
	return errors.Join(errs...)
}

// withLog adds the replicator's last words to an error.
func (d *stage) withLog(err error) error {
	data, readErr := os.ReadFile(d.log.Name())
	if readErr != nil || len(data) == 0 {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	fmt.Fprintf(d.a.errs, "the replicator's last words:\n%s\n", strings.Join(lines[max(0, len(lines)-10):], "\n"))
	return err
}

// prepare makes table, configuration and schema, and starts the replicator.
func (d *stage) prepare(ctx context.Context) error {
	if err := d.environment(); err != nil {
		return err
	}
	beside := float64(d.o.rate) * galleryShare
	d.writer = &demo.Writer{Sandbox: d.sandbox, Seed: d.o.seed, Rate: float64(d.o.rate) - beside}
	d.gallery = &demo.Gallery{Sandbox: d.sandbox, Seed: d.o.seed, Rate: beside}
	d.stream = &demo.Stream{Sandbox: d.sandbox, Seed: d.o.seed, Every: max(time.Second, d.o.duration/12)}
	if err := errors.Join(d.writer.Create(), d.gallery.Create(), demo.WriteMappings(filepath.Join(d.dir, mappingsDir))); err != nil {
		return err
	}
	if err := d.configure(ctx); err != nil {
		return err
	}
	if err := d.makeSchema(ctx); err != nil {
		return err
	}
	d.child = &demo.Child{Args: []string{"run", "--config", d.a.configPath}, Log: d.log}
	return d.child.Start()
}

// environment points this process and its child at the sandbox.
func (d *stage) environment() error {
	for _, line := range d.sandbox.Env() {
		name, value, _ := strings.Cut(line, "=")
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	for name, value := range demo.Secrets {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return os.Unsetenv("AWS_PROFILE")
}

func (d *stage) configure(ctx context.Context) error {
	var err error
	if d.admin, err = freeAddress(ctx); err != nil {
		return err
	}
	b := &strings.Builder{}
	fmt.Fprintf(b, `pipeline: demo
source: {region: us-east-1, endpoint: %q, idle_poll: 200ms}
bigtable: {project: local, instance: local, endpoint: %q}
queue: {dir: ./log, max_bytes: 4GiB}
admin: {listen: %q}
archive: {file: ./archive}
testing: {claim_ttl: 3s, listing: 2s, describe: 5s, retry_halted: 2s}
tables:
- {source: %s, target: %s, on_ttl_expiry: archive}
`, d.sandbox.Endpoint(), os.Getenv("BIGTABLE_EMULATOR_HOST"), d.admin, demo.Table, demo.Target)
	for _, e := range demo.Examples {
		fmt.Fprintf(b, "- {source: %s, target: %s, mapping: %s}\n", e.Source, e.Target, filepath.Join(mappingsDir, e.Mapping))
	}
	d.a.configPath = filepath.Join(d.dir, "tailrace.yaml")
	if err := os.WriteFile(d.a.configPath, []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	d.cfg, err = d.a.config()
	return err
}

func (d *stage) makeSchema(ctx context.Context) error {
	src, err := d.a.source(ctx, d.cfg)
	if err != nil {
		return err
	}
	defer src.Close()
	all, err := d.a.programs(ctx, d.cfg, src)
	if err != nil {
		return err
	}
	sink, err := d.a.bigtable(ctx, d.cfg, src)
	if err != nil {
		return err
	}
	defer sink.Close()
	if _, err := sink.Ensure(ctx, wantedTables(d.cfg, all)); err != nil {
		return exit.Bigtable(err)
	}
	return nil
}

// play lets everybody work at once for the demo's duration.
func (d *stage) play(ctx context.Context) error {
	d.began = time.Now()
	if d.a.moving() {
		d.bar = newBar(d.a.errs, "writing", d.o.duration.Milliseconds())
		defer func() {
			d.bar.close()
			d.bar = nil
		}()
	}
	scene, cancel := context.WithCancel(ctx)
	defer cancel()
	g, scene := errgroup.WithContext(scene)
	killed := make(chan struct{})
	g.Go(func() error { defer cancel(); return d.curtain(scene, killed) })
	g.Go(func() error { return d.writer.Run(scene) })
	g.Go(func() error { return d.gallery.Run(scene) })
	g.Go(func() error { return d.stream.Run(scene) })
	g.Go(func() error { defer close(killed); return d.killer(scene) })
	g.Go(func() error { return d.show(scene) })
	g.Go(func() error { return d.probe(scene) })
	if err := g.Wait(); err != nil {
		return err
	}
	d.played = time.Since(d.began)
	return ctx.Err()
}

// killPatience is how much longer than asked for the demo goes on for a kill that is still to come: on a busy
// machine the replicator may need a while to be seen moving again.
const killPatience = 2 * time.Minute

// curtain returns when the time is over and the kills have happened.
func (d *stage) curtain(ctx context.Context, killed <-chan struct{}) error {
	over := time.NewTimer(d.o.duration)
	defer over.Stop()
	select {
	case <-ctx.Done():
		return nil
	case <-over.C:
	}
	late := time.NewTimer(killPatience)
	defer late.Stop()
	select {
	case <-ctx.Done():
	case <-killed:
	case <-late.C:
	}
	return nil
}

// killer kills the replicator at equal distances, but each time only after it has been seen to move on.
func (d *stage) killer(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	from := uint64(0)
	for d.kills < d.o.kills {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		due := d.o.duration * time.Duration(d.kills+1) / time.Duration(d.o.kills+1)
		status, ok := d.ask(ctx)
		if !ok || time.Since(d.began) < due || status.Tables[0].Changes <= from {
			continue
		}
		from = status.Tables[0].Changes
		if err := d.child.Kill(); err != nil {
			return err
		}
		d.kills++
		d.say("killed the replicator (-9) after %s changes; starting it again", humanize.Comma(int64(from)))
		if err := d.child.Start(); err != nil {
			return err
		}
	}
	return nil
}

// drain lets everything expire that is about to, and waits until all of it is applied.
func (d *stage) drain(ctx context.Context) error {
	d.say("the writers have stopped; draining")
	d.sandbox.DynamoDB.ExpireNow(d.sandbox.Clock.Now().Add(demo.SoonExpired))
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	src, stop := d.a.clock(ctx, d.cfg, demo.Table, true)
	defer stop()
	_, met, err := d.a.await(ctx, &looker{cfg: d.cfg, tables: d.cfg.Tables, src: src}, time.Time{})
	if err == nil && !met {
		err = fmt.Errorf("not everything was applied within %s", drainTimeout)
	}
	return err
}

func (d *stage) say(format string, args ...any) {
	if d.bar != nil {
		d.bar.say(fmt.Sprintf(format, args...))
		return
	}
	fmt.Fprintf(d.a.errs, format+"\n", args...)
}
