package front_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
	"github.com/tailrace-cdc/replicator/sandbox/signature"
	"github.com/tailrace-cdc/replicator/shadow/exchange"
	"github.com/tailrace-cdc/replicator/shadow/front"
	"github.com/tailrace-cdc/replicator/source"
)

const name = "dynamodb." + sandbox.Region + ".amazonaws.com"

// world is a sandbox that checks signatures, with a table and an item, and a front of each kind.
type world struct {
	*sandbox.World
	fronts map[front.Mode]*front.Front
	taken  atomic.Int64
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: sandbox.NewWorld(t, sandbox.WorldOptions{Options: sandbox.Options{
		NoBigtable: true, NoNATS: true, NoS3: true, CheckSignatures: true,
	}}), fronts: map[front.Mode]*front.Front{}}
	w.CreateTable("Orders")
	w.Put("Orders", "a", "b", `"n":{"N":"1"}`)
	w.Put("Orders", "large", "x", fmt.Sprintf(`"b":{"B":%q}`, strings.Repeat("AAEC", 400_000/4)))
	for _, mode := range []front.Mode{front.Keep, front.Sign} {
		w.fronts[mode] = w.front(t, mode, w.Endpoint())
	}
	return w
}

// front runs a front before an endpoint until the test ends.
func (w *world) front(t *testing.T, mode front.Mode, endpoint string) *front.Front {
	t.Helper()
	o := front.Options{
		Listen: "127.0.0.1:0", Mode: mode, Services: []front.Service{{Host: name, Endpoint: endpoint}},
		Share: 1, Tap: func(*exchange.Exchange) { w.taken.Add(1) },
	}
	if mode == front.Sign {
		o.Sign = signer(t)
	}
	f, err := front.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	run, end := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(run) }()
	t.Cleanup(func() {
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return f
}

// signer returns the signer of a source with the sandbox's credentials.
func signer(t *testing.T) front.Signer {
	t.Helper()
	old := map[string]string{"AWS_ACCESS_KEY_ID": signature.AccessKey, "AWS_SECRET_ACCESS_KEY": signature.SecretKey,
		"AWS_SESSION_TOKEN": ""}
	for key, value := range old {
		t.Setenv(key, value)
	}
	src, err := source.Open(t.Context(), source.Options{Region: sandbox.Region}, zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return src.Signer()
}

// environment returns the variables with which a program reaches DynamoDB through a front. Those of
// an application whose requests the front signs anew have another secret.
func (w *world) environment(mode front.Mode) []string {
	env := []string{
		"AWS_REGION=" + sandbox.Region, "AWS_DEFAULT_REGION=" + sandbox.Region, "AWS_ACCESS_KEY_ID=" + signature.AccessKey,
		"AWS_SESSION_TOKEN=", "AWS_PAGER=", "AWS_EC2_METADATA_DISABLED=true", "no_proxy=", "NO_PROXY=",
	}
	addr := "http://" + w.fronts[mode].Addr()
	if mode == front.Sign {
		return append(env, "AWS_ENDPOINT_URL_DYNAMODB="+addr, "AWS_SECRET_ACCESS_KEY=another", "HTTP_PROXY=", "http_proxy=")
	}
	return append(env, "AWS_ENDPOINT_URL_DYNAMODB=http://"+name, "AWS_SECRET_ACCESS_KEY="+signature.SecretKey,
		"HTTP_PROXY="+addr, "http_proxy="+addr)
}

// client returns a client of the Go SDK behind a front.
func client(t *testing.T, mode front.Mode, addr, secret string) *dynamodb.Client {
	t.Helper()
	endpoint := "http://" + addr
	proxy, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	if mode == front.Keep {
		endpoint = "http://" + name
	}
	transport := awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) {
		tr.Proxy = nil
		if mode == front.Keep {
			tr.Proxy = http.ProxyURL(proxy)
		}
	})
	cfg, err := config.LoadDefaultConfig(t.Context(), config.WithRegion(sandbox.Region),
		config.WithHTTPClient(transport),
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(signature.AccessKey, secret, "")),
		config.WithRetryer(func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.MaxAttempts, o.MaxBackoff, o.RateLimiter = 30, time.Second, unlimited{}
			})
		}))
	if err != nil {
		t.Fatal(err)
	}
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.BaseEndpoint = &endpoint })
}

// unlimited lets a client retry without end.
type unlimited struct{}

func (unlimited) GetToken(context.Context, uint) (func() error, error) {
	return func() error { return nil }, nil
}
func (unlimited) AddTokens(uint) error { return nil }

func key(pk, sk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: pk}, "sk": &types.AttributeValueMemberS{Value: sk},
	}
}

