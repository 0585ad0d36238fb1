package raw

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamschemas "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/schemas"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Client sends GetRecords without the SDK's middleware, which costs twice what signing, sending and
// reading an empty page cost, and idle shards are nothing but empty pages. Everything that decides
// what is sent stays the SDK's: its first request is the pattern for all others (endpoint, region,
// user agent, what is signed), requests are signed with its credentials, and its decoder reads
// errors. If there are no credentials, the call goes through the SDK, so that its error gives the
// reason. A Client is safe for concurrent use.
type Client struct {
	streams      *dynamodbstreams.Client
	credentials  aws.CredentialsProvider
	withoutRetry func(*dynamodbstreams.Options)
	send         func(*http.Request) (*http.Response, error)
	pattern      atomic.Pointer[pattern]
	signing      atomic.Pointer[signer]
	skew         atomic.Int64 // nanoseconds by which the service's clock is ahead of ours, by its last reply
}

// pattern is what all GetRecords requests of a client have in common. They share it, so it must not
// be modified.
type pattern struct {
	request         *http.Request // without header and body
	host            string
	header          http.Header
	region, service string // in the scope of the signature
}

// NewClient makes a Client that sends the requests that the SDK's client would send, with send.
// withoutRetry turns the SDK's retries off.
func NewClient(
	streams *dynamodbstreams.Client, withoutRetry func(*dynamodbstreams.Options),
	send func(*http.Request) (*http.Response, error),
) *Client {
	return &Client{streams: streams, credentials: streams.Options().Credentials, withoutRetry: withoutRetry, send: send}
}

// Timing is when a call was made, on our clock, and the Date of its reply, on the service's.
type Timing struct {
	Sent, Replied time.Time
	Server        time.Time // zero: the server sent no date
}

// TimingOf returns the timing of a call that the SDK made.
func TimingOf(md middleware.Metadata, sent time.Time) Timing {
	t := Timing{Sent: sent}
	t.Server, _ = awsmiddleware.GetServerTime(md)
	var ok bool
	if t.Replied, ok = awsmiddleware.GetResponseAt(md); !ok {
		t.Replied = time.Now()
	}
	return t
}

// HasPattern reports whether the client has a pattern, so that its calls do not go through the SDK
// any more.
func (p *Client) HasPattern() bool { return p.pattern.Load() != nil }

// GetRecords makes one call, without retries, and reads its reply into b.
func (p *Client) GetRecords(ctx context.Context, iterator string, b *Body) (Timing, error) {
	start := time.Now()
	pattern := p.pattern.Load()
	if pattern == nil {
		return p.callThroughSDK(ctx, iterator, b, start)
	}
	credentials, err := p.credentials.Retrieve(ctx)
	if err != nil {
		return p.callThroughSDK(ctx, iterator, b, start)
	}
	skew := time.Duration(p.skew.Load())
	req, err := p.request(ctx, pattern, credentials, iterator, start.Add(skew))
	if err != nil {
		return Timing{}, err
	}
	reply, err := p.send(req)
	if err != nil {
		return Timing{}, operationError(&smithyhttp.RequestSendError{Err: err})
	}
	defer func() { _ = reply.Body.Close() }()
	t := Timing{Sent: start, Replied: time.Now()}
	if date, err := smithyhttp.ParseTime(reply.Header.Get("Date")); err == nil {
		t.Server = date
		if reply.Header.Get("Age") == "" { // the reply is an old one from a cache: its date does not count
			p.skew.Store(int64(date.Sub(t.Replied)))
		}
	}
	r := &smithyhttp.Response{Response: reply}
	if reply.StatusCode == http.StatusOK {
		err = b.read(r)
	} else {
		err = replyError(ctx, r, skew-time.Duration(p.skew.Load()))
	}
	if err != nil {
		return Timing{}, operationError(&awshttp.ResponseError{
			ResponseError: &smithyhttp.ResponseError{Response: r, Err: err}, RequestID: reply.Header.Get("X-Amzn-Requestid"),
		})
	}
	return t, nil
}

