package source

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
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// GetRecords is sent without the SDK's middleware, which costs twice what signing, sending and reading an empty page
// cost, and idle shards are nothing but empty pages. Everything that decides what is sent stays the SDK's: its first
// request of a source is the pattern for all others (endpoint, region, user agent, what is signed), requests are signed
// with its credentials, its decoder reads errors. Where the credentials cannot be had, the call goes through the SDK,
// which says why.
type poller struct {
	credentials aws.CredentialsProvider
	send        func(*http.Request) (*http.Response, error)
	pattern     atomic.Pointer[pattern]
	signing     atomic.Pointer[signer]
	skew        atomic.Int64 // nanoseconds that the service's clock is ahead of ours, by its last reply
}

// pattern is what all GetRecords requests of a source have in common. It is shared by them: nothing writes to it.
type pattern struct {
	request         *http.Request // without header and body
	host            string
	header          http.Header
	region, service string // that the signature is for
}

func (s *Source) newPoller(client HTTPClient) *poller {
	p := &poller{credentials: s.streams.Options().Credentials, send: client.Do}
	if s.http != nil {
		// The deadline is the context's, and a redirect is never followed: the transport alone will do.
		p.send = s.http.Transport.RoundTrip
	}
	return p
}

// getRecords makes one call and reads its reply into b. The date is Source.date's.
func (s *Source) getRecords(ctx context.Context, iterator string, b *body) (date int64, err error) {
	start := time.Now()
	pattern := s.poller.pattern.Load()
	if pattern == nil {
		return s.getRecordsSDK(ctx, iterator, b, start)
	}
	credentials, err := s.poller.credentials.Retrieve(ctx)
	if err != nil {
		return s.getRecordsSDK(ctx, iterator, b, start)
	}
	skew := time.Duration(s.poller.skew.Load())
	req, err := s.poller.request(ctx, pattern, credentials, iterator, start.Add(skew))
	if err != nil {
		return 0, err
	}
	reply, err := s.poller.send(req)
	if err != nil {
		return 0, operationError(&smithyhttp.RequestSendError{Err: err})
	}
	defer func() { _ = reply.Body.Close() }()
	replied := time.Now()
	server, err := smithyhttp.ParseTime(reply.Header.Get("Date"))
	dated := err == nil
	if dated && reply.Header.Get("Age") == "" { // an old reply of a cache says nothing about now
		s.poller.skew.Store(int64(server.Sub(replied)))
	}
	r := &smithyhttp.Response{Response: reply}
	if reply.StatusCode == http.StatusOK {
		err = b.read(r)
	} else {
		err = replyError(ctx, r, skew-time.Duration(s.poller.skew.Load()))
	}
	if err != nil {
		return 0, operationError(&awshttp.ResponseError{
			ResponseError: &smithyhttp.ResponseError{Response: r, Err: err}, RequestID: reply.Header.Get("X-Amzn-Requestid"),
		})
	}
	if !dated {
		return 0, nil
	}
	return s.dated(server, start, replied), nil
}

// getRecordsSDK is getRecords by the SDK. Its request becomes the pattern.
func (s *Source) getRecordsSDK(ctx context.Context, iterator string, b *body, start time.Time) (date int64, err error) {
	sent := &recorder{HTTPClient: s.streams.Options().HTTPClient}
	in := &dynamodbstreams.GetRecordsInput{ShardIterator: &iterator, Limit: ptr(int32(recordsLimit))}
	out, err := s.streams.GetRecords(ctx, in, b.ofStreams, s.onceStreams,
		func(o *dynamodbstreams.Options) { o.HTTPClient = sent })
	if err != nil {
		return 0, err
	}
	if skew, ok := awsmiddleware.GetAttemptSkew(out.ResultMetadata); ok {
		s.poller.skew.Store(int64(skew))
	}
	if p := patternOf(sent.request); p != nil {
		s.poller.pattern.Store(p)
	}
	return s.date(out.ResultMetadata, start), nil
}

// recorder keeps the request that it sends.
type recorder struct {
	HTTPClient
	request *http.Request
}

func (c *recorder) Do(r *http.Request) (*http.Response, error) {
	c.request = r
	return c.HTTPClient.Do(r)
}

var signedFor = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=[^,]*/\d{8}/([^/,]+)/([^/,]+)/aws4_request,`)

// patternOf takes what requests have in common out of one; nil when it is not sent and signed in the one way we know.
func patternOf(r *http.Request) *pattern {
	scope := signedFor.FindStringSubmatch(r.Header.Get("Authorization"))
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

func (p *poller) request(
	ctx context.Context, like *pattern, c aws.Credentials, iterator string, now time.Time,
) (*http.Request, error) {
	text, err := json.Marshal(struct {
		Limit         int
		ShardIterator string
	}{recordsLimit, iterator})
	if err != nil {
		return nil, err
	}
	date := now.UTC().Format(signedTime)
	header := maps.Clone(like.header)
	header["X-Amz-Date"] = []string{date}
	header["Authorization"] = []string{p.signer(like, c, date[:8]).authorization(text, date)}
	if c.SessionToken != "" {
		header["X-Amz-Security-Token"] = []string{c.SessionToken}
	}
	req := like.request.WithContext(ctx)
	req.Header, req.ContentLength = header, int64(len(text))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	req.Body, err = req.GetBody()
	return req, err
}

var getRecordsSchema = smithy.NewOperationSchema(
	streamschemas.GetRecords, streamschemas.GetRecordsInput, streamschemas.GetRecordsOutput)

// replyError is the error that the SDK makes of a reply. wrong is how far the signature's time was from the service's.
func replyError(ctx context.Context, r *smithyhttp.Response, wrong time.Duration) error {
	out := new(dynamodbstreams.GetRecordsOutput)
	err := streamProtocol.DeserializeResponse(ctx, getRecordsSchema, dynamodbstreams.TypeRegistry, r, out)
	if err == nil {
		return malformed{errors.New("a reply with status " + r.Status)}
	}
	if api := smithy.APIError(nil); errors.As(err, &api) && skewCodes[api.ErrorCode()] && wrong.Abs() > skewTolerated {
		return skewed{err}
	}
	return err
}

func operationError(err error) error {
	return &smithy.OperationError{ServiceID: dynamodbstreams.ServiceID, OperationName: "GetRecords", Err: err}
}

// The codes of a refused signature that may be due to a wrong clock, and how wrong it must be, as the SDK has them.
var skewCodes = map[string]bool{
	"InvalidSignatureException": true, "SignatureDoesNotMatch": true, "AuthFailure": true,
	"RequestTimeTooSkewed": true, "AccessDeniedException": true,
}

const skewTolerated = 4 * time.Minute

// skewed is a refusal because our clock is wrong: by now the right time is known, so try again.
type skewed struct{ error }

func (skewed) RetryableError() bool { return true }

func (s skewed) Unwrap() error { return s.error }
