package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
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
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/host"
	"github.com/tailrace-cdc/replicator/source/heartbeat"
	"github.com/tailrace-cdc/replicator/source/raw"
)

// Source reads DynamoDB with one set of credentials. It is safe for concurrent use.
type Source struct {
	opt        Options
	log        *zap.Logger
	tables     *dynamodb.Client
	streams    *dynamodbstreams.Client
	identities *sts.Client
	buckets    *s3.Client
	noRetry    aws.Retryer // for calls that this package retries itself
	raw        *raw.Client
	http       *http.Client
	slots      chan struct{} // a token for each GetRecords call of a reader in flight
	budget     *PageMemory
	metrics    *metrics
	now        raw.Clock
	fuse       retentionFuse
	throttled  Throttles
	network    raw.NetworkFailure
	dropped    atomic.Int64 // when a dropped Date was logged last, in milliseconds

	mu       sync.Mutex
	limiters map[string]*rate.Limiter    // by stream ARN
	schemas  map[string]change.KeySchema // of tables, as described last

	heartbeats map[string]heartbeat.Keys // by table
	idlePolls  map[string]time.Duration  // by table, where it is not Options.IdlePoll
}

// Open resolves credentials and region by the AWS default chain and makes the clients. Only the
// chain makes calls. reg may be nil.
func Open(ctx context.Context, o Options, log *zap.Logger, reg prometheus.Registerer) (*Source, error) {
	o = o.withDefaults()
	s := &Source{
		opt: o, log: log, noRetry: noRetryer(), slots: make(chan struct{}, o.Connections),
		budget: NewPageMemory(o.MemoryTotal, o.MemoryPerFeed, reservation, o.Tables), limiters: map[string]*rate.Limiter{},
		schemas: map[string]change.KeySchema{}, heartbeats: map[string]heartbeat.Keys{},
		idlePolls: map[string]time.Duration{},
	}
	maps.Copy(s.heartbeats, o.Heartbeats)
	maps.Copy(s.idlePolls, o.IdlePolls)
	s.now.Trust(max(o.DateTrust, 0))
	cfg, err := s.loadConfig(ctx)
	if err != nil {
		return nil, err
	}
	s.tables = dynamodb.NewFromConfig(cfg, func(c *dynamodb.Options) {
		c.BaseEndpoint = endpoint(o.Endpoint, c.BaseEndpoint)
		c.APIOptions = append(c.APIOptions, raw.OnlyWhole)
	})
	s.streams = dynamodbstreams.NewFromConfig(cfg, func(c *dynamodbstreams.Options) {
		c.BaseEndpoint = endpoint(o.StreamsEndpoint, c.BaseEndpoint)
		c.APIOptions = append(c.APIOptions, raw.OnlyWhole)
	})
	s.identities = sts.NewFromConfig(cfg, func(c *sts.Options) { c.BaseEndpoint = endpoint("", c.BaseEndpoint) })
	s.buckets = s.bucketClient(cfg)
	s.raw = s.rawClient()
	if s.metrics, err = newMetrics(reg, s.budget, o.MemoryTotal, s.now.Apart, s.report); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return s, nil
}

// Address returns what calls name a table by: its ARN where it is in another account, else its
// name.
//
// Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/rbac-cross-account-access.html
func (s *Source) Address(table string) string { return cmp.Or(s.opt.ARNs[table], table) }

// endpoint returns the configured endpoint, or else the environment's.
//
// Requests are signed, so a user in it is never sent; it would only appear in errors.
func endpoint(configured string, environment *string) *string {
	if configured == "" && environment == nil {
		return nil
	}
	shown := host.WithoutUser(cmp.Or(configured, aws.ToString(environment)))
	return &shown
}

// loadConfig runs the AWS default chain, with our transport, retries and role.
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
		hint := "check AWS_PROFILE and the files in ~/.aws"
		return cfg, &Error{Op: "load AWS configuration", Class: failure.Denied, Hint: hint, Err: err}
	}
	if cfg.Region == "" {
		hint := "set source.region or AWS_REGION"
		return cfg, &Error{Op: "load AWS configuration", Class: failure.Fatal, Hint: hint, Err: errors.New("no region")}
	}
	cfg.HTTPClient = s.httpClient(cfg.HTTPClient)
	if s.opt.AssumeRole != "" {
		how := func(r *stscreds.AssumeRoleOptions) {
			r.RoleSessionName = "tailrace"
			if s.opt.ExternalID != "" {
				r.ExternalID = &s.opt.ExternalID
			}
		}
		role := stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), s.opt.AssumeRole, how)
		cfg.Credentials = aws.NewCredentialsCache(role)
	}
	return cfg, nil
}

