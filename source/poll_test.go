package source

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source/raw"
)

// poll reads a page by the pattern, not by the SDK.
func (s testSource) poll(t *testing.T, iterator string) ([]byte, error) {
	t.Helper()
	if !s.raw.HasPattern() {
		t.Fatal("the source has learned no pattern")
	}
	var b raw.Body
	_, err := s.raw.GetRecords(t.Context(), iterator, &b)
	return b.Bytes(), err
}

// seen is a request as a server sees it.
type seen struct {
	*http.Request
	body []byte
}

// recording passes requests of an operation on, and keeps them.
func recording(next http.Handler, op string, into *[]seen) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(text))
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), op) {
			*into = append(*into, seen{r, text})
		}
		next.ServeHTTP(rw, r)
	})
}

// signature computes the signature of a request anew, as the service does. Source:
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
func (r seen) signature(secret string) (claimed, right string) {
	auth := strings.ReplaceAll(strings.TrimPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 "), ", ", ",")
	part := map[string]string{}
	for _, p := range strings.Split(auth, ",") {
		name, value, _ := strings.Cut(p, "=")
		part[name] = value
	}
	_, scope, _ := strings.Cut(part["Credential"], "/")
	var headers strings.Builder
	for _, name := range strings.Split(part["SignedHeaders"], ";") {
		value := r.Header.Get(name)
		switch name {
		case "host":
			value = cmp.Or(r.Host, r.URL.Host)
		case "content-length":
			value = fmt.Sprint(len(r.body))
		}
		fmt.Fprintf(&headers, "%s:%s\n", name, value)
	}
	sum := func(b []byte) string { h := sha256.Sum256(b); return hex.EncodeToString(h[:]) }
	canonical := strings.Join([]string{"POST", "/", "", headers.String(), part["SignedHeaders"], sum(r.body)}, "\n")
	text := strings.Join([]string{"AWS4-HMAC-SHA256", r.Header.Get("X-Amz-Date"), scope, sum([]byte(canonical))}, "\n")
	key := []byte("AWS4" + secret)
	for _, step := range append(strings.Split(scope, "/"), text) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(step))
		key = mac.Sum(nil)
	}
	return part["Signature"], hex.EncodeToString(key)
}

// What is sent without the SDK says the same as what the SDK sends, and its signature is right.
func TestPollIsWhatTheSDKSends(t *testing.T) {
	t.Setenv("AWS_SESSION_TOKEN", "session/+=")
	w := newWire()
	w.shard("a", "", 3)
	var got []seen
	server := httptest.NewServer(recording(w, "GetRecords", &got))
	defer server.Close()
	s := open(t, server.URL)
	r := s.NewReader(start("a", change.Position{}))
	defer r.Close()
	next(t, r).Release()
	next(t, r).Release()
	if len(got) != 2 || got[0].Header.Get("Amz-Sdk-Invocation-Id") == "" ||
		got[1].Header.Get("Amz-Sdk-Invocation-Id") != "" {
		t.Fatalf("%d calls, or not the first by the SDK and the second without", len(got))
	}
	for _, g := range got {
		if claimed, right := g.signature("test"); claimed != right {
			t.Errorf("signature %s of %v, not %s", claimed, g.Header, right)
		}
	}
	headers := func(r seen) map[string]string {
		out := map[string]string{"host": r.Host, "path": r.RequestURI, "method": r.Method}
		for name := range r.Header {
			out[name] = r.Header.Get(name)
		}
		for _, name := range []string{"Authorization", "X-Amz-Date", "Content-Length", "Amz-Sdk-Invocation-Id",
			"Amz-Sdk-Request"} {
			delete(out, name)
		}
		return out
	}
	if diff := gocmp.Diff(headers(got[0]), headers(got[1])); diff != "" {
		t.Error(diff)
	}
	if h := got[1].Header; h.Get("X-Amz-Security-Token") != "session/+=" ||
		!strings.Contains(h.Get("User-Agent"), "app/tailrace") {
		t.Error(h)
	}
}

// An iterator is any text.
func TestPollSendsAnyIterator(t *testing.T) {
	w := newWire()
	w.shard("a", "", 1)
	var got []seen
	s := open(t, recording(w, "GetRecords", &got))
	next(t, s.NewReader(start("a", change.Position{}))).Release()
	const odd = "a|0|\"\\<&>\u2028é😀"
	_, _ = s.poll(t, odd)
	_, _ = s.rawClient().GetRecords(t.Context(), odd, new(raw.Body)) // by the SDK: it has learned nothing yet
	for _, c := range w.calls[len(w.calls)-2:] {
		if c.in["ShardIterator"] != odd || c.in["Limit"] != 1000.0 {
			t.Errorf("sent %q", c.in)
		}
	}
}

