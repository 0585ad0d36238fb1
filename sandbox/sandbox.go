package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/sandbox/bigtable"
	"github.com/tailrace-cdc/replicator/sandbox/clock"
	"github.com/tailrace-cdc/replicator/sandbox/control"
	"github.com/tailrace-cdc/replicator/sandbox/dynamo"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
	"github.com/tailrace-cdc/replicator/sandbox/ledger"
	"github.com/tailrace-cdc/replicator/sandbox/nats"
	"github.com/tailrace-cdc/replicator/sandbox/s3"
	"github.com/tailrace-cdc/replicator/sandbox/signature"
	"github.com/tailrace-cdc/replicator/sandbox/stream"
)

// The default addresses of Run; S3's is a thousand ports above DynamoDB's.
const (
	DefaultDynamoDB = "127.0.0.1:8000"
	DefaultBigtable = "127.0.0.1:8086"
	DefaultNATS     = "127.0.0.1:4222"
)

// Region and Account are the region and account in the sandbox's ARNs.
const (
	Region  = "us-east-1"
	Account = "000000000000"
)

// Options configures a sandbox. The zero value suits tests: free ports, nothing kept, the machine's
// clock.
type Options struct {
	DynamoDB, Bigtable, NATS, S3 string // addresses; empty: a free port on loopback

	Dir       string        // keeps everything across restarts; empty: nothing is kept
	Exports   string        // folder of S3's buckets, one subfolder each; default DIR/exports, without Dir a temporary one
	ReadyFile string        // Run: written when all servers listen; has the lines of Env as shell exports
	Timeline  string        // Run: a file of commands with their times, see control.ReadTimeline
	Seed      uint64        // of everything random
	Clock     *clock.Clock  // nil: the machine's
	Sweep     time.Duration // time between sweeps of TTL and retention, on the sandbox's clock; default 10 s; < 0: never

	CheckSignatures bool // refuse requests to DynamoDB that are not signed with the credentials of Env

	Partitions int  // of a new stream; 0: four for on-demand tables, otherwise as many as the capacity needs
	NoLedger   bool // for benchmarks: saves 32 bytes per change
	NoBigtable bool
	NoNATS     bool
	NoS3       bool        // exports go to the folder alone
	Log        *zap.Logger // nil: none
	// Ready is called by Run when all servers listen, with the lines of Env. nil: not called.
	Ready func(env []string)
}

// Sandbox is a running sandbox. Its parts may be used directly.
type Sandbox struct {
	Clock    *clock.Clock
	DynamoDB *dynamo.Server // tables and items, also without HTTP; DynamoDB.Reads counts and limits what reads consume
	Stream   *stream.Engine // streams; Stream.Faults() injects faults
	Faults   *fault.HTTP    // injects faults into DynamoDB's HTTP replies
	Ledger   *ledger.Ledger // nil with NoLedger
	Bigtable *bigtable.Front
	NATS     *nats.Server
	Buckets  *s3.Store        // where exports are written
	S3       *s3.Server       // serves Buckets; nil with NoS3
	Console  *control.Console // all commands, by name

	o        Options
	listener net.Listener
	http     *http.Server
	tasks    *errgroup.Group
	stop     context.CancelFunc
	saves    saves
	scratch  string // the temporary folder of the buckets; "" when they are kept
}