// transport keeps a connection for every call that may be in flight. It does not ask for gzip by
// default, because inside a region unpacking a page costs twice what scanning it does.
func (s *Source) transport() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns = 2 * s.opt.Connections
		t.MaxIdleConnsPerHost = s.opt.Connections
		t.DisableCompression = !s.opt.Compress
		t.ReadBufferSize = 16 << 10
	})
}

// httpClient makes a client that can be closed from the SDK's transport, which has the certificates
// of the environment.
func (s *Source) httpClient(resolved aws.HTTPClient) HTTPClient {
	if s.opt.HTTPClient != nil {
		return s.opt.HTTPClient
	}
	b, ok := resolved.(*awshttp.BuildableClient)
	if !ok {
		return resolved
	}
	s.http = &http.Client{
		Transport: &raw.Transport{Next: b.GetTransport(), Failure: &s.network}, Timeout: s.opt.CallTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s.http
}

// rawClient makes the client of GetRecords.
func (s *Source) rawClient() *raw.Client {
	send := s.streams.Options().HTTPClient.Do
	if s.http != nil {
		// The transport alone is enough: the deadline is the context's, and redirects are not
		// followed.
		send = s.http.Transport.RoundTrip
	}
	return raw.NewClient(s.streams, s.withoutRetry, send)
}

// bucketClient makes the client that package export reads exports with. Any other server than AWS
// gets the bucket's name in the path, because names below its host need not resolve. The time limit
// is the reader's: a file may take longer than any call to DynamoDB.
func (s *Source) bucketClient(cfg aws.Config) *s3.Client {
	return s3.NewFromConfig(cfg, func(c *s3.Options) {
		c.BaseEndpoint = endpoint(s.opt.S3Endpoint, c.BaseEndpoint)
		c.UsePathStyle = c.BaseEndpoint != nil
		c.APIOptions = append(c.APIOptions, raw.OnlyWhole)
		if s.http != nil {
			c.HTTPClient = &http.Client{Transport: s.http.Transport}
		}
	})
}

// Buckets returns the client for S3, with the credentials of this source.
func (s *Source) Buckets() *s3.Client { return s.buckets }

// Tables returns the client for tables, with the endpoint and the credentials of this source.
func (s *Source) Tables() *dynamodb.Client { return s.tables }

// CallTimeout returns Options.CallTimeout: how long a server may be silent.
func (s *Source) CallTimeout() time.Duration { return s.opt.CallTimeout }

// Close closes idle connections. Readers and pools must have ended.
func (s *Source) Close() {
	if s.http != nil {
		s.http.CloseIdleConnections()
	}
}

// standardRetryer lets the SDK retry a call, with our backoff. The SDK's retry quota is off: all
// calls of a client share it, so one throttled shard would use up the retries of all the others.
func standardRetryer(attempts int) aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = attempts
		o.RateLimiter = ratelimit.None
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) {
			return retryBackoff(attempt), nil
		})
	})
}

// noRetryer leaves retries to the caller, which has to know about every throttled call.
func noRetryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = 1
		o.RateLimiter = ratelimit.None
	})
}

// withoutRetry is an option of one call: the SDK does not retry it.
func (s *Source) withoutRetry(o *dynamodbstreams.Options) { o.Retryer = s.noRetry }

// callDeadline returns the time limit of a call with the SDK's retries.
func (s *Source) callDeadline() time.Duration { return 4 * s.opt.CallTimeout }

// reported are the calls that reading depends on. The other calls do not affect readiness, even if
// they always fail.
var reported = map[string]bool{
	"DescribeTable": true, "DescribeStream": true, "GetShardIterator": true, "GetRecords": true,
}

// report passes the outcome of a call to Options.Report. An answer that something was trimmed, is
// gone or has expired is reported as nil, because it shows that the service is available.
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
	switch {
	case err == nil:
	case isCredentials(err):
		err = &Error{Op: op, Class: Classify(err), Hint: credentialsHint(err), Err: err}
	default: // as every other error of a call: the service's own code and message
		err = &Error{Op: op, Class: Classify(err), Err: s.network.WithCause(err)}
	}
	s.opt.Report(op, err)
}

// wrap is the function wrap; after a deadline it also adds the last network error.
func (s *Source) wrap(ctx context.Context, op string, err error) error {
	wrapped := wrap(ctx, op, err)
	if own := (*Error)(nil); errors.As(wrapped, &own) {
		own.Err = s.network.WithCause(own.Err)
	}
	return wrapped
}