// TestGoSDK makes calls of all kinds through both fronts.
func TestGoSDK(t *testing.T) {
	w := newWorld(t)
	table := aws.String("Orders")
	direct := client(t, front.Sign, strings.TrimPrefix(w.Endpoint(), "http://"), signature.SecretKey)
	for mode, secret := range map[front.Mode]string{front.Keep: signature.SecretKey, front.Sign: "another"} {
		c := client(t, mode, w.fronts[mode].Addr(), secret)
		for range 3 {
			got, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: table, Key: key("a", "b")})
			if err != nil || len(got.Item) != 3 {
				t.Fatalf("%v (%v)", got, err)
			}
		}
		got, err := c.Query(t.Context(), &dynamodb.QueryInput{TableName: table, KeyConditionExpression: aws.String("pk = :p"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":p": &types.AttributeValueMemberS{Value: "large"}}})
		if err != nil || len(got.Items) != 1 || len(got.Items[0]["b"].(*types.AttributeValueMemberB).Value) != 300_000 {
			t.Errorf("an item of 400 KB: %v", err)
		}
		_, err = c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: table, Item: key("a", "b"),
			ConditionExpression: aws.String("attribute_not_exists(pk)")})
		if refused := (*types.ConditionalCheckFailedException)(nil); !errors.As(err, &refused) {
			t.Errorf("a condition that fails: %v", err)
		}
		large := key("larger", "x")
		large["b"] = &types.AttributeValueMemberB{Value: bytes.Repeat([]byte{0, 255}, 190_000)}
		if _, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: table, Item: large}); err != nil {
			t.Errorf("put an item of 380 KB: %v", err)
		}
		for _, effect := range []fault.Effect{fault.Cut, fault.Reset, fault.Truncate, fault.Stall} {
			var errs [2]error
			for i, c := range []*dynamodb.Client{direct, c} {
				inject(t, w, fault.Rule{Effect: effect, Operation: "GetItem", Times: 2, Delay: time.Millisecond})
				_, errs[i] = c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: table, Key: key("large", "x")})
				w.Faults.Calm() // the SDK does not try again when a reply is cut within its body
			}
			if (errs[0] == nil) != (errs[1] == nil) {
				t.Errorf("%s: %v without the front, and %v through it", effect, errs[0], errs[1])
			}
		}
	}
	wrong := client(t, front.Keep, w.fronts[front.Keep].Addr(), "wrong")
	_, err := wrong.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: table, Key: key("a", "b")})
	if err == nil || !strings.Contains(err.Error(), "InvalidSignatureException") {
		t.Errorf("a wrong secret in mode keep: %v", err)
	}
}

func inject(t *testing.T, w *world, r fault.Rule) {
	t.Helper()
	if err := w.Faults.Inject(r); err != nil {
		t.Fatal(err)
	}
}

// differing is what differs by nature from answer to answer.
var differing = regexp.MustCompile(`(?mi)^(x-amzn-requestid|date): .*$`)

// TestAnswersAreThoseOfTheService compares what comes on a socket with and without each front, byte
// for byte.
func TestAnswersAreThoseOfTheService(t *testing.T) {
	w := newWorld(t)
	get := `{"TableName":"Orders","Key":{"pk":{"S":%q},"sk":{"S":%q}}}`
	requests := map[string][3]string{
		"an item":      {"GetItem", fmt.Sprintf(get, "a", "b")},
		"no item":      {"GetItem", fmt.Sprintf(get, "a", "c")},
		"a large item": {"GetItem", fmt.Sprintf(get, "large", "x")},
		"a query": {"Query", `{"TableName":"Orders","KeyConditionExpression":"pk = :p",
			"ExpressionAttributeValues":{":p":{"S":"a"}}}`},
		"no table":            {"GetItem", strings.Replace(fmt.Sprintf(get, "a", "b"), "Orders", "None", 1)},
		"an invalid request":  {"GetItem", `{"TableName":"Orders"}`},
		"no JSON":             {"GetItem", "x"},
		"no operation":        {"Nothing", "{}"},
		"a wrong signature":   {"GetItem", fmt.Sprintf(get, "a", "b"), "wrong"},
		"no signature at all": {"GetItem", fmt.Sprintf(get, "a", "b"), "none"},
	}
	for _, zipped := range []bool{false, true} {
		w.Faults.Gzip(zipped)
		for _, title := range slices.Sorted(maps.Keys(requests)) {
			operation, body, how := requests[title][0], requests[title][1], requests[title][2]
			direct := raw(t, w.Endpoint(), call(t, "/", name, operation, body, how))
			kept := raw(t, "http://"+w.fronts[front.Keep].Addr(), call(t, "http://"+name+"/", name, operation, body, how))
			if kept != direct {
				t.Errorf("%s, gzip %v: got\n%q\nthrough the front, and\n%q\nwithout it", title, zipped, kept, direct)
			}
			if how != "" {
				continue // the front's signature is right
			}
			signed := raw(t, "http://"+w.fronts[front.Sign].Addr(), call(t, "/", "127.0.0.1", operation, body, "wrong"))
			if signed != direct {
				t.Errorf("%s, gzip %v: got\n%q\nthrough the front that signs, and\n%q\nwithout it", title, zipped, signed, direct)
			}
		}
	}
	w.Faults.Gzip(false)
	for _, effect := range []fault.Effect{fault.Cut, fault.Truncate, fault.Error, fault.NoDate} {
		inject(t, w, fault.Rule{Effect: effect, Code: map[bool]string{true: "ThrottlingException"}[effect == fault.Error]})
		body := fmt.Sprintf(get, "large", "x")
		direct := raw(t, w.Endpoint(), call(t, "/", name, "GetItem", body, ""))
		kept := raw(t, "http://"+w.fronts[front.Keep].Addr(), call(t, "http://"+name+"/", name, "GetItem", body, ""))
		signed := raw(t, "http://"+w.fronts[front.Sign].Addr(), call(t, "/", "127.0.0.1", "GetItem", body, "wrong"))
		if kept != direct || signed != direct {
			t.Errorf("%s: %d bytes through the front, %d through the one that signs, and %d without them", effect, len(kept),
				len(signed), len(direct))
		}
		w.Faults.Calm()
	}
}

