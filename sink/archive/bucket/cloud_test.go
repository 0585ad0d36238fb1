package bucket

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/failure"
)

func TestServicesConform(t *testing.T) {
	services(t, func(t *testing.T, s *service) {
		conform(t, func(t *testing.T) Bucket { return s.open(t, "some/prefix") })
		for info, err := range s.open(t, "").List(t.Context(), "") {
			if err != nil || !strings.HasPrefix(info.Name, "some/prefix/") {
				t.Fatalf("outside of the prefix: %v, %v", info, err)
			}
		}
	})
}

func isWrite(r *http.Request) bool { return r.Method == http.MethodPut || r.Method == http.MethodPost }

// TestCreateIsOneRequest: an upload in parts would let each part be repeated, and its end come
// late.
func TestCreateIsOneRequest(t *testing.T) {
	services(t, func(t *testing.T, s *service) {
		b, want := s.open(t, ""), random(9, 17<<20)
		if err := createBytes(t, b, "a", want); err != nil {
			t.Fatal(err)
		}
		calls := s.between(nil)
		if len(calls) != 1 || !isWrite(calls[0]) {
			t.Fatalf("%d requests", len(calls))
		}
		h, q := calls[0].Header, calls[0].URL.Query()
		switch s.name {
		case "s3":
			if h.Get("If-None-Match") != "*" || h.Get("Content-MD5") == "" || calls[0].ContentLength != int64(len(want)) {
				t.Errorf("headers %v", h)
			}
		case "gcs":
			if q.Get("ifGenerationMatch") != "0" || q.Get("uploadType") != "multipart" {
				t.Errorf("query %v", q)
			}
		}
		if !bytes.Equal(content(t, b, "a"), want) {
			t.Error("the object holds other bytes")
		}
	})
}