// Now returns the time of the service's clock: the latest Date header, advanced by our own
// monotonic clock. It is false before the first reply.
func (s *Source) Now() (now change.Millis, ok bool) { return s.now.Read(time.Now()) }

// nowOrLocal returns Now, or our own clock's time before the first reply.
func (s *Source) nowOrLocal() change.Millis {
	if now, ok := s.Now(); ok {
		return now
	}
	return change.Millis(time.Now().UnixMilli())
}

// observeCall adjusts the estimate of the service's clock by the reply to a call that the SDK made,
// see raw.Clock.Observe.
func (s *Source) observeCall(md middleware.Metadata, start time.Time) change.Millis {
	requested, _ := s.observe(raw.TimingOf(md, start))
	return requested
}

// observeDates is observeCall, and returns the reply's Date too; both are 0 where the reply has
// none. ErrDateDropped means that the Date is not the service's time: what was read with it has no
// version.
func (s *Source) observeDates(
	md middleware.Metadata, start time.Time,
) (requested, answered change.Millis, err error) {
	t := raw.TimingOf(md, start)
	requested, err = s.observe(t)
	if requested != 0 {
		answered = change.MillisOf(t.Server)
	}
	return requested, answered, err
}

// droppedEvery is how often dropped Dates are logged at most, in milliseconds: there are many
// replies a second.
const droppedEvery = 30_000

// observe passes the timing of a call to the clock, and logs how an unexpected Date is handled.
//
// Rule 13: while the time is uncertain, a call counts as sent at the earlier of two times: the
// Date, and the time of this machine. With a Date that is ahead, an empty page would prove that
// nothing is written in the time to come.
func (s *Source) observe(t raw.Timing) (requested change.Millis, err error) {
	estimate, _ := s.now.Read(t.Replied)
	requested, judged := s.now.Observe(t)
	fields := []zap.Field{zap.Time("date", t.Server), zap.Time("wall", t.Replied.Round(0))}
	if estimate > 0 {
		fields = append(fields, zap.Time("estimate", estimate.Time()))
	}
	switch judged {
	case raw.DateApart:
		s.log.Warn("the service's Date is far from this machine's clock: copies, resyncs and commands that ask for "+
			"the time wait until it has advanced steadily; set the clock if it is wrong",
			append(fields, zap.Duration("for", s.opt.DateTrust))...)
	case raw.DateDropped:
		if last := s.dropped.Load(); t.Replied.UnixMilli()-last > droppedEvery && s.dropped.CompareAndSwap(
			last, t.Replied.UnixMilli()) {
			s.log.Warn("a reply's Date is dropped: it is far from the time that earlier replies show", fields...)
		}
		return requested, raw.ErrDateDropped
	case raw.DateBelieved:
		s.log.Warn("the service's time has changed, and is steady again: it is believed", fields...)
	}
	if requested > 0 && s.now.Uncertain() {
		requested = max(min(requested, change.MillisOf(t.Sent)), requested-mostDoubted)
	}
	return requested, nil
}

// mostDoubted is by how much an uncertain time counts less, in milliseconds. It is little beside
// the retention of a stream, so that a wrong clock of this machine makes no reading look lost.
const mostDoubted = 15 * 60_000

// Apart returns how far the Date of the service's newest reply is from this machine's clock, and
// whether the service's time is uncertain for that.
func (s *Source) Apart() (apart time.Duration, uncertain bool) {
	return time.Duration(s.now.Apart()) * time.Millisecond, s.now.Uncertain()
}

// Certain returns an error, of class Transient, while the service's time is uncertain: the first
// Date was far from this machine's clock, and none has shown yet that Dates advance as time does.
// Versions of what is read must not come from such a time.
func (s *Source) Certain() error {
	if _, uncertain := s.Apart(); !uncertain {
		return nil
	}
	return &Error{Op: "read the service's time", Class: failure.Transient, Err: errors.New(
		"the Date of the first reply was more than 30 s from this machine's clock"),
		Hint: "this goes on when Dates have advanced steadily for " + s.opt.DateTrust.String() + "; set this machine's clock"}
}

// Retention returns the time until the oldest record that a live reader of the table has not read
// may be lost: 24 hours less its age, never below zero. Records of shards that wait for their
// parent are younger. It is false while the progress of no reader of the table is known.
func (s *Source) Retention(table string) (left time.Duration, ok bool) {
	return s.fuse.remaining(table, s.nowOrLocal())
}

// ThrottledSince returns since when reads of the table's stream have been throttled, on this
// process's clock; false where none were lately, or a few of them only.
func (s *Source) ThrottledSince(table string) (since time.Time, ok bool) {
	return s.throttled.Since(table, time.Now())
}
