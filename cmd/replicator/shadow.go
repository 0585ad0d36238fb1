package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/host"
	"github.com/tailrace-cdc/replicator/shadow"
	"github.com/tailrace-cdc/replicator/shadow/child"
	"github.com/tailrace-cdc/replicator/shadow/front"
	"github.com/tailrace-cdc/replicator/shadow/pattern"
	"github.com/tailrace-cdc/replicator/source"
)

// shadowOptions are the flags of shadow.
type shadowOptions struct {
	listen             string
	sign, mirror, only bool
	share              string
	tables             []string
	duration           time.Duration
}

// shadowCommand returns the command `replicator shadow`.
func (a *app) shadowCommand() *cobra.Command {
	o := shadowOptions{}
	cmd := &cobra.Command{
		Use:   "shadow",
		Short: "Show how an application reads DynamoDB, and which rows of Bigtable would serve it",
		Long: `shadow --patterns stands between an application and DynamoDB. It passes each request and each answer on,
unchanged, and counts the access patterns: operation, index, key condition, flags, without keys and values. Each
read gets a grade: served, order differs, wider range, or no read, with the index row that would serve it.

  replicator shadow --patterns &
  AWS_ENDPOINT_URL_DYNAMODB=http://dynamodb.REGION.amazonaws.com HTTP_PROXY=http://127.0.0.1:8001 your-application

It needs no Bigtable, and writes nothing in either cloud. It ends at Ctrl-C, and prints what it has seen.`,
		Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error { return a.shadow(ctx, o) }),
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:8001", "address of the front")
	f.BoolVar(&o.sign, "sign", false, "take requests for the front's own address, and sign them with its credentials")
	f.BoolVar(&o.mirror, "mirror", false, "take copies of requests, and answer 204: nothing stands in the path")
	f.BoolVar(&o.only, "patterns", false, "count access patterns, and grade the reads")
	f.StringVar(&o.share, "share", "100%", "part of the requests that is counted, such as 1%")
	f.StringArrayVar(&o.tables, "table", nil, "report on this table alone; may be repeated")
	f.DurationVar(&o.duration, "for", 0, "end after this time (default: at Ctrl-C)")
	cmd.AddCommand(a.shadowReportCommand(), a.shadowEngineCommand())
	return cmd
}

// parseShare reads a part of all requests: 1% or 0.01.
func parseShare(text string) (float64, error) {
	digits, percent := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(digits, 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share >= 0 && share <= 1) { // as of NaN
		return 0, failure.Usagef("for example --share 1%", "read --share: %q is no part of all requests", text)
	}
	return share, nil
}

// shadow runs the front and the engine, and prints what they have seen.
func (a *app) shadow(ctx context.Context, o shadowOptions) error {
	share, err := parseShare(o.share)
	switch {
	case err != nil:
		return err
	case !o.only:
		return failure.Usagef("`replicator shadow --patterns`", "shadow needs --patterns")
	case o.sign && o.mirror:
		return failure.Usagef("one of the two", "--sign and --mirror exclude each other")
	case o.duration < 0:
		return failure.Usagef("for example --for 24h", "read --for: %s is negative", o.duration)
	}
	defer a.LibraryLogs()()
	reader, src, closeSource, err := a.patternReader(ctx)
	if err != nil {
		return err
	}
	defer closeSource()
	if o.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.duration)
		defer cancel()
	}
	s := &shadowRun{a: a, o: o, src: src}
	if s.dir, err = os.MkdirTemp("", "tailrace-shadow-"); err != nil {
		return failure.With(failure.Unready, "set TMPDIR to a directory that can be written", err)
	}
	defer func() { _ = os.RemoveAll(s.dir) }()
	report, err := s.run(ctx, reader, share)
	if err != nil {
		return err
	}
	return a.printShadow(report)
}

func (a *app) printShadow(report *shadow.Report) error {
	if a.JSON {
		return a.PrintJSON(report)
	}
	a.Printed = true
	return render.Patterns(a.Out, report)
}

