package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
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
	"github.com/aws/smithy-go/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source/memory"
	"github.com/tailrace-cdc/replicator/source/raw"
)

// Source is DynamoDB as seen through one set of credentials. It is safe for concurrent use.
type Source struct {
	opt        Options
	log        *zap.Logger
	tables     *dynamodb.Client
	streams    *dynamodbstreams.Client
	identities *sts.Client
	noRetry    aws.Retryer // for calls whose retries are ours
	raw        *raw.Client
	http       *http.Client
	slots      chan struct{} // a token per call in flight of the pools' readers
	budget     *memory.Budget
	metrics    *metrics
	now        serviceClock
	watch      watch
	silence    silence

	mu       sync.Mutex
	limiters map[string]*rate.Limiter // by stream ARN
}

// Open resolves credentials and region by the AWS default chain and makes the clients. It calls nothing but
// what the chain itself calls. reg may be nil.
func Open(ctx context.Context, o Options, log *zap.Logger, reg prometheus.Registerer) (*Source, error) {
	o = o.withDefaults()
	s := &Source{
		opt: o, log: log, noRetry: noRetryer(), slots: make(chan struct{}, o.Connections),
		budget: memory.New(o.MemoryTotal, o.MemoryPerFeed, reservation, o.Tables), limiters: map[string]*rate.Limiter{},
	}
	cfg, err := s.loadConfig(ctx)
	if err != nil {
		return nil, err
	}
	s.tables = dynamodb.NewFromConfig(cfg, func(c *dynamodb.Options) { c.BaseEndpoint = endpoint(o.Endpoint, c.BaseEndpoint) })
	s.streams = dynamodbstreams.NewFromConfig(cfg, func(c *dynamodbstreams.Options) {
		c.BaseEndpoint = endpoint(o.StreamsEndpoint, c.BaseEndpoint)
	})
	s.identities = sts.NewFromConfig(cfg)
	s.raw = s.rawClient()
	if s.metrics, err = newMetrics(reg, s.budget, o.MemoryTotal, s.report); err != nil {
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

func (s *Source) loadConfig(ctx context.Context) (aws.Config, error) {
	opts := []func(*config.LoadOptions) error{
		config.WithRetryer(func() aws.Retryer { return standardRetryer(s.opt.Attempts) }),
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
	cfg.HTTPClient = s.httpClient(cfg.HTTPClient)
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
func (s *Source) httpClient(found aws.HTTPClient) HTTPClient {
	if s.opt.HTTPClient != nil {
		return s.opt.HTTPClient
	}
	b, ok := found.(*awshttp.BuildableClient)
	if !ok {
		return found
	}
	s.http = &http.Client{
		Transport: &silenceTransport{next: b.GetTransport(), silence: &s.silence}, Timeout: s.opt.CallTimeout,
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
	return raw.NewClient(s.streams, s.withoutRetry, send)
}

// Close gives idle connections back. Readers and pools must have ended.
func (s *Source) Close() {
	if s.http != nil {
		s.http.CloseIdleConnections()
	}
}

// standard retries calls that the SDK may repeat by itself. The SDK's retry quota is off: it belongs to the
// client, so one throttled shard would use up the retries of all the others.
func standardRetryer(attempts int) aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = attempts
		o.RateLimiter = ratelimit.None
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) { return backoff(attempt), nil })
	})
}

// single leaves retries to the caller, who must know about every throttle.
func noRetryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = 1
		o.RateLimiter = ratelimit.None
	})
}

func (s *Source) withoutRetry(o *dynamodbstreams.Options) { o.Retryer = s.noRetry }

// callDeadline is the deadline of a call that the SDK may try ten times.
func (s *Source) callDeadline() time.Duration { return 4 * s.opt.CallTimeout }

// reported are the calls that reading needs. Others may fail for ever without making a table not ready.
var reported = map[string]bool{"DescribeTable": true, "DescribeStream": true, "GetShardIterator": true, "GetRecords": true}

// report passes on how a call ended. That something is trimmed, gone or expired is an answer: the service does not fail.
func (s *Source) report(op string, err error) {
	if !reported[op] {
		return
	}
	switch Classify(err) {
	case failure.Canceled:
		return
	case failure.Gone:
		err = nil
	case failure.Fatal:
		if isValidation(err) {
			err = nil
		}
	case failure.Transient:
		if isExpired(err) {
			err = nil
		}
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", op, s.silence.withCause(err))
	}
	s.opt.Report(op, err)
}

// wrap is the function wrap, and says of a deadline what was waited for.
func (s *Source) wrap(ctx context.Context, op string, err error) error {
	wrapped := wrap(ctx, op, err)
	if own := (*Error)(nil); errors.As(wrapped, &own) {
		own.Err = s.silence.withCause(own.Err)
	}
	return wrapped
}

// Now is the service's clock in unix ms: the latest Date header, advanced by our own monotonic clock. It is
// false before the first reply.
func (s *Source) Now() (ms int64, ok bool) { return s.now.read(time.Now()) }

// nowOrLocal is Now, or our own clock before the first reply.
func (s *Source) nowOrLocal() int64 {
	if ms, ok := s.Now(); ok {
		return ms
	}
	return time.Now().UnixMilli()
}

// date is dated for a call that the SDK made.
func (s *Source) observeCall(md middleware.Metadata, start time.Time) int64 {
	return s.observeTiming(raw.TimingOf(md, start))
}

// dated returns the service's time of a call in unix ms, never later than the call's start: the Date header
// less the time that has passed from our start until its reply was there. It is 0 when the server sent none.
// It feeds the source's idea of the service's clock.
func (s *Source) observeTiming(t raw.Timing) int64 {
	if t.Server.IsZero() {
		return 0
	}
	s.now.observe(t.Server.UnixMilli(), t.Sent, t.Replied)
	return t.Server.UnixMilli() - t.Replied.Sub(t.Sent).Milliseconds() - 1
}

// Retention returns how long it takes until the oldest record that a live reader of the table has not read
// may be lost: 24 h less its age, never below zero. Records behind it in waiting shards are younger. It is
// false while no reader of the table knows anything.
func (s *Source) Retention(table string) (left time.Duration, ok bool) {
	return s.watch.left(table, s.nowOrLocal())
}
