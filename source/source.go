// Package source reads DynamoDB: it lists the shards of a stream, reads their records as raw pages, and
// reads items for comparison. It is the only package that knows the AWS SDK.
//
//	Table ─► List / Children ─► Reader (one shard) ─► Page{raw records, versions, positions}
//	                              │ budget in bytes, token bucket, iterator     │
//	                              └──────────── Pool drives thousands ◄─────────┘ Release
//
// A page is the body of one GetRecords reply as it came: records are found in it by a lazy scanner, nothing
// is decoded but the keys. A Reader decides nothing about the shard graph: which shard may be read, and from
// where, is the state's business. What it cannot read it says: GapError, never a silent jump.
package source

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source/memory"
	"github.com/tailrace-cdc/replicator/source/raw"
)

// Options says where DynamoDB is and how hard to ask. The zero value of a field is its default.
type Options struct {
	Region          string        // empty: from the environment
	Endpoint        string        // of DynamoDB; empty: AWS's own
	StreamsEndpoint string        // empty: Endpoint, unless that is AWS's own
	AssumeRole      string        // ARN of a role to assume; empty: the default chain's credentials as they are
	IdlePoll        time.Duration // between reads of a shard that is idle for seconds: 1s; longer saves CPU and adds lag
	CallTimeout     time.Duration // of one attempt of one call: 15s; shorter than a full page takes means no progress
	Compress        bool          // accept gzip: costs more CPU than the rest of reading; for slow links only
	ReadsPerShard   float64       // GetRecords a second and shard: 5, what AWS serves
	Connections     int           // calls in flight at once, all shards together: 64
	MemoryTotal     int64         // bytes of pages read and not yet released: 96 MiB
	MemoryPerFeed   int64         // the same for one shard: 8 MiB
	Tables          int           // how many are read: 1; any beyond that has no part of the memory to itself, but for one page
	HTTPClient      HTTPClient    // transport in place of the SDK's own; tests with virtual time need one
	Attempts        int           // of a call that may be repeated: 10; commands that a person waits for make fewer

	// Report is told how each call that reading depends on ended: nil where the service answered, else why it did not
	// or why it refuses. It must be fast. Nil: nobody wants to know.
	Report func(op string, err error)
}

// HTTPClient sends a request; *http.Client is one.
type HTTPClient interface {
	Do(*http.Request) (*http.Response, error)
}

func (o Options) withDefaults() Options {
	if o.StreamsEndpoint == "" && !isAWS(o.Endpoint) {
		o.StreamsEndpoint = o.Endpoint
	}
	def(&o.IdlePoll, time.Second)
	def(&o.CallTimeout, 15*time.Second)
	def(&o.ReadsPerShard, 5)
	def(&o.Connections, 64)
	def(&o.MemoryTotal, 96<<20)
	def(&o.MemoryPerFeed, 8<<20)
	def(&o.Tables, 1)
	def(&o.Attempts, 10)
	if o.Report == nil {
		o.Report = func(string, error) {}
	}
	return o
}

