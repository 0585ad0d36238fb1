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
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/tailrace-cdc/replicator/failure"
)

// Options of a Client. Zero values of the lower half mean the defaults.
type Options struct {
	Project  string
	Instance string
	// AppProfile must route to a single cluster and allow transactional writes, else every write fails
	// with FailedPrecondition. Empty: the instance's default profile.
	AppProfile string
	// Endpoint is the host:port of an emulator, spoken to in plain text without credentials.
	// Empty: $BIGTABLE_EMULATOR_HOST if set, else the service.
	Endpoint string
	// Now is the source's clock: the latest Date of DynamoDB, moved on by the monotonic clock. The tombstone
	// gate rests on it, so the local wall clock will not do. Apply refuses to work without it.
	Now func() time.Time

	Timeout     time.Duration // of one attempt of a call; default 10 s
	Tombstones  time.Duration // H: how long _tr_dead cells are kept; must exceed the longest outage by far; default 168 h
	Concurrency int           // most calls in flight per table; default 256, starting from a quarter
	Connections int           // default 4 to the service, 1 to an emulator

	// Report is told how each call to a table ended: nil where the service answered, else why it did not or why it
	// refuses everything. It must be fast. Nil: nobody wants to know.
	Report func(table string, err error)
}

func (o Options) withDefaults() Options {
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Tombstones == 0 {
		o.Tombstones = 7 * 24 * time.Hour
	}
	if o.Concurrency == 0 {
		o.Concurrency = 256
	}
	if o.Connections == 0 {
		o.Connections = 4
		if o.emulator() != "" {
			o.Connections = 1
		}
	}
	if o.Report == nil {
		o.Report = func(string, error) {}
	}
	return o
}

func (o Options) check() error {
	switch {
	case o.Project == "" || o.Instance == "":
		return errors.New("project and instance must be named")
	case o.Timeout < 0 || o.Concurrency < 0 || o.Connections < 0:
		return errors.New("time-out, concurrency and connections must be positive")
	case o.Tombstones < 2*gateMargin:
		return fmt.Errorf("tombstones must live %v or longer, not %v", 2*gateMargin, o.Tombstones)
	}
	return nil
}

// Client writes to the tables of one Bigtable instance. Safe for concurrent use.
type Client struct {
	opt     Options
	log     *zap.Logger
	conn    connection
	metrics *metrics
	pauses  func() backoff.BackOff // between attempts

	tables sync.Map // target table → *table

	mu    sync.Mutex            // covers the lazily opened clients
	data  *bigtable.Client      // reads
	admin *bigtable.AdminClient // tables and families
}

// Open prepares a client; it makes no call, so an absent service is found out by the first use.
// reg may be nil: the metrics are then not registered.
func Open(ctx context.Context, o Options, log *zap.Logger, reg prometheus.Registerer) (*Client, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("open bigtable: %w", err)
	}
	conn, err := dial(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("open bigtable: %w", err)
	}
	return &Client{opt: o, log: log, conn: conn, metrics: newMetrics(reg), pauses: pauses}, nil
}

// Close ends the connections; calls in flight fail, and what they wrote is unknown.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	shared := len(c.clientOptions()) > 0
	var errs []error
	if c.data != nil && !shared {
		errs = append(errs, c.data.Close())
	}
	if c.admin != nil && !shared {
		errs = append(errs, c.admin.Close())
	}
	return errors.Join(append(errs, c.conn.Close())...)
}

// report tells how a call to a table ended.
func (c *Client) report(table string, err error) {
	switch Classify(err) {
	case failure.Canceled:
		return
	case failure.None, failure.Rejected:
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
	headers  metadata.MD
	limit    *limit
	metrics  tableMetrics
	families atomic.Pointer[[]string] // as declared
	warned   atomic.Int64             // when the last warning was logged, Unix ns
}

func (c *Client) table(name string) *table {
	if t, ok := c.tables.Load(name); ok {
		return t.(*table)
	}
	full := "projects/" + c.opt.Project + "/instances/" + c.opt.Instance + "/tables/" + name
	start, low := max(1, c.opt.Concurrency/4), max(1, c.opt.Concurrency/32)
	t, _ := c.tables.LoadOrStore(name, &table{
		client:  c,
		name:    full,
		short:   name,
		headers: headers(full, c.opt.AppProfile),
		limit:   newLimit(low, start, c.opt.Concurrency),
		metrics: c.metrics.table(name),
	})
	return t.(*table)
}

// headers route a call to the table's cluster and announce that RetryInfo is honoured
// (google.bigtable.v2.FeatureFlags).
func headers(table, profile string) metadata.MD {
	flags, _ := proto.Marshal(&btpb.FeatureFlags{RetryInfo: true})
	return metadata.Pairs(
		"google-cloud-resource-prefix", table,
		"x-goog-request-params", "table_name="+url.QueryEscape(table)+"&app_profile_id="+url.QueryEscape(profile),
		"bigtable-features", base64.URLEncoding.EncodeToString(flags),
	)
}