// callThroughSDK makes the call with the SDK's client, and takes the pattern of later calls from
// its request.
func (p *Client) callThroughSDK(ctx context.Context, iterator string, b *Body, start time.Time) (Timing, error) {
	sent := &recorder{HTTPClient: p.streams.Options().HTTPClient}
	in := &dynamodbstreams.GetRecordsInput{ShardIterator: &iterator, Limit: aws.Int32(RecordsLimit)}
	out, err := p.streams.GetRecords(ctx, in, b.ForStreams, p.withoutRetry,
		func(o *dynamodbstreams.Options) { o.HTTPClient = sent })
	if err != nil {
		return Timing{}, err
	}
	if skew, ok := awsmiddleware.GetAttemptSkew(out.ResultMetadata); ok {
		p.skew.Store(int64(skew))
	}
	if base := patternOf(sent.request); base != nil {
		p.pattern.Store(base)
	}
	return TimingOf(out.ResultMetadata, start), nil
}

// recorder sends one request and stores it.
type recorder struct {
	dynamodbstreams.HTTPClient
	request *http.Request
}

func (c *recorder) Do(r *http.Request) (*http.Response, error) {
	c.request = r
	return c.HTTPClient.Do(r)
}

// credentialScope finds region and service in an Authorization header.
var credentialScope = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=[^,]*/\d{8}/([^/,]+)/([^/,]+)/aws4_request,`)

// patternOf makes a pattern of a request. It returns nil if the request is not sent and signed in
// the way that Client.request imitates.
func patternOf(r *http.Request) *pattern {
	scope := credentialScope.FindStringSubmatch(r.Header.Get("Authorization"))
	if scope == nil || r.Method != http.MethodPost || r.URL.RequestURI() != "/" {
		return nil
	}
	host := cmp.Or(r.Host, r.URL.Host)
	p := &pattern{
		request: &http.Request{Method: r.Method, URL: r.URL, Host: host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1},
		host:    host, header: r.Header.Clone(), region: scope[1], service: scope[2],
	}
	for _, name := range []string{
		"Authorization", "X-Amz-Date", "X-Amz-Security-Token", "Content-Length", "Amz-Sdk-Invocation-Id", "Amz-Sdk-Request",
	} {
		p.header.Del(name)
	}
	return p
}

// request makes a signed request for one call at now, by the service's clock.
func (p *Client) request(
	ctx context.Context, base *pattern, c aws.Credentials, iterator string, now time.Time,
) (*http.Request, error) {
	text, err := json.Marshal(struct {
		Limit         int
		ShardIterator string
	}{RecordsLimit, iterator})
	if err != nil {
		return nil, err
	}
	date := now.UTC().Format(signedTime)
	header := maps.Clone(base.header)
	header["X-Amz-Date"] = []string{date}
	header["Authorization"] = []string{p.signer(base, c, date[:8]).authorization(text, date)}
	if c.SessionToken != "" {
		header["X-Amz-Security-Token"] = []string{c.SessionToken}
	}
	req := base.request.WithContext(ctx)
	req.Header, req.ContentLength = header, int64(len(text))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	req.Body, err = req.GetBody()
	return req, err
}

// RecordsLimit is how many records one GetRecords call requests: the most that the service returns.
const RecordsLimit = 1000

var getRecordsSchema = smithy.NewOperationSchema(
	streamschemas.GetRecords, streamschemas.GetRecordsInput, streamschemas.GetRecordsOutput)

// replyError returns the error that the SDK decodes from a reply. clockError is the difference
// between the signature's time and the service's.
func replyError(ctx context.Context, r *smithyhttp.Response, clockError time.Duration) error {
	out := new(dynamodbstreams.GetRecordsOutput)
	err := streamProtocol.DeserializeResponse(ctx, getRecordsSchema, dynamodbstreams.TypeRegistry, r, out)
	if err == nil {
		return &MalformedError{errors.New("a reply with status " + r.Status)}
	}
	api := smithy.APIError(nil)
	if errors.As(err, &api) && skewCodes[api.ErrorCode()] && clockError.Abs() > skewTolerated {
		return &skewedError{err}
	}
	return err
}

// operationError wraps an error as the SDK wraps the errors of its calls.
func operationError(err error) error {
	return &smithy.OperationError{ServiceID: dynamodbstreams.ServiceID, OperationName: "GetRecords", Err: err}
}

// skewCodes are the codes of a refused signature that a wrong clock may be the reason for, as in
// the SDK.
var skewCodes = map[string]bool{
	"InvalidSignatureException": true, "SignatureDoesNotMatch": true, "AuthFailure": true,
	"RequestTimeTooSkewed": true, "AccessDeniedException": true,
}

// skewTolerated is how wrong our clock must be to be taken for the reason, as in the SDK.
const skewTolerated = 4 * time.Minute