// Start starts a sandbox and returns when all servers listen. The caller closes it. When a port is
// taken, errors.Is(err, syscall.EADDRINUSE) holds.
func Start(o Options) (*Sandbox, error) {
	s := &Sandbox{o: o.withDefaults()}
	if err := s.start(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (o Options) withDefaults() Options {
	const free = "127.0.0.1:0"
	o.DynamoDB, o.Bigtable, o.NATS = cmp.Or(o.DynamoDB, free), cmp.Or(o.Bigtable, free), cmp.Or(o.NATS, free)
	o.S3 = cmp.Or(o.S3, free)
	if o.Exports == "" && o.Dir != "" {
		o.Exports = filepath.Join(o.Dir, "exports")
	}
	o.Sweep = cmp.Or(o.Sweep, 10*time.Second)
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	return o
}

// start makes the parts, restores what was saved, and begins to serve.
func (s *Sandbox) start() error {
	o := s.o
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.tasks, ctx = errgroup.WithContext(ctx)
	s.Clock = o.Clock
	if !o.NoLedger {
		s.Ledger = ledger.New(stream.Numbers(o.Seed))
	}
	s.Stream = stream.New(stream.Options{
		Clock: o.Clock, Ledger: s.Ledger, Region: Region, Account: Account, Seed: o.Seed, Partitions: o.Partitions,
	})
	if err := s.openBuckets(); err != nil {
		return err
	}
	s.DynamoDB = dynamo.New(dynamo.Options{Stream: s.Stream, Clock: o.Clock, Region: Region, Account: Account,
		Seed: o.Seed, Buckets: s.Buckets, Log: o.Log})
	s.Faults = fault.New(o.Clock, o.Seed)
	if o.CheckSignatures {
		s.DynamoDB.Use(func(next http.Handler) http.Handler {
			return signature.Require(Region, s.DynamoDB.Refuse, next)
		})
	}
	s.DynamoDB.Use(s.saves.gate)
	s.DynamoDB.Use(s.Faults.Wrap)
	if err := s.open(); err != nil {
		return err
	}
	s.Console = control.New(control.Parts{
		Clock: o.Clock, Stream: s.Stream, DynamoDB: s.DynamoDB, HTTP: s.Faults, Ledger: s.Ledger, Bigtable: s.Bigtable,
		Expire: s.DynamoDB.ExpireNow, Seed: o.Seed,
	})
	if err := s.restore(ctx); err != nil {
		return err
	}
	s.serve(ctx)
	return nil
}

// openBuckets opens the folder of S3's buckets.
func (s *Sandbox) openBuckets() (err error) {
	dir := s.o.Exports
	if dir == "" {
		if dir, err = os.MkdirTemp("", "sandbox-s3-"); err != nil {
			return fmt.Errorf("open buckets: %w", err)
		}
		s.scratch = dir
	}
	s.Buckets, err = s3.Open(dir)
	return err
}

// open listens for DynamoDB, and starts Bigtable, NATS and S3, which listen by themselves.
func (s *Sandbox) open() (err error) {
	if s.listener, err = net.Listen("tcp", s.o.DynamoDB); err != nil {
		return fmt.Errorf("listen for dynamodb: %w", err)
	}
	if !s.o.NoBigtable {
		if s.Bigtable, err = bigtable.Open(bigtable.Options{Addr: s.o.Bigtable, Seed: s.o.Seed,
			Clock: s.o.Clock}); err != nil {
			return err
		}
	}
	if !s.o.NoNATS {
		if s.NATS, err = nats.Open(nats.Options{Addr: s.o.NATS, Dir: s.natsDir()}); err != nil {
			return err
		}
	}
	if !s.o.NoS3 {
		if s.S3, err = s3.Serve(s.o.S3, s.Buckets); err != nil {
			return err
		}
	}
	return nil
}

// serve starts answering DynamoDB's requests, and the background work.
func (s *Sandbox) serve(ctx context.Context) {
	mux := http.NewServeMux()
	mux.Handle(control.Prefix, s.Console)
	mux.Handle("/", s.DynamoDB)
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute, ErrorLog: zap.NewStdLog(s.o.Log)}
	s.tasks.Go(func() error {
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve dynamodb: %w", err)
		}
		return nil
	})
	s.tasks.Go(func() error { return s.background(ctx) })
	s.tasks.Go(func() error { return s.finishExports(ctx) })
}

// finishExports writes exports when they are due. It is not a part of background, because a large
// one takes seconds.
func (s *Sandbox) finishExports(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			s.DynamoDB.FinishExports()
		}
	}
}

// background does what depends on time: rotations, trimming, time to live, saving.
func (s *Sandbox) background(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	sweep, save := s.Clock.Now().Add(s.o.Sweep), time.Now().Add(saveEvery)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-s.Clock.Moved():
		}
		s.Stream.RotateDue()
		now := s.Clock.Now()
		if s.o.Sweep > 0 && (!now.Before(sweep) || sweep.Sub(now) > s.o.Sweep) {
			sweep = now.Add(s.o.Sweep)
			s.Stream.Sweep()
			s.DynamoDB.ExpireNow(now)
		}
		if s.o.Dir != "" && time.Now().After(save) {
			if err := s.Save(ctx); err != nil {
				s.o.Log.Warn("sandbox not saved", zap.Error(err))
			}
			save = time.Now().Add(saveEvery)
		}
	}
}

