package shadow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/admin"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/shadow/child"
	"github.com/tailrace-cdc/replicator/shadow/front"
	"github.com/tailrace-cdc/replicator/shadow/pattern"
	"github.com/tailrace-cdc/replicator/shadow/replay"
	"github.com/tailrace-cdc/replicator/source"
)

// Options say what a run does.
type Options struct {
	Listen       string // address of the front
	Sign, Mirror bool   // how applications reach the front; neither: their signatures are kept
	Patterns     bool   // reads are counted and graded, and not made in Bigtable
	Share        float64
	Tables       []string // the report is about these alone; none: about all
	Mismatches   string   // file to which mismatches are appended; "": they are only counted
	Admin        string   // address of the page and the metrics; "": none
	Version      string   // of this program

	Engine []string    // arguments with which this program is an engine, before those of the run
	Log    *zap.Logger // nil: none
	Errs   io.Writer   // gets what the user has to do; nil: nothing does
	// SecondSignal has end called when the user ends the settling; again: it is the second signal.
	// nil: it ends by itself.
	SecondSignal func(end func(again bool)) (undo func())
}

// run is one run of a front and its engine.
type run struct {
	o   Options
	src *source.Source
	dir string // of the counts of the engines: each process has its own file

	settling atomic.Bool // no more requests come
	hastened atomic.Bool // the user has ended the settling
}

// How long a run waits when it ends: for exchanges that are open, and for the engine.
const (
	drainTime = 5 * time.Second
	graceTime = 3 * time.Second
)

// settlingShown is how long a user waits for the report before the reason is printed.
const settlingShown = time.Second

