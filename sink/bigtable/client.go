package bigtable

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cenkalti/backoff/v5"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"google.golang.org/api/option"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/googleauth"
)

// Client writes to the tables of one Bigtable instance. Safe for concurrent use.
type Client struct {
	opt        Options
	log        *zap.Logger
	conn       *pool
	metrics    *metrics
	newBackOff func() backoff.BackOff // between attempts

	watch     *stallWatch
	cpu       cpuWatch
	watching  errgroup.Group
	stopWatch context.CancelFunc

	tables sync.Map     // target table → *table
	bounds atomic.Int64 // of all tables
	gate   gate         // of all tables

	mu    sync.Mutex            // covers the lazily opened clients
	data  *bigtable.Client      // reads
	admin *bigtable.AdminClient // tables and families
}

// Open makes a client. It makes no call, so an unavailable service shows at the first use. reg may
// be nil: then the metrics are not registered.
func Open(ctx context.Context, o Options, log *zap.Logger, reg prometheus.Registerer) (*Client, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("open bigtable: %w", err)
	}
	watch := newStallWatch()
	conn, err := dial(ctx, o, watch)
	if err != nil {
		return nil, fmt.Errorf("open bigtable: %w", err)
	}
	c := &Client{opt: o, log: log, conn: conn, watch: watch, metrics: newMetrics(reg), newBackOff: newBackOff}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stopWatch = stop
	c.watching.Go(func() error { return watch.run(watching) })
	c.watching.Go(func() error { return c.cpu.run(watching) })
	return c, nil
}

// Tombstones returns how long tombstones are kept.
func (c *Client) Tombstones() time.Duration { return c.opt.Tombstones }

// Project returns the id of the project.
func (c *Client) Project() string { return c.opt.Project }

// Instance returns the id of the instance.
func (c *Client) Instance() string { return c.opt.Instance }

// Close closes the connections. Calls in flight fail with an unknown outcome.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	if c.data != nil && !c.shares(c.opt.dataServer()) {
		errs = append(errs, c.data.Close())
	}
	if c.admin != nil && !c.shares(c.opt.adminServer()) {
		errs = append(errs, c.admin.Close())
	}
	c.stopWatch()
	return errors.Join(append(errs, c.conn.Close(), c.watching.Wait())...)
}

// report passes the outcome of a call to a table to Options.Report.
func (c *Client) report(table string, err error) {
	switch Classify(err) {
	case failure.Canceled:
		return
	case failure.None, failure.Rejected, failure.Missing: // what is missing halts its table alone
		err = nil
	default:
		err = fmt.Errorf("%s: %w", table, err)
	}
	c.opt.Report(table, err)
}

// table is what calls to one table share.
type table struct {
	client   *Client
	name     string // full resource name
	short    string // table id
	headers  [kinds]metadata.MD
	limit    *callLimit
	bound    atomic.Int64 // of limit, as connections follow it
	used     usage
	metrics  tableMetrics
	families atomic.Pointer[[]string] // as declared
	warned   atomic.Int64             // when the last warning was logged, Unix ns
}

// table returns the table with this id, and makes it at the first use.
func (c *Client) table(name string) *table {
	if t, ok := c.tables.Load(name); ok {
		return t.(*table)
	}
	full := "projects/" + c.opt.Project + "/instances/" + c.opt.Instance + "/tables/" + name
	first := min(firstBound, c.opt.Concurrency)
	added, there := c.tables.LoadOrStore(name, &table{
		client:  c,
		name:    full,
		short:   name,
		headers: [kinds]metadata.MD{headers(full, c.opt.AppProfile), headers(full, c.opt.CopyProfile)},
		limit:   c.gate.newCallLimit(min(lowestBound, first), first, c.opt.Concurrency),
		metrics: c.metrics.table(name),
	})
	t := added.(*table)
	if !there {
		t.metrics.most.Set(float64(c.opt.Concurrency))
		t.metrics.bound.Set(float64(first))
		c.follow(t, float64(first))
	}
	return t
}

// Bounds of the calls in flight to a table.
const (
	lowestBound = 8
	firstBound  = 32
)

// follow opens and closes connections as the bound of a table moves.
func (c *Client) follow(t *table, bound float64) {
	now := int64(bound)
	before := t.bound.Swap(now)
	if now == before {
		return
	}
	if err := c.conn.resize(int(c.bounds.Add(now - before))); err != nil {
		c.log.Warn("no further connection is opened to bigtable", zap.Error(err))
	}
}

// Bound returns how many calls to a table may be in flight now.
func (c *Client) Bound(name string) int { return int(c.table(name).bound.Load()) }

// Usage is what was used of a table since the start, by whatever takes a share of the nodes.
type Usage struct {
	Writes   uint64 // CheckAndMutateRow calls, however they ended
	RowsRead uint64 // by resyncs and comparisons
}