// Close stops all servers and waits for them. A sandbox with a directory saves everything that it
// has acknowledged.
func (s *Sandbox) Close() error {
	err := s.http.Close()
	if s.o.Dir != "" {
		err = errors.Join(err, s.Save(context.Background()))
	}
	return errors.Join(err, s.close())
}

// close stops what was started, also after a failed start.
func (s *Sandbox) close() error {
	var errs []error
	s.stop()
	switch {
	case s.http != nil:
		errs = append(errs, s.http.Close())
	case s.listener != nil:
		errs = append(errs, s.listener.Close())
	}
	errs = append(errs, s.tasks.Wait())
	if s.Bigtable != nil {
		errs = append(errs, s.Bigtable.Close())
	}
	if s.NATS != nil {
		errs = append(errs, s.NATS.Close())
	}
	if s.S3 != nil {
		errs = append(errs, s.S3.Close())
	}
	if s.scratch != "" {
		errs = append(errs, os.RemoveAll(s.scratch))
	}
	return errors.Join(errs...)
}

// Endpoint returns the URL of DynamoDB and its streams.
func (s *Sandbox) Endpoint() string { return "http://" + s.listener.Addr().String() }

// Env returns the environment variables, as KEY=value, with which the usual clients use this
// sandbox.
func (s *Sandbox) Env() []string {
	o := Options{DynamoDB: s.listener.Addr().String()}
	if s.Bigtable != nil {
		o.Bigtable = s.Bigtable.Addr()
	}
	if s.NATS != nil {
		o.NATS = s.NATS.URL()
	}
	if s.S3 != nil {
		o.S3 = strings.TrimPrefix(s.S3.URL(), "http://")
	}
	return Env(o)
}

// Progress returns a number that grows with every DynamoDB call that may write, every stream record
// that is served and every Bigtable call that may write. Tests use it to see that a system under
// test moves on.
func (s *Sandbox) Progress() uint64 {
	return s.saves.requests.Load() + s.Stream.Served() + s.bigtableWrites()
}

// TB is the part of testing.TB that a sandbox in a test needs. It is an interface so that no binary
// links testing.
type TB interface {
	Helper()
	Context() context.Context
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Cleanup(func())
}

// Test starts a sandbox that ends with a test.
func Test(t TB, o Options) *Sandbox {
	t.Helper()
	s, err := Start(o)
	if err != nil {
		t.Fatalf("start sandbox: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close sandbox: %v", err)
		}
	})
	return s
}

// Env returns the environment variables, as KEY=value, with which the usual clients use a sandbox
// on these addresses; empty ones are Run's defaults. Any credentials do, unless the sandbox checks
// signatures: otherwise it checks only their form.
func Env(o Options) []string {
	o = o.withDefaultPorts()
	url := "http://" + o.DynamoDB
	if !strings.Contains(o.NATS, "://") {
		o.NATS = "nats://" + o.NATS
	}
	return []string{
		"AWS_ENDPOINT_URL=" + url,
		"AWS_ENDPOINT_URL_DYNAMODB=" + url,
		"AWS_ENDPOINT_URL_DYNAMODB_STREAMS=" + url,
		"AWS_ENDPOINT_URL_S3=http://" + o.S3,
		"AWS_REGION=" + Region,
		"AWS_DEFAULT_REGION=" + Region,
		"AWS_ACCESS_KEY_ID=" + signature.AccessKey,
		"AWS_SECRET_ACCESS_KEY=" + signature.SecretKey,
		"BIGTABLE_EMULATOR_HOST=" + o.Bigtable,
		"NATS_URL=" + o.NATS,
	}
}

// withDefaultPorts sets the addresses that are empty to the default ones.
func (o Options) withDefaultPorts() Options {
	o.DynamoDB = cmp.Or(o.DynamoDB, DefaultDynamoDB)
	o.Bigtable = cmp.Or(o.Bigtable, DefaultBigtable)
	o.NATS = cmp.Or(o.NATS, DefaultNATS)
	o.S3 = cmp.Or(o.S3, besideDynamoDB(o.DynamoDB))
	return o
}

// besideDynamoDB returns the default address of S3: a thousand ports above DynamoDB, or a free one
// if DynamoDB's is free too. So sandboxes side by side need no further address.
func besideDynamoDB(addr string) string {
	host, text, err := net.SplitHostPort(addr)
	port, _ := strconv.Atoi(text)
	if err != nil || port == 0 || port > 64535 {
		return "127.0.0.1:0"
	}
	return net.JoinHostPort(host, strconv.Itoa(port+1000))
}