// Run passes requests on until ctx ends, and returns what was seen.
func Run(ctx context.Context, in *Input, o Options) (*Report, error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Errs == nil {
		o.Errs = io.Discard
	}
	if o.SecondSignal == nil {
		o.SecondSignal = func(func(bool)) func() { return func() {} }
	}
	dir, err := os.MkdirTemp("", "tailrace-shadow-")
	if err != nil {
		return nil, failure.With(failure.Unready, "set TMPDIR to a directory that can be written", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s := &run{o: o, src: in.Source, dir: dir}
	return s.pass(ctx, in)
}

// pass passes requests on.
func (s *run) pass(ctx context.Context, in *Input) (*Report, error) {
	engine, err := s.engine()
	if err != nil {
		return nil, err
	}
	known := services(s.src.Reached(ctx))
	options := front.Options{
		Listen: s.o.Listen, Services: known, Tap: engine.Take, Share: s.o.Share, Sign: s.src.Signer(),
		Drain: drainTime, Answers: !s.o.Patterns, Memory: int64(in.Config.Shadow.Memory),
	}
	switch {
	case s.o.Sign:
		options.Mode = front.Sign
	case s.o.Mirror:
		options.Mode = front.Mirror
	}
	page, err := s.listenForAdmin(ctx)
	if err != nil {
		return nil, err
	}
	shared := listens(ctx, s.o.Listen)
	f, err := front.New(ctx, options)
	if err != nil {
		if page != nil {
			_ = page.Close()
		}
		return nil, explainFront(err)
	}
	at, remote := reachedAt(f.Addr())
	fmt.Fprint(s.o.Errs, s.announce(known[0].Host, at))
	if shared {
		fmt.Fprintln(s.o.Errs, "Another front listens on this address too: until it ends, each gets a part of the requests.")
	}
	if remote {
		fmt.Fprintln(s.o.Errs, "The way to this address is plain HTTP: who can read it reads keys and items. "+
			"Keep it within the machine.")
	}
	seen := &seenSoFar{run: s, front: f, reader: in.Reader, began: time.Now().UTC().Truncate(time.Second)}
	counting, end := context.WithCancel(context.WithoutCancel(ctx))
	// An engine that is frozen would hold the front at its last exchange.
	defer context.AfterFunc(ctx, func() { time.AfterFunc(drainTime+time.Second, end) })()
	defer s.onSecondSignal(func() {
		end()
		engine.Kill()
	})()
	var g errgroup.Group
	g.Go(func() error { return engine.Run(counting) })
	if page != nil {
		fmt.Fprintf(s.o.Errs, "The report so far is at http://%s.\n", page.Addr())
		g.Go(func() error { return seen.serve(counting, page) })
	}
	<-engine.Begun() // else the first exchanges would be lost
	err = f.Run(ctx)
	s.settling.Store(true)
	end() // behind the last exchange
	if !s.o.Patterns {
		defer time.AfterFunc(settlingShown, func() {
			fmt.Fprintln(s.o.Errs, "Items that differed are compared again behind a proof that Bigtable has every change, "+
				"for two minutes at most. Ctrl-C ends this, and leaves them undecided.")
		}).Stop()
	}
	if err := errors.Join(err, g.Wait()); err != nil {
		return nil, err
	}
	return seen.last()
}

// onSecondSignal has a signal end the settling at once. The report is printed all the same; only a
// third signal ends the process without it.
func (s *run) onSecondSignal(end func()) (undo func()) {
	return s.o.SecondSignal(func(again bool) {
		if again || s.settling.Load() { // where the time of the run is over, the first signal is the second end
			s.hastened.Store(true)
			end()
		}
	})
}

// seenSoFar is what a run has seen until now.
type seenSoFar struct {
	run    *run
	front  *front.Front
	reader *pattern.Reader
	began  time.Time
}

// report returns the report of what was seen. What the engine has not stored counts as dropped: it
// came while no engine ran, or with one that died; while the run lasts, it came in the last second.
func (s *seenSoFar) report() (*Report, error) {
	return s.reportOf(func(*pattern.Snapshot) {})
}

// last returns the report behind the end of the last engine: what none has replayed or settled by
// then stays so.
func (s *seenSoFar) last() (*Report, error) {
	return s.reportOf(func(counts *pattern.Snapshot) {
		if !s.run.o.Patterns {
			counts.GiveUp(replay.Ended)
		}
	})
}

func (s *seenSoFar) reportOf(change func(*pattern.Snapshot)) (*Report, error) {
	c := s.front.Counts() // before the engine's, which only grow
	counts, err := CountsOf(s.run.dir)
	if err != nil {
		return nil, err
	}
	change(counts)
	lost := max(c.Taken-counts.Requests, 0)
	report := NewReport(s.reader, counts, Passed{
		Total: c.Passed, Taken: c.Taken - lost, Unsampled: c.Unsampled, Dropped: c.Dropped + lost,
	})
	report.unstored = lost
	report.Began, report.Ended = s.began, time.Now().UTC().Truncate(time.Second)
	report.OnlyTables(s.run.o.Tables)
	return report, nil
}

// serve serves the report so far, and its metrics.
func (s *seenSoFar) serve(ctx context.Context, ln net.Listener) error {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(&Metrics{Report: s.report})
	o := admin.Options{Metrics: metrics, Log: s.run.o.Log}
	return admin.ServePage(ctx, ln, o, func(w io.Writer) error {
		r, err := s.report()
		if err != nil {
			return err
		}
		return r.WritePage(w, s.run.o.Version)
	})
}

// listenForAdmin returns the listener of --admin; nil without it.
func (s *run) listenForAdmin(ctx context.Context) (net.Listener, error) {
	if s.o.Admin == "" {
		return nil, nil
	}
	var c net.ListenConfig
	ln, err := c.Listen(ctx, "tcp", s.o.Admin)
	if err != nil {
		return nil, failure.With(failure.Unready, "choose another address with --admin",
			fmt.Errorf("serve the report: %w", err))
	}
	return ln, nil
}

// engine returns the process that counts.
func (s *run) engine() (*child.Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	args := append(slices.Clone(s.o.Engine), "--counts", s.dir, "--front", strconv.Itoa(os.Getpid()))
	if !s.o.Patterns {
		args = append(args, "--replay", "--mismatches", s.o.Mismatches)
	}
	log := s.o.Log.Named("shadow").Sugar()
	return child.New(child.Options{
		Path: self, Args: args, Grace: s.grace(),
		Line: func(line string) { log.Warnf("engine: %s", line) },
		Exited: func(err error) {
			if !s.hastened.Load() {
				log.Warnf("the engine has ended: %v", err)
			}
		},
	}), nil
}

// grace returns how long the engine has to end: one that replays settles what is open.
func (s *run) grace() time.Duration {
	if s.o.Patterns {
		return graceTime
	}
	return graceTime + SettleTime
}