// usage counts beside the series, because a series cannot be read.
type usage struct{ writes, rowsRead atomic.Uint64 }

// countRows counts rows that were read.
func (t *table) countRows(n int) {
	t.metrics.rowsRead.Add(float64(n))
	t.used.rowsRead.Add(uint64(n))
}

// Usage returns what was used of a table. Source tables with the same target share it.
func (c *Client) Usage(name string) Usage {
	t := c.table(name)
	return Usage{Writes: t.used.writes.Load(), RowsRead: t.used.rowsRead.Load()}
}

// Load is what the calls to a table show: how many there are now, and how they ended since the
// start.
type Load struct {
	InFlight int // calls between their sending and their answer
	Waiting  int // calls of the stream that wait until fewer are in flight
	Copying  int // calls of copies that do
	Bound    int // how many may be in flight now
	Most     int // Options.Concurrency, which Bound never exceeds

	Calls     uint64 // that were answered, or refused because of load
	Overloads uint64 // that were throttled, timed out or found the table unavailable
	Cuts      uint64 // of Bound, because more calls than usual were such

	Stream uint64        // calls of changes of the stream
	Took   time.Duration // all Calls together, between sending and answer
}

// Load returns what the calls to a table show.
func (c *Client) Load(name string) Load { return c.table(name).limit.Load() }

// CPUShort reports whether goroutines of this process wait for a processor, so that the bounds of
// all tables do not grow.
func (c *Client) CPUShort() bool { return c.cpu.Short() }

// Overloads returns how many calls to a table were throttled, timed out or found it unavailable.
func (c *Client) Overloads(name string) uint64 { return c.table(name).limit.Overloads() }

// headers returns the headers that route a call to the table's cluster and announce that the client
// honours RetryInfo (google.bigtable.v2.FeatureFlags).
func headers(table, profile string) metadata.MD {
	flags, _ := proto.Marshal(&btpb.FeatureFlags{RetryInfo: true})
	return metadata.Pairs(
		"google-cloud-resource-prefix", table,
		"x-goog-request-params", "table_name="+url.QueryEscape(table)+"&app_profile_id="+url.QueryEscape(profile),
		"bigtable-features", base64.URLEncoding.EncodeToString(flags),
	)
}

// shares reports whether Google's clients of a server use the first connection of the pool: an
// emulator is one server.
func (c *Client) shares(with server) bool { return with.plain && with == c.opt.dataServer() }

// clientOptions makes Google's clients use a connection to the server that the configuration names.
// Their own to an emulator would limit replies to 4 MiB.
func (c *Client) clientOptions(ctx context.Context, of server) ([]option.ClientOption, error) {
	switch {
	case of.service:
		return googleauth.Options(ctx, of.scopes()...)
	case c.shares(of):
		return []option.ClientOption{option.WithGRPCConn(c.conn.first())}, nil
	}
	open, err := c.opt.dialer(ctx, of, c.watch)
	if err != nil {
		return nil, err
	}
	conn, err := open() // Google's client closes it
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", of.addr, err)
	}
	return []option.ClientOption{option.WithGRPCConn(conn)}, nil
}

// dataClient returns Google's client for reads of data tables, which copies, resyncs and
// comparisons make. Its metrics are off, because it would export them to Cloud Monitoring even with
// an emulator, and so is its session data path.
func (c *Client) dataClient(ctx context.Context) (*bigtable.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.data != nil {
		return c.data, nil
	}
	config := bigtable.ClientConfig{
		AppProfile: c.opt.CopyProfile, MetricsProvider: bigtable.NoopMetricsProvider{}, DisableSession: true,
	}
	opts, err := c.clientOptions(ctx, c.opt.dataServer())
	if err != nil {
		return nil, fmt.Errorf("open bigtable client: %w", err)
	}
	opts = append([]option.ClientOption{option.WithGRPCConnectionPool(1)}, opts...)
	data, err := bigtable.NewClientWithConfig(ctx, c.opt.Project, c.opt.Instance, config, opts...)
	if err != nil {
		return nil, fmt.Errorf("open bigtable client: %w", err)
	}
	c.data = data
	return data, nil
}

// adminClient returns Google's client for tables and families, which it opens at the first use.
func (c *Client) adminClient(ctx context.Context) (*bigtable.AdminClient, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.admin != nil {
		return c.admin, nil
	}
	opts, err := c.clientOptions(ctx, c.opt.adminServer())
	if err != nil {
		return nil, fmt.Errorf("open admin client: %w", err)
	}
	admin, err := bigtable.NewAdminClient(ctx, c.opt.Project, c.opt.Instance, opts...)
	if err != nil {
		return nil, fmt.Errorf("open admin client: %w", err)
	}
	c.admin = admin
	return admin, nil
}