// TestAlteredOnTheWay: the service compares the checksum before it stores an object.
func TestAlteredOnTheWay(t *testing.T) {
	services(t, func(t *testing.T, s *service) {
		b, want := s.open(t, ""), bytes.Repeat([]byte("A"), 5000)
		s.between(func(_ http.ResponseWriter, r *http.Request) bool {
			body, _ := io.ReadAll(r.Body)
			altered := bytes.Replace(body, []byte("AAAA"), []byte("AABA"), 1)
			r.Body = io.NopCloser(bytes.NewReader(altered))
			return false
		})
		err := createBytes(t, b, "a", want)
		if class := Classify(err); err == nil || class == failure.Rejected {
			t.Errorf("%v, %s", err, class)
		}
		s.between(nil)
		if err := createBytes(t, b, "a", want); err != nil || !bytes.Equal(content(t, b, "a"), want) {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// TestLostAnswer: the service has stored the object, and nobody learns it. The next call says that
// the name is taken.
func TestLostAnswer(t *testing.T) {
	services(t, func(t *testing.T, s *service) {
		b, want := s.open(t, ""), random(5, 1<<20)
		s.between(func(_ http.ResponseWriter, r *http.Request) bool {
			if isWrite(r) {
				s.next.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler) // closes the connection
			}
			return false
		})
		if err := createBytes(t, b, "a", want); Classify(err) != failure.Transient || errors.Is(err, ErrExists) {
			t.Errorf("%v, %s", err, Classify(err))
		}
		if calls := s.between(nil); len(calls) != 1 {
			t.Errorf("%d requests: the caller tries again, nobody else", len(calls))
		}
		if err := createBytes(t, b, "a", want); !errors.Is(err, ErrExists) {
			t.Errorf("again: %v", err)
		}
		if !bytes.Equal(content(t, b, "a"), want) {
			t.Error("the object holds other bytes")
		}
	})
}

func TestSlowServiceEndsWithItsContext(t *testing.T) {
	services(t, func(t *testing.T, s *service) {
		b, arrived := s.open(t, ""), make(chan struct{}, 1)
		s.between(func(_ http.ResponseWriter, r *http.Request) bool {
			_, _ = io.Copy(io.Discard, r.Body)
			arrived <- struct{}{}
			<-r.Context().Done() // the client has gone
			panic(http.ErrAbortHandler)
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("stop")
		go func() {
			<-arrived
			cancel(stop)
		}()
		if err := b.Create(ctx, "a", scratch(t, []byte("x")), 1); Classify(err) != failure.Canceled || !errors.Is(err, stop) {
			t.Errorf("%v, %s", err, Classify(err))
		}
	})
}

// refusal is a reply of a service: a body of S3, or of GCS.
func refusal(s *service, status int, code string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		body := fmt.Sprintf("<Error><Code>%s</Code><Message>no</Message></Error>", code)
		if w.Header().Set("Content-Type", "application/xml"); s.name == "gcs" {
			w.Header().Set("Content-Type", "application/json")
			body = fmt.Sprintf(`{"error": {"code": %d, "message": "no", "errors": [{"reason": %q}]}}`, status, code)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
		return true
	}
}

func TestRefusedCalls(t *testing.T) {
	services(t, func(t *testing.T, s *service) {
		b := s.open(t, "")
		for _, c := range []struct {
			status int
			code   string
			class  failure.Class
			hint   string
		}{
			{500, "InternalError", failure.Transient, ""},
			{503, "SlowDown", failure.Throttled, ""},
			{429, "rateLimitExceeded", failure.Throttled, ""},
			{409, "ConditionalRequestConflict", failure.Transient, ""},
			{403, "AccessDenied", failure.Denied, "s3:PutObject"},
			{404, "NoSuchBucket", failure.Missing, "make the bucket"},
			{301, "PermanentRedirect", failure.Rejected, "?region="},
			{501, "NotImplemented", failure.Fatal, "If-None-Match"},
			{507, "XMinioStorageFull", failure.Fatal, "make room"},
			{400, "InvalidArgument", failure.Fatal, ""},
		} {
			s.between(refusal(s, c.status, c.code))
			err := createBytes(t, b, "a", []byte("x"))
			if Classify(err) != c.class || !strings.Contains(Hint(err), c.hint) || errors.Is(err, ErrExists) {
				t.Errorf("%d %s: %v, %s, %q", c.status, c.code, err, Classify(err), Hint(err))
			}
			if calls := s.between(nil); len(calls) != 1 {
				t.Errorf("%d %s: %d requests", c.status, c.code, len(calls))
			}
			if c.class == failure.Transient || c.class == failure.Throttled {
				continue // reading repeats those, with pauses
			}
			s.between(refusal(s, c.status, c.code))
			_, err = b.Open(t.Context(), "a")
			if Classify(err) != c.class || errors.Is(err, ErrNotFound) {
				t.Errorf("open, %d %s: %v, %s", c.status, c.code, err, Classify(err))
			}
			for _, err = range b.List(t.Context(), "") {
				break
			}
			if Classify(err) != c.class {
				t.Errorf("list, %d %s: %v, %s", c.status, c.code, err, Classify(err))
			}
		}
		s.between(refusal(s, 412, "PreconditionFailed"))
		if err := createBytes(t, b, "a", []byte("x")); !errors.Is(err, ErrExists) {
			t.Errorf("412: %v", err)
		}
	})
}

// TestBucketThatIsGone: an archive whose bucket is gone has not lost its objects one by one.
func TestBucketThatIsGone(t *testing.T) {
	services(t, func(t *testing.T, s *service) {
		s.base = strings.Replace(s.base, "archive", "gone", 1)
		b := s.open(t, "")
		_, openErr := b.Open(t.Context(), "a")
		var listErr error
		for _, listErr = range b.List(t.Context(), "") {
			break
		}
		for op, err := range map[string]error{
			"create": createBytes(t, b, "a", nil), "open": openErr, "list": listErr, "probe": Probe(t.Context(), b),
		} {
			if Classify(err) != failure.Missing || errors.Is(err, ErrNotFound) || !strings.Contains(Hint(err), "//gone") {
				t.Errorf("%s: %v, %s, %q", op, err, Classify(err), Hint(err))
			}
		}
	})
}

func TestStoreWithoutConditionsIsFound(t *testing.T) {
	services(t, func(t *testing.T, s *service) {
		s.between(func(_ http.ResponseWriter, r *http.Request) bool {
			r.Header.Del("If-None-Match")
			q := r.URL.Query()
			q.Del("ifGenerationMatch")
			r.URL.RawQuery = q.Encode()
			return false
		})
		err := Probe(t.Context(), s.open(t, ""))
		if Classify(err) != failure.Fatal || !strings.Contains(Hint(err), "conditions of writes") {
			t.Errorf("%v, %s, %q", err, Classify(err), Hint(err))
		}
	})
}

func TestListingsHavePages(t *testing.T) {
	services(t, func(t *testing.T, s *service) {
		var want []string
		for i := range 25 {
			want = append(want, fmt.Sprintf("p/%05d", i))
		}
		s.fill(t, append(slices.Clone(want), "a", "q/1"))
		b := s.open(t, "")
		b.(*cloud).pageSize = 10
		if got := names(t, b, "p/"); !slices.Equal(got, want) {
			t.Errorf("%d names, want %d", len(got), len(want))
		}
		if calls := s.between(nil); len(calls) != 4 { // the last one asks for what is behind the end
			t.Errorf("%d requests", len(calls))
		}
	})
}

// TestEndpointOfTheEnvironment: the sandbox is found without a parameter of the URL.
func TestEndpointOfTheEnvironment(t *testing.T) {
	s := startS3(t)
	u, err := url.Parse(s.base + s.args)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ENDPOINT_URL_S3", u.Query().Get("endpoint"))
	b, err := Open(t.Context(), s.base, Options{Region: "eu-west-1"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := createBytes(t, b, "a", []byte("x")); err != nil || string(content(t, b, "a")) != "x" {
		t.Errorf("create: %v", err)
	}
}

// TestRoleAndRegionOfTheURL: the role's credentials sign, for the region of the URL before that of
// the options.
func TestRoleAndRegionOfTheURL(t *testing.T) {
	signed := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err == nil && r.Form.Get("Action") == "AssumeRole" {
			fmt.Fprintf(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
				<AccessKeyId>%s</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>
				<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`,
				path.Base(r.Form.Get("RoleArn"))+r.Form.Get("ExternalId"))
			return
		}
		who, _, _ := strings.Cut(r.Header.Get("Authorization"), "/s3/")
		signed <- regexp.MustCompile(`Credential=(.*)/\d{8}/(.*)`).ReplaceAllString(who, "$1 $2")
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "own")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "own")
	t.Setenv("AWS_ENDPOINT_URL_STS", server.URL)
	for args, want := range map[string]string{
		"":                                      "AWS4-HMAC-SHA256 own eu-west-1",
		"&region=us-west-2":                     "AWS4-HMAC-SHA256 own us-west-2",
		"&assume_role=arn:aws:iam::1:role/arch": "AWS4-HMAC-SHA256 arch eu-west-1",
		"&assume_role=arn:aws:iam::1:role/arch&external_id=-7": "AWS4-HMAC-SHA256 arch-7 eu-west-1",
	} {
		b, err := Open(t.Context(), "s3://archive?endpoint="+server.URL+args, Options{Region: "eu-west-1"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Open(t.Context(), "a"); err == nil || len(signed) == 0 {
			t.Errorf("%q: %v, %d requests", args, err, len(signed))
		}
		for len(signed) > 0 {
			if got := <-signed; got != want {
				t.Errorf("%q: signed by %q, want %q", args, got, want)
			}
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestEncryptionOfTheURLIsAskedForByEachObject: a bucket's policy may refuse requests without it.
func TestEncryptionOfTheURLIsAskedForByEachObject(t *testing.T) {
	asked := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("X-Amz-Server-Side-Encryption") + " " +
			r.Header.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id")
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "own")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "own")
	for args, want := range map[string]string{
		"":                              " ",
		"&sse=AES256":                   "AES256 ",
		"&sse=aws:kms":                  "aws:kms ",
		"&kms_key=alias/cold":           "aws:kms alias/cold",
		"&sse=aws:kms:dsse&kms_key=k-1": "aws:kms:dsse k-1",
	} {
		b, err := Open(t.Context(), "s3://archive?region=eu-west-1&endpoint="+server.URL+args, Options{})
		if err != nil {
			t.Fatal(err)
		}
		content := []byte("x")
		sum := md5.Sum(content)
		_, err = b.(*cloud).backend.put(t.Context(), "a", io.NewSectionReader(bytes.NewReader(content), 0, 1), sum[:])
		if got := <-asked; err == nil || got != want {
			t.Errorf("%q: asks for %q, want %q; %v", args, got, want, err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	for args, hint := range map[string]string{"sse=kms": "sse=aws:kms", "sse=AES256&kms_key=k": "leave sse out"} {
		_, err := Open(t.Context(), "s3://archive?region=eu-west-1&"+args, Options{})
		if Classify(err) != failure.Rejected || !strings.Contains(Hint(err), hint) {
			t.Errorf("%s: %v, hint %q", args, err, Hint(err))
		}
	}
}

// TestNothingToSignWith: what an operator forgot is said at the start, or by the first call.
func TestNothingToSignWith(t *testing.T) {
	startS3(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Setenv("STORAGE_EMULATOR_HOST", "")
	t.Setenv("AZURE_STORAGE_ACCOUNT", "")
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/dev/null/credentials.json")
	for url, want := range map[string]struct {
		class failure.Class
		hint  string
	}{
		"s3://archive":                           {failure.Rejected, "region"},
		"s3://archive?endpoint=localhost:9000":   {failure.Rejected, "endpoint=https://"},
		"s3://archive?regoin=eu-west-1":          {failure.Rejected, "known are: region, endpoint"},
		"s3://me:secret@archive":                 {failure.Rejected, "s3://bucket/prefix"},
		"s3://archive/a//b?region=x":             {failure.Rejected, ""},
		"gs://":                                  {failure.Rejected, "gs://bucket"},
		"gs://archive":                           {failure.Denied, "GOOGLE_APPLICATION_CREDENTIALS"},
		"azblob://archive":                       {failure.Denied, "AZURE_STORAGE_ACCOUNT"},
		"azblob://archive?sig=secret":            {failure.Rejected, "known are"},
		"s3://archive?region=a&region=b":         {failure.Rejected, "known are"},
		"s3://me:secret@archive:port/":           {failure.Rejected, "s3://bucket/prefix"},
		"s3://archive?endpoint=http://127.0.0.1": {failure.None, ""},
	} {
		b, err := Open(t.Context(), url, Options{})
		if Classify(err) != want.class || !strings.Contains(Hint(err), want.hint) {
			t.Errorf("%s: %v, %s, %q", url, err, Classify(err), Hint(err))
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: the message shows a secret", err)
		}
		if err != nil {
			continue
		}
		err = createBytes(t, b, "a", nil)
		if Classify(err) != failure.Denied || !strings.Contains(Hint(err), "credentials") {
			t.Errorf("%s: %v, %s, %q", url, err, Classify(err), Hint(err))
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestRefusedCredentialsAreNotAReplyOfTheBucket: the metadata service or STS refuses, and rights on
// the bucket are not what is missing.
func TestRefusedCredentialsAreNotAReplyOfTheBucket(t *testing.T) {
	startS3(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	t.Setenv("AWS_ENDPOINT_URL_STS", server.URL)
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.URL)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "false")
	for args, key := range map[string]string{"": "", "&assume_role=arn:aws:iam::1:role/arch": "own"} {
		t.Setenv("AWS_ACCESS_KEY_ID", key)
		t.Setenv("AWS_SECRET_ACCESS_KEY", key)
		b, err := Open(t.Context(), "s3://archive?endpoint="+server.URL+args, Options{Region: "eu-west-1"})
		if err != nil {
			t.Fatal(err)
		}
		err = createBytes(t, b, "a", nil)
		if hint := Hint(err); Classify(err) != failure.Denied || !strings.Contains(hint, "AWS_PROFILE") ||
			strings.Contains(hint, "s3:PutObject") {
			t.Errorf("%q: %v, %s, %q", args, err, Classify(err), hint)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}
