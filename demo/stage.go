package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

const (
	drainTimeout = 2 * time.Minute // without progress, while what is left is applied when the writers have stopped
	killTimeout  = 2 * time.Minute // after the duration, for kills that are still due: a slow replicator is killed late
	galleryShare = 0.25            // share of the writes that go to the worked examples; the rest goes to the catalogue
	oldShare     = 6               // the catalogue first holds as many items as are written in this part of the duration
	maxOld       = 100_000         // of the catalogue
	readShare    = 6               // they are read in this part of the duration
	mappingsDir  = "mappings"      // of the worked examples' mappings, beside the configuration
	logName      = "replicator.log"
)

// Options are the choices of a demo.
type Options struct {
	Duration time.Duration // how long the applications write
	Rate     int           // writes a second, all tables together
	Seed     uint64        // seed of everything random
	Kills    int           // how often the replicator is killed
	Dir      string        // keeps configuration, log and archive; "": they are removed at the end
	Logger   clients.Logger

	Say      func(line string)     // prints one line about an event
	Progress func(*Progress) error // called every second while the applications write
}

// Stage is everything that a demo has set up. Its methods are called in this order: Prepare, Play,
// Drain, Conclude, Stop, and Close in any case.
type Stage struct {
	o      Options
	dir    string
	log    *os.File // standard error of the replicator
	began  time.Time
	played time.Duration

	sandbox *sandbox.Sandbox
	old     *Old
	writer  *Writer
	gallery *Gallery
	stream  *Stream
	child   *Child
	cfg     *config.Config
	kills   int
	lags    lags
	copied  copied
	last    Progress // the last one for which the replicator answered
	pause   string   // why reading pauses, as it was said last
}

