package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/admin"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/host"
	"github.com/tailrace-cdc/replicator/shadow"
	"github.com/tailrace-cdc/replicator/shadow/child"
	"github.com/tailrace-cdc/replicator/shadow/front"
	"github.com/tailrace-cdc/replicator/shadow/pattern"
	"github.com/tailrace-cdc/replicator/shadow/replay"
	"github.com/tailrace-cdc/replicator/source"
)

// shadowRun is one run of a front and its engine.
type shadowRun struct {
	a   *app
	o   shadowOptions
	src *source.Source
	dir string // of the counts of the engines: each process has its own file

	settling atomic.Bool // no more requests come
	hastened atomic.Bool // the user has ended the settling
}

// How long a run waits when it ends: for exchanges that are open, and for the engine.
const (
	shadowDrain = 5 * time.Second
	shadowGrace = 3 * time.Second
)

// settlingShown is how long a user waits for the report before the reason is printed.
const settlingShown = time.Second

// run passes requests on until ctx ends, and returns what was seen.
func (s *shadowRun) run(ctx context.Context, in *shadowInput) (*shadow.Report, error) {
	share, err := shareOf(s.o.share, in.cfg.Shadow)
	if err != nil {
		return nil, err
	}
	engine, err := s.engine()
	if err != nil {
		return nil, err
	}
	known := services(s.src.Reached(ctx))
	options := front.Options{
		Listen: s.o.listen, Services: known, Tap: engine.Take, Share: share, Sign: s.src.Signer(),
		Drain: shadowDrain, Answers: !s.o.patterns, Memory: int64(in.cfg.Shadow.Memory),
	}
	switch {
	case s.o.sign:
		options.Mode = front.Sign
	case s.o.mirror:
		options.Mode = front.Mirror
	}
	page, err := s.listenForAdmin(ctx)
	if err != nil {
		return nil, err
	}
	shared := listens(ctx, s.o.listen)
	f, err := front.New(ctx, options)
	if err != nil {
		if page != nil {
			_ = page.Close()
		}
		return nil, explainFront(err)
	}
	at, remote := reachedAt(f.Addr())
	fmt.Fprint(s.a.Errs, s.announce(known[0].Host, at))
	if shared {
		fmt.Fprintln(s.a.Errs, "Another front listens on this address too: until it ends, each gets a part of the requests.")
	}
	if remote {
		fmt.Fprintln(s.a.Errs, "The way to this address is plain HTTP: who can read it reads keys and items. "+
			"Keep it within the machine.")
	}
	seen := &seenSoFar{run: s, front: f, reader: in.reader, began: time.Now().UTC().Truncate(time.Second)}
	counting, end := context.WithCancel(context.WithoutCancel(ctx))
	// An engine that is frozen would hold the front at its last exchange.
	defer context.AfterFunc(ctx, func() { time.AfterFunc(shadowDrain+time.Second, end) })()
	defer s.onSecondSignal(func() {
		end()
		engine.Kill()
	})()
	var g errgroup.Group
	g.Go(func() error { return engine.Run(counting) })
	if page != nil {
		fmt.Fprintf(s.a.Errs, "The report so far is at http://%s.\n", page.Addr())
		g.Go(func() error { return seen.serve(counting, page) })
	}
	<-engine.Begun() // else the first exchanges would be lost
	err = f.Run(ctx)
	s.settling.Store(true)
	end() // behind the last exchange
	if !s.o.patterns {
		defer time.AfterFunc(settlingShown, func() {
			fmt.Fprintln(s.a.Errs, "Items that differed are compared again behind a proof that Bigtable has every change, "+
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
func (s *shadowRun) onSecondSignal(end func()) (undo func()) {
	return s.a.Signals.Note(func(_ string, again bool) {
		if again || s.settling.Load() { // where --for has ended, the first signal is the second end
			s.hastened.Store(true)
			end()
		}
		if again {
			select {} // else the process would end when this returns
		}
	})
}

// seenSoFar is what a run has seen until now.
type seenSoFar struct {
	run    *shadowRun
	front  *front.Front
	reader *pattern.Reader
	began  time.Time
}

// report returns the report of what was seen. What the engine has not stored counts as dropped: it
// came while no engine ran, or with one that died; while the run lasts, it came in the last second.
func (s *seenSoFar) report() (*shadow.Report, error) {
	return s.reportOf(func(*pattern.Snapshot) {})
}

// last returns the report behind the end of the last engine: what none has replayed or settled by then
// stays so.
func (s *seenSoFar) last() (*shadow.Report, error) {
	return s.reportOf(func(counts *pattern.Snapshot) {
		if !s.run.o.patterns {
			counts.GiveUp(replay.Ended)
		}
	})
}

func (s *seenSoFar) reportOf(change func(*pattern.Snapshot)) (*shadow.Report, error) {
	c := s.front.Counts() // before the engine's, which only grow
	counts, err := shadow.CountsOf(s.run.dir)
	if err != nil {
		return nil, err
	}
	change(counts)
	lost := max(c.Taken-counts.Requests, 0)
	report := shadow.NewReport(s.reader, counts, shadow.Passed{
		Total: c.Passed, Taken: c.Taken - lost, Unsampled: c.Unsampled, Dropped: c.Dropped + lost,
	})
	report.Began, report.Ended = s.began, time.Now().UTC().Truncate(time.Second)
	report.OnlyTables(s.run.o.tables)
	return report, nil
}

// serve serves the report so far, and its metrics.
func (s *seenSoFar) serve(ctx context.Context, ln net.Listener) error {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(&shadow.Metrics{Report: s.report})
	o := admin.Options{Metrics: metrics, Log: s.run.a.Logger(zapcore.WarnLevel)}
	return admin.ServePage(ctx, ln, o, func(w io.Writer) error {
		r, err := s.report()
		if err != nil {
			return err
		}
		return r.WritePage(w, s.run.a.Version)
	})
}

// listenForAdmin returns the listener of --admin; nil without it.
func (s *shadowRun) listenForAdmin(ctx context.Context) (net.Listener, error) {
	if s.o.admin == "" {
		return nil, nil
	}
	var c net.ListenConfig
	ln, err := c.Listen(ctx, "tcp", s.o.admin)
	if err != nil {
		return nil, failure.With(failure.Unready, "choose another address with --admin",
			fmt.Errorf("serve the report: %w", err))
	}
	return ln, nil
}

// engine returns the process that counts.
func (s *shadowRun) engine() (*child.Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	args := []string{"shadow", "engine", "--counts", s.dir, "--front", strconv.Itoa(os.Getpid())}
	if !s.o.patterns {
		args = append(args, "--replay", "--mismatches", s.o.mismatches)
	}
	if s.a.ConfigPath != "" {
		args = append(args, "--config", s.a.ConfigPath)
	}
	log := s.a.Logger(zapcore.WarnLevel).Named("shadow").Sugar()
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
func (s *shadowRun) grace() time.Duration {
	if s.o.patterns {
		return shadowGrace
	}
	return shadowGrace + shadow.SettleTime
}

// services returns the names by which applications reach DynamoDB, and where it is: the first name, or
// the host of the endpoint that the front itself uses.
func services(name, endpoint string) []front.Service {
	_, given, ok := strings.Cut(endpoint, "://")
	if !ok {
		return []front.Service{{Host: name}}
	}
	given = strings.Trim(given, "/")
	if host.AWS(endpoint) && strings.HasPrefix(endpoint, "http://") {
		// It is the application's, in a shell or a pod that both share: behind the front there is
		// TLS.
		endpoint = "https://" + strings.TrimSuffix(given, ":80")
	}
	return []front.Service{{Host: name, Endpoint: endpoint}, {Host: given, Endpoint: endpoint}}
}

// listens reports whether a process listens on an address.
func listens(ctx context.Context, addr string) bool {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// reachedAt returns the address by which clients reach a front that listens on one, and whether
// they may be on other machines.
func reachedAt(listening string) (addr string, remote bool) {
	at, err := netip.ParseAddrPort(listening)
	if err != nil {
		return listening, true
	}
	if name, err := os.Hostname(); err == nil && at.Addr().IsUnspecified() {
		return net.JoinHostPort(name, strconv.Itoa(int(at.Port()))), true
	}
	return listening, !at.Addr().Unmap().IsLoopback()
}

// announce returns what the application needs.
func (s *shadowRun) announce(name, addr string) string {
	switch {
	case s.o.mirror:
		return fmt.Sprintf("Copies of requests are taken at http://%s. Ctrl-C ends it, and prints the report.\n", addr)
	case s.o.sign:
		return fmt.Sprintf(`The front signs and passes requests on. Start the application with this:

  export AWS_ENDPOINT_URL_DYNAMODB=http://%s

Ctrl-C ends it, and prints the report.
`, addr)
	}
	return fmt.Sprintf(`The front passes requests on. Start the application with these:

  export AWS_ENDPOINT_URL_DYNAMODB=http://%s
  export HTTP_PROXY=http://%s NO_PROXY=169.254.169.254,169.254.170.2

Ctrl-C ends it, and prints the report.
`, name, addr)
}

// explainFront gives an error of the listener its class and hint.
func explainFront(err error) error {
	if errors.Is(err, host.ErrAddressInUse) {
		return failure.With(failure.Unready, "choose another address with --listen", err)
	}
	return failure.Usagef("--listen 127.0.0.1:8001", "%w", err)
}