// patternReader returns a reader of requests to the tables of the configuration, which needs no
// Bigtable, and their source until it is closed.
func (a *app) patternReader(ctx context.Context) (
	_ *pattern.Reader, src *source.Source, closeSource func(), err error,
) {
	a.WithoutBigtable = true
	cfg, err := a.Config(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	clients := a.Clients(cfg)
	defer func() {
		if err != nil {
			_ = clients.Close()
		}
	}()
	if src, err = clients.Source(ctx); err != nil {
		return nil, nil, nil, err
	}
	tables, err := a.CatalogFor(ctx, cfg, src, "")
	if err == nil {
		err = a.Missed(tables, nil)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	var known []pattern.Table
	for _, t := range tables.Tables {
		x := pattern.Table{Name: t.Info.Name, Schema: t.Info.Schema, Program: t.Program}
		for name, key := range t.Info.Indexes {
			x.Indexes = append(x.Indexes, pattern.Index{Name: name, Partition: key.Partition, Sort: key.Sort})
		}
		known = append(known, x)
	}
	return pattern.NewReader(known...), src, func() { _ = clients.Close() }, nil
}

// shadowRun is one run of a front and its engine.
type shadowRun struct {
	a   *app
	o   shadowOptions
	src *source.Source
	dir string // of the counts of the engines: each process has its own file
}

// How long a run waits when it ends: for exchanges that are open, and for the engine.
const (
	shadowDrain = 5 * time.Second
	shadowGrace = 3 * time.Second
)

// run passes requests on until ctx ends, and returns what was seen.
func (s *shadowRun) run(ctx context.Context, reader *pattern.Reader, share float64) (*shadow.Report, error) {
	engine, err := s.engine()
	if err != nil {
		return nil, err
	}
	known := services(s.src.Reached(ctx))
	options := front.Options{
		Listen: s.o.listen, Services: known, Tap: engine.Take, Share: share, Sign: s.src.Signer(),
		Drain: shadowDrain,
	}
	switch {
	case s.o.sign:
		options.Mode = front.Sign
	case s.o.mirror:
		options.Mode = front.Mirror
	}
	other := listens(ctx, s.o.listen)
	f, err := front.New(ctx, options)
	if err != nil {
		return nil, explainFront(err)
	}
	at, away := reachedAt(f.Addr())
	fmt.Fprint(s.a.Errs, s.announce(known[0].Host, at))
	if other {
		fmt.Fprintln(s.a.Errs, "Another front listens on this address too: until it ends, each gets a part of the requests.")
	}
	if away {
		fmt.Fprintln(s.a.Errs, "The way to this address is plain HTTP: who can read it reads keys and items. "+
			"Keep it within the machine.")
	}
	began := time.Now().UTC().Truncate(time.Second)
	counting, end := context.WithCancel(context.WithoutCancel(ctx))
	// An engine that is frozen would hold the front at its last exchange.
	defer context.AfterFunc(ctx, func() { time.AfterFunc(shadowDrain+time.Second, end) })()
	var g errgroup.Group
	g.Go(func() error { return engine.Run(counting) })
	err = f.Run(ctx)
	end() // behind the last exchange
	if err := errors.Join(err, g.Wait()); err != nil {
		return nil, err
	}
	counts, err := shadow.CountsOf(s.dir)
	if err != nil {
		return nil, err
	}
	c := f.Counts()
	lost := c.Taken - counts.Requests // while no engine ran, or with one that died before it stored them
	report := shadow.NewReport(reader, counts, shadow.Passed{
		Total: c.Passed, Taken: c.Taken - lost, Unsampled: c.Unsampled, Dropped: c.Dropped + lost,
	})
	report.Began, report.Ended = began, time.Now().UTC().Truncate(time.Second)
	report.Keep(s.o.tables)
	return report, nil
}

// engine returns the process that counts.
func (s *shadowRun) engine() (*child.Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	args := []string{"shadow", "engine", "--counts", s.dir, "--front", strconv.Itoa(os.Getpid())}
	if s.a.ConfigPath != "" {
		args = append(args, "--config", s.a.ConfigPath)
	}
	log := s.a.Logger(zapcore.WarnLevel).Named("shadow").Sugar()
	return child.New(child.Options{
		Path: self, Args: args, Grace: shadowGrace,
		Line:   func(line string) { log.Warnf("engine: %s", line) },
		Exited: func(err error) { log.Warnf("the engine has ended, and is started again: %v", err) },
	}), nil
}

// services returns the names by which applications reach DynamoDB, and where it is: by the first
// one, or by that of the endpoint that the front itself uses.
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
func reachedAt(listening string) (addr string, away bool) {
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
		return fmt.Sprintf("Copies of requests are taken at http://%s. Ctrl-C ends it, and prints the patterns.\n", addr)
	case s.o.sign:
		return fmt.Sprintf(`The front signs and passes requests on. Start the application with this:

  export AWS_ENDPOINT_URL_DYNAMODB=http://%s

Ctrl-C ends it, and prints the patterns.
`, addr)
	}
	return fmt.Sprintf(`The front passes requests on. Start the application with these:

  export AWS_ENDPOINT_URL_DYNAMODB=http://%s
  export HTTP_PROXY=http://%s NO_PROXY=169.254.169.254,169.254.170.2

Ctrl-C ends it, and prints the patterns.
`, name, addr)
}

// explainFront gives an error of the listener its class and hint.
func explainFront(err error) error {
	if errors.Is(err, host.ErrAddressInUse) {
		return failure.With(failure.Unready, "choose another address with --listen", err)
	}
	return failure.Usagef("--listen 127.0.0.1:8001", "%w", err)
}
