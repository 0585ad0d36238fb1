package bucket

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/fsouza/fake-gcs-server/fakestorage"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// service is a server that speaks a service's protocol, behind a front that can break what passes.
type service struct {
	name string
	base string // the URL of the bucket
	args string // and its parameters
	next http.Handler
	fill func(t *testing.T, keys []string) // stores objects past the front

	mu    sync.Mutex
	calls []*http.Request // without bodies
	front func(w http.ResponseWriter, r *http.Request) bool
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.calls = append(s.calls, r)
	front := s.front
	s.mu.Unlock()
	if front == nil || !front(w, r) {
		s.next.ServeHTTP(w, r)
	}
}

// between sets the front, and returns the calls since the last time.
func (s *service) between(front func(w http.ResponseWriter, r *http.Request) bool) []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls, s.front = nil, front
	return calls
}

func (s *service) open(t *testing.T, prefix string) Bucket {
	t.Helper()
	b, err := Open(t.Context(), s.base+"/"+prefix+s.args, Options{})
	if err != nil {
		t.Fatalf("%v; %s", err, Hint(err))
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func startS3(t *testing.T) *service {
	t.Helper()
	for key, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "", "AWS_ENDPOINT_URL": "",
		"AWS_ENDPOINT_URL_S3": "", "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "", "AWS_SESSION_TOKEN": "",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(key, value)
	}
	store := s3mem.New()
	if err := store.CreateBucket("archive"); err != nil {
		t.Fatal(err)
	}
	s := &service{name: "s3", next: gofakes3.New(store).Server(), fill: func(t *testing.T, keys []string) {
		for _, key := range keys {
			if _, err := store.PutObject("archive", key, nil, strings.NewReader(key), int64(len(key)), nil); err != nil {
				t.Fatal(err)
			}
		}
	}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.base, s.args = "s3://archive", "?region=eu-west-1&endpoint="+url.QueryEscape(server.URL)
	return s
}

func startGCS(t *testing.T) *service {
	t.Helper()
	s := &service{name: "gcs", base: "gs://archive"}
	server := httptest.NewUnstartedServer(s)
	fake, err := fakestorage.NewServerWithOptions(fakestorage.Options{
		NoListener: true, PublicHost: server.Listener.Addr().String(), Writer: io.Discard,
	})
	if err != nil {
		t.Fatal(err)
	}
	fake.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: "archive"})
	s.next, s.fill = fake.HTTPHandler(), func(_ *testing.T, keys []string) {
		for _, key := range keys {
			fake.CreateObject(fakestorage.Object{
				ObjectAttrs: fakestorage.ObjectAttrs{BucketName: "archive", Name: key}, Content: []byte(key),
			})
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	t.Setenv("STORAGE_EMULATOR_HOST", server.Listener.Addr().String())
	return s
}

// services runs a test against each protocol.
func services(t *testing.T, test func(t *testing.T, s *service)) {
	for name, start := range map[string]func(*testing.T) *service{"s3": startS3, "gcs": startGCS} {
		t.Run(name, func(t *testing.T) { test(t, start(t)) })
	}
}