// Errors have the class, the code and the text that the SDK's have.
func TestPolledErrorsAreTheSDKs(t *testing.T) {
	replies := map[string]*wireReply{
		"5xx by name": {status: 500, body: `{"__type":"InternalServerError","message":"m"}`}, "5xx": {status: 503},
		"5xx text": {status: 500, body: "oops"}, "proxy": {status: 502, body: "<html>"}, "redirect": {status: 307},
		"too many": {status: 429, body: "{}"}, "forbidden": {status: 403, body: "{}"}, "400": {status: 400, body: "{}"},
		"by header": {status: 400, body: "{}",
			header: map[string]string{"X-Amzn-ErrorType": "ExpiredIteratorException:http://x"}},
		"cut": {body: `{"Records":[`}, "other sum": {body: "{}", header: map[string]string{"X-Amz-Crc32": "1"}},
	}
	for _, code := range []string{
		"ExpiredIteratorException", "TrimmedDataAccessException", "ResourceNotFoundException", "LimitExceededException",
		"ThrottlingException", "ProvisionedThroughputExceededException", "ValidationException", "AccessDeniedException",
		"ExpiredTokenException", "UnrecognizedClientException", "InvalidSignatureException", "SomethingNew",
	} {
		replies[code] = refuse(code, "about "+code)
	}
	w := newWire()
	w.shard("a", "", 1)
	server := httptest.NewServer(w)
	defer server.Close()
	s := open(t, server.URL)
	next(t, s.NewReader(start("a", change.Position{}))).Release()
	for name, reply := range replies {
		w.script = func(wireCall) *wireReply { return reply }
		_, sdk := s.rawClient().GetRecords(t.Context(), "it", new(raw.Body)) // by the SDK: it has learned nothing yet
		_, lean := s.poll(t, "it")
		describe := func(err error) string {
			text := strings.ReplaceAll(fmt.Sprint(wrap(context.Background(), "read", err)),
				"exceeded maximum number of attempts, 1, ", "")
			return fmt.Sprintf("%v, expired %v, invalid %v, hint %q: %s", Classify(err), isExpired(err), isValidation(err),
				Hint(err), text)
		}
		if name != "cut" && (sdk == nil || lean == nil) || describe(sdk) != describe(lean) {
			t.Errorf("%s: %s\nby the SDK: %s", name, describe(lean), describe(sdk))
		}
	}
}

// A server that does not answer in time is tried again; a context that ends is not.
func TestPollEndsWithItsContext(t *testing.T) {
	w := newWire()
	w.shard("a", "", 1)
	s := open(t, w)
	next(t, s.NewReader(start("a", change.Position{}))).Release()
	for class, ctx := range map[failure.Class]context.Context{
		failure.Transient: expired(t), failure.Canceled: canceled(t),
	} {
		if _, err := s.raw.GetRecords(ctx, "it", new(raw.Body)); Classify(err) != class {
			t.Errorf("%v: %v", Classify(err), err)
		}
	}
}

func expired(t *testing.T) context.Context {
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	t.Cleanup(cancel)
	return ctx
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// A clock that goes wrong, or is set right, between two reads costs one refused call.
func TestOwnClockGoesWrongBetweenPolls(t *testing.T) {
	w := newWorld(t)
	info := createTable(t, w.testSource, "Things")
	r := w.NewReader(w.start(info, w.Stream.OpenShards("Things")[0], 0))
	defer r.Close()
	next(t, r).Release()
	w.Faults.CheckTime(true)
	for _, skew := range []time.Duration{20 * time.Minute, 0, -20 * time.Minute} {
		w.Faults.Skew(skew)
		if _, err := w.poll(t, r.iterator); Classify(err) != failure.Transient {
			t.Errorf("skew %v: %v: %v", skew, Classify(err), err)
		}
		if _, err := w.poll(t, r.iterator); err != nil {
			t.Errorf("skew %v, second call: %v", skew, err)
		}
	}
}

// The credentials of a role are renewed before they end; if that is refused, the reader says so.
func TestPollsAreSignedWithFreshCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.shard("a", "", 1)
		issued, refused := 0, false
		var got []seen
		streams := recording(w, "GetRecords", &got)
		t.Setenv("AWS_ENDPOINT_URL_STS", "http://sts.test")
		s := open(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Host != "sts.test":
				streams.ServeHTTP(rw, r)
			case refused:
				rw.WriteHeader(http.StatusForbidden)
			default:
				issued++
				fmt.Fprintf(rw, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>`+
					`<Credentials><AccessKeyId>ISSUED%d</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>token%d`+
					`</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`,
					issued, issued, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
			}
		}), func(o *Options) { o.AssumeRole = "arn:aws:iam::1:role/reader" })
		r := s.NewReader(start("a", change.Position{}))
		defer r.Close()
		next(t, r).Release()
		time.Sleep(2 * time.Hour)
		next(t, r).Release()
		last := got[len(got)-1]
		if id := fmt.Sprintf("Credential=ISSUED%d/", issued); issued < 2 ||
			!strings.Contains(last.Header.Get("Authorization"), id) ||
			last.Header.Get("X-Amz-Security-Token") != fmt.Sprintf("token%d", issued) {
			t.Fatalf("%d issued, %v", issued, last.Header)
		}
		if claimed, right := last.signature("s"); claimed != right {
			t.Fatal("the signature is of other credentials")
		}
		refused = true
		time.Sleep(2 * time.Hour)
		if _, err := r.Next(t.Context()); Classify(err) != failure.Denied {
			t.Fatalf("%v: %v", Classify(err), err)
		}
	})
}

// A signing key holds for one day of the service's clock.
func TestPollsAreSignedForTheirDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.shard("a", "", 1)
		var got []seen
		s := open(t, recording(w, "GetRecords", &got))
		r := s.NewReader(start("a", change.Position{}))
		defer r.Close()
		for range 4 {
			next(t, r).Release()
			time.Sleep(13 * time.Hour)
		}
		for _, g := range got {
			day := g.Header.Get("X-Amz-Date")[:8]
			if auth := g.Header.Get("Authorization"); !strings.Contains(auth, "/"+day+"/") {
				t.Errorf("on %s signed as %s", day, auth)
			}
			if claimed, right := g.signature("test"); claimed != right {
				t.Errorf("signature %s of %v, not %s", claimed, g.Header, right)
			}
		}
	})
}