// call returns the bytes of a signed request. how is "wrong" or "none" for signatures that are not
// right.
func call(t *testing.T, target, host, operation, body, how string) string {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, "http://"+host+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	signature.Sign(r, []byte(body), sandbox.Region, time.Now())
	switch how {
	case "wrong":
		r.Header.Set("Authorization", r.Header.Get("Authorization")[:200]+"0")
	case "none":
		r.Header.Del("Authorization")
	}
	var fields strings.Builder
	if err := r.Header.Write(&fields); err != nil {
		t.Fatal(err)
	}
	const form = "POST %s HTTP/1.1\r\nHost: %s\r\n%sAccept-Encoding: gzip\r\nConnection: close\r\n" +
		"Content-Length: %d\r\n\r\n%s"
	return fmt.Sprintf(form, target, host, fields.String(), len(body), body)
}

// raw sends a request and returns all that comes, without what differs by nature.
func raw(t *testing.T, endpoint, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(endpoint, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) == 0 {
		t.Fatal("nothing came")
	}
	return differing.ReplaceAllString(string(got), "$1: ")
}

// TestServiceIsKilled ends the service three times while clients read through both fronts. Their
// retries do the rest: the answers of the front itself are such that clients try again.
func TestServiceIsKilled(t *testing.T) {
	w := newWorld(t)
	addr := sandbox.FreeAddr(t)
	begin := func() *http.Server {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		srv := &http.Server{Handler: w.DynamoDB}
		go func() { _ = srv.Serve(l) }()
		return srv
	}
	srv := begin()
	defer func() { _ = srv.Close() }()
	var read, failed atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	defer readers.Wait()
	defer stop()
	var fronts []*front.Front
	for mode, secret := range map[front.Mode]string{front.Keep: signature.SecretKey, front.Sign: "another"} {
		f := w.front(t, mode, "http://"+addr)
		fronts = append(fronts, f)
		c := client(t, mode, f.Addr(), secret)
		readers.Go(func() {
			for ctx.Err() == nil {
				got, err := c.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("Orders"), Key: key("a", "b")})
				switch {
				case ctx.Err() != nil:
				case err != nil || len(got.Item) != 3:
					failed.Add(1)
					t.Errorf("%v (%v)", got, err)
				default:
					read.Add(1)
				}
			}
		})
	}
	unreached := func() (n int64) {
		for _, f := range fronts {
			n += f.Counts().Unreached
		}
		return n
	}
	for range 3 {
		from, away := read.Load(), unreached()
		until(t, func() bool { return read.Load() > from+100 })
		_ = srv.Close()
		until(t, func() bool { return unreached() > away })
		srv = begin()
	}
	from := read.Load()
	until(t, func() bool { return read.Load() > from+100 })
	if failed.Load() > 0 {
		t.Errorf("%d of %d calls failed", failed.Load(), read.Load())
	}
}

func until(t *testing.T, holds func() bool) {
	t.Helper()
	for !holds() {
		select {
		case <-t.Context().Done():
			t.Fatal("the test has ended")
		case <-time.After(time.Millisecond):
		}
	}
}