// New makes the directory and starts the sandbox.
func New(o Options) (*Stage, error) {
	s := &Stage{o: o, dir: o.Dir}
	if _, err := os.Stat(filepath.Join(s.dir, "log")); s.dir != "" && err == nil {
		return nil, failure.Usagef("the sandbox starts empty, so the log must be empty too: choose another directory",
			"%s holds the log of an earlier demo", s.dir)
	}
	var err error
	if s.dir == "" {
		s.dir, err = os.MkdirTemp("", "tailrace-demo-")
	} else {
		err = os.MkdirAll(s.dir, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	if s.log, err = os.Create(filepath.Join(s.dir, logName)); err != nil {
		return nil, fmt.Errorf("make log file: %w", err)
	}
	if s.sandbox, err = sandbox.Start(sandbox.Options{Seed: o.Seed, Sweep: time.Second, NoNATS: true}); err != nil {
		return nil, failure.With(failure.Unready, "the demo needs free ports on loopback", err)
	}
	return s, nil
}

// Prepare makes the tables and fills them, makes configuration and schema, and starts the
// replicator.
func (s *Stage) Prepare(ctx context.Context) error {
	if err := s.setEnvironment(); err != nil {
		return err
	}
	galleryRate := float64(s.o.Rate) * galleryShare
	written := s.o.Rate * int(s.o.Duration/time.Second)
	s.old = &Old{Sandbox: s.sandbox, Seed: s.o.Seed, Catalog: min(max(written/oldShare, 1000), maxOld)}
	s.writer = &Writer{Sandbox: s.sandbox, Seed: s.o.Seed, Rate: float64(s.o.Rate) - galleryRate}
	s.gallery = &Gallery{Sandbox: s.sandbox, Seed: s.o.Seed, Rate: galleryRate}
	s.stream = &Stream{Sandbox: s.sandbox, Seed: s.o.Seed, Every: max(time.Second, s.o.Duration/12)}
	err := errors.Join(s.writer.Create(), s.gallery.Create(), WriteMappings(filepath.Join(s.dir, mappingsDir)))
	if err != nil {
		return err
	}
	if err := s.old.Fill(); err != nil {
		return err
	}
	path, err := s.configure(ctx)
	if err != nil {
		return err
	}
	if err := s.makeSchema(ctx); err != nil {
		return err
	}
	s.o.Say(fmt.Sprintf("%d tables hold %s items that no stream shows. "+
		"The replicator starts, and copies them beside the stream:\n"+
		"an item waits some seconds between its reading and its writing, until the stream has passed the reading",
		len(s.cfg.Tables), humanize.Comma(s.old.Total())))
	s.child = &Child{Args: []string{"run", "--trial", "--config", path}, Log: s.log}
	return s.child.Start()
}

// setEnvironment points this process and its child at the sandbox.
func (s *Stage) setEnvironment() error {
	for _, line := range s.sandbox.Env() {
		name, value, _ := strings.Cut(line, "=")
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	for name, value := range Secrets {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return os.Unsetenv("AWS_PROFILE")
}

// configure writes the configuration file, reads it back and returns its path.
func (s *Stage) configure(ctx context.Context) (path string, err error) {
	admin, err := freeAddress(ctx)
	if err != nil {
		return "", err
	}
	copied := s.old.backfill(s.o.Duration / readShare)
	b := &strings.Builder{}
	fmt.Fprintf(b, `pipeline: demo
source: {region: us-east-1, endpoint: %q, idle_poll: 200ms}
bigtable: {project: local, instance: local, endpoint: %q}
queue: {dir: ./log, max_bytes: 4GiB}
admin: {listen: %q}
archive: {url: "file://archive", roll: 1s}
testing: {date_trust: 1ns, claim_ttl: 3s, listing: 2s, describe: 5s, retry_halted: 2s}
tables:
- {source: %s, target: %s, on_ttl_expiry: archive, backfill: %s}
`, s.sandbox.Endpoint(), os.Getenv("BIGTABLE_EMULATOR_HOST"), admin, Table, Target, copied)
	for _, e := range Examples {
		fmt.Fprintf(b, "- {source: %s, target: %s, mapping: %s}\n", e.Source, e.Target, filepath.Join(mappingsDir, e.Mapping))
	}
	path = filepath.Join(s.dir, configName)
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		return "", fmt.Errorf("write configuration: %w", err)
	}
	cfg, problems, err := config.Load(path)
	if err == nil && problem.AnyError(problems) {
		err = &catalog.ProblemsError{Problems: problems}
	}
	s.cfg = cfg
	return path, err
}

// freeAddress returns an address on loopback whose port no process uses at this moment.
func freeAddress(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", failure.With(failure.Unready, "the demo needs free ports on loopback", err)
	}
	return ln.Addr().String(), ln.Close()
}

// makeSchema makes the Bigtable tables that the mappings need.
func (s *Stage) makeSchema(ctx context.Context) error {
	clients := clients.ForCommand(s.cfg, s.o.Logger)
	defer clients.Close()
	src, err := clients.Source(ctx)
	if err != nil {
		return err
	}
	tables, err := catalog.Load(ctx, s.cfg, src)
	if err != nil {
		return err
	}
	sink, err := clients.Bigtable(ctx)
	if err != nil {
		return err
	}
	if _, err := sink.Ensure(ctx, tables.BigtableTables()); err != nil {
		return bigtable.Explain(err)
	}
	return nil
}

// Play runs applications, stream and killer concurrently for the demo's duration, and longer if
// kills are still due.
func (s *Stage) Play(ctx context.Context) error {
	s.began = time.Now()
	playing, cancel := context.WithCancel(ctx)
	defer cancel()
	g, playing := errgroup.WithContext(playing)
	killed := make(chan struct{})
	g.Go(func() error { defer cancel(); s.waitForEnd(playing, killed); return nil })
	g.Go(func() error { return s.writer.Run(playing) })
	g.Go(func() error { return s.gallery.Run(playing) })
	g.Go(func() error { return s.stream.Run(playing) })
	g.Go(func() error { defer close(killed); return s.killer(playing) })
	g.Go(func() error { return s.report(playing) })
	g.Go(func() error { return s.probe(playing) })
	if err := g.Wait(); err != nil {
		return err
	}
	s.played = time.Since(s.began)
	return ctx.Err()
}

// waitForEnd returns when the duration is over and the kills have happened.
func (s *Stage) waitForEnd(ctx context.Context, killed <-chan struct{}) {
	over := time.NewTimer(s.o.Duration)
	defer over.Stop()
	select {
	case <-ctx.Done():
		return
	case <-over.C:
	}
	late := time.NewTimer(killTimeout)
	defer late.Stop()
	select {
	case <-ctx.Done():
	case <-killed:
	case <-late.C:
	}
}

// killer kills the replicator and starts it again, at equal intervals, but each time only after its
// status has shown new changes.
func (s *Stage) killer(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	atLastKill := uint64(0)
	for s.kills < s.o.Kills {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		status := s.status(ctx)
		if status == nil || status.Tables[0].Changes <= atLastKill || !s.killIsDue(&status.Tables[0]) {
			continue
		}
		atLastKill = status.Tables[0].Changes
		if err := s.child.Kill(); err != nil {
			return err
		}
		s.kills++
		s.o.Say(fmt.Sprintf("killed the replicator (-9) after %s changes%s; starting it again",
			humanize.Comma(int64(atLastKill)), inTheCopy(&status.Tables[0])))
		if err := s.child.Start(); err != nil {
			return err
		}
	}
	return nil
}

// killIsDue reports whether the next kill is due. While the catalogue is copied, the first one
// waits until half of it is written, and the second one until all of it is, but neither for long:
// an item that was read waits about seven seconds before it is written, and after a kill it is read
// again.
func (s *Stage) killIsDue(catalog *pipeline.TableStatus) bool {
	elapsed := time.Since(s.began)
	due := s.o.Duration * time.Duration(s.kills+1) / time.Duration(s.o.Kills+1)
	switch {
	case catalog.State == "running":
		return elapsed >= due
	case s.kills > 0:
		return elapsed >= due+s.o.Duration/6
	}
	return catalog.Copy != nil && catalog.Copy.Items >= s.old.items[Table]/2 || elapsed >= due+s.o.Duration/3
}

// inTheCopy returns how far the copy of a table is; "" without one.
func inTheCopy(t *pipeline.TableStatus) string {
	if t.Copy == nil || t.Copy.Percent >= 99 { // all items are there, and the last marks are on their way
		return ""
	}
	return fmt.Sprintf(", its copy at %.0f %%", t.Copy.Percent)
}

var errStuck = fmt.Errorf("not everything was applied, and for %s nothing more was", drainTimeout)

// Drain expires the items that are due within SoonExpired, and waits until every change is applied.
func (s *Stage) Drain(ctx context.Context) error {
	s.o.Say("the writers have stopped; draining")
	s.sandbox.DynamoDB.ExpireNow(s.sandbox.Clock.Now().Add(SoonExpired))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	patience := time.AfterFunc(drainTimeout, func() { cancel(errStuck) })
	defer patience.Stop()
	clients := clients.ForCommand(s.cfg, s.o.Logger)
	defer clients.Close()
	if err := clients.ReadClock(ctx, Table); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { s.watchDrain(watching, func() { patience.Reset(drainTimeout) }) })
	accept := protocol.Accept{Gaps: true, Letters: true} // the summary counts them
	_, reached, err := control.NewObserver(s.cfg, s.cfg.Tables, clients).Await(ctx, time.Time{}, accept)
	stop()
	watch.Wait()
	if errors.Is(context.Cause(ctx), errStuck) || err == nil && !reached.Met {
		err = errStuck
	}
	if err != nil && s.pause != "" {
		err = failure.With(failure.Unready, s.pause, fmt.Errorf("%w: reading pauses", err))
	}
	return err
}

// Stop stops the replicator with SIGTERM.
func (s *Stage) Stop(ctx context.Context) error { return s.child.Stop(ctx) }

// LogTail returns the last lines of the replicator's log, to print with an error.
func (s *Stage) LogTail() []string {
	data, err := os.ReadFile(s.log.Name())
	if err != nil || len(data) == 0 {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return lines[max(0, len(lines)-10):]
}

// Close ends everything, and removes the directory unless the options name it.
func (s *Stage) Close() error {
	if s.child != nil {
		_ = s.child.Kill() // after Stop nothing runs any more
	}
	errs := []error{s.sandbox.Close(), s.log.Close()}
	if s.o.Dir == "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}