func def[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

func isAWS(endpoint string) bool {
	return strings.Contains(endpoint, ".amazonaws.com") || strings.Contains(endpoint, ".api.aws")
}

// Source is DynamoDB as seen through one set of credentials. It is safe for concurrent use.
type Source struct {
	opt        Options
	log        *zap.Logger
	tables     *dynamodb.Client
	streams    *dynamodbstreams.Client
	identities *sts.Client
	once       aws.Retryer // for calls whose retries are ours
	raw        *raw.Client
	http       *http.Client
	slots      chan struct{} // a token per call in flight of the pools' readers
	budget     *memory.Budget
	metrics    *metrics
	now        serviceClock
	watch      watch
	silence    atomic.Pointer[error] // why the newest request had no answer; nil when it had one

	mu       sync.Mutex
	describe map[string]*rate.Limiter // by stream ARN
}

// Open resolves credentials and region by the AWS default chain and makes the clients. It calls nothing but
// what the chain itself calls. reg may be nil.
func Open(ctx context.Context, o Options, log *zap.Logger, reg prometheus.Registerer) (*Source, error) {
	o = o.withDefaults()
	s := &Source{
		opt: o, log: log, once: single(), slots: make(chan struct{}, o.Connections),
		budget: memory.New(o.MemoryTotal, o.MemoryPerFeed, reservation, o.Tables), describe: map[string]*rate.Limiter{},
	}
	cfg, err := s.load(ctx)
	if err != nil {
		return nil, err
	}
	s.tables = dynamodb.NewFromConfig(cfg, func(c *dynamodb.Options) { c.BaseEndpoint = endpoint(o.Endpoint, c.BaseEndpoint) })
	s.streams = dynamodbstreams.NewFromConfig(cfg, func(c *dynamodbstreams.Options) {
		c.BaseEndpoint = endpoint(o.StreamsEndpoint, c.BaseEndpoint)
	})
	s.identities = sts.NewFromConfig(cfg)
	s.raw = s.rawClient()
	if s.metrics, err = newMetrics(reg, s); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return s, nil
}

func endpoint(configured string, found *string) *string {
	if configured != "" {
		return &configured
	}
	return found
}

func (s *Source) load(ctx context.Context) (aws.Config, error) {
	opts := []func(*config.LoadOptions) error{
		config.WithRetryer(func() aws.Retryer { return standard(s.opt.Attempts) }),
		config.WithLogger(logging.Nop{}),
		config.WithAppID("tailrace"),
	}
	if s.opt.Region != "" {
		opts = append(opts, config.WithRegion(s.opt.Region))
	}
	opts = append(opts, config.WithHTTPClient(s.transport()))
	cfg, err := config.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return cfg, &Error{Op: "load AWS configuration", Class: failure.Denied, Hint: "check AWS_PROFILE and the files in ~/.aws", Err: err}
	}
	if cfg.Region == "" {
		return cfg, &Error{Op: "load AWS configuration", Class: failure.Fatal, Hint: "set source.region or AWS_REGION", Err: fmt.Errorf("no region")}
	}
	cfg.HTTPClient = s.client(cfg.HTTPClient)
	if s.opt.AssumeRole != "" {
		role := stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), s.opt.AssumeRole, func(r *stscreds.AssumeRoleOptions) {
			r.RoleSessionName = "tailrace"
		})
		cfg.Credentials = aws.NewCredentialsCache(role)
	}
	return cfg, nil
}

// transport keeps a connection for every call that may be in flight, and does not ask for gzip by default:
// inside a region unpacking costs twice what scanning a page does.
func (s *Source) transport() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns = 2 * s.opt.Connections
		t.MaxIdleConnsPerHost = s.opt.Connections
		t.DisableCompression = !s.opt.Compress
		t.ReadBufferSize = 16 << 10
	})
}

// client makes one client of the SDK's transport, certificates of the environment included, that can be closed.
func (s *Source) client(found aws.HTTPClient) HTTPClient {
	if s.opt.HTTPClient != nil {
		return s.opt.HTTPClient
	}
	b, ok := found.(*awshttp.BuildableClient)
	if !ok {
		return found
	}
	s.http = &http.Client{
		Transport: &answers{s: s, next: b.GetTransport()}, Timeout: s.opt.CallTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s.http
}

// rawClient makes the client of GetRecords.
func (s *Source) rawClient() *raw.Client {
	send := s.streams.Options().HTTPClient.Do
	if s.http != nil {
		// The deadline is the context's, and a redirect is never followed: the transport alone will do.
		send = s.http.Transport.RoundTrip
	}
	return raw.NewClient(s.streams, s.onceStreams, send)
}

// Close gives idle connections back. Readers and pools must have ended.
func (s *Source) Close() {
	if s.http != nil {
		s.http.CloseIdleConnections()
	}
}

// standard retries calls that the SDK may repeat by itself. The SDK's retry quota is off: it belongs to the
// client, so one throttled shard would use up the retries of all the others.
func standard(attempts int) aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = attempts
		o.RateLimiter = ratelimit.None
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) { return backoff(attempt), nil })
	})
}

// single leaves retries to the caller, who must know about every throttle.
func single() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = 1
		o.RateLimiter = ratelimit.None
	})
}
