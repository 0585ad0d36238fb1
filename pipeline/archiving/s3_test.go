package archiving

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
)

// front is before a server of S3. It refuses calls while it has a refusal.
type front struct {
	server   http.Handler
	refuse   atomic.Pointer[refusal]
	page     atomic.Bool  // a sign-in page answers all calls, with 200
	accepted atomic.Int64 // uploads that the page answered
}

// refusal is an answer of S3, to the next calls.
type refusal struct {
	status int
	code   string
	method string       // of the calls; "": any
	left   atomic.Int64 // calls
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.page.Load() {
		if r.Method == http.MethodPut {
			f.accepted.Add(1)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html><body>Sign in</body></html>")
		return
	}
	no := f.refuse.Load()
	if no == nil || no.method != "" && no.method != r.Method || no.left.Add(-1) < 0 {
		f.server.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(no.status)
	if r.Method != http.MethodHead {
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>refused</Message></Error>", no.code)
	}
}

// useS3 lets the archive have its objects in a server of S3.
func (w *world) useS3(t *testing.T) *front {
	t.Helper()
	for key, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_PROFILE": "", "AWS_SESSION_TOKEN": "",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(key, value)
	}
	store := s3mem.New()
	must(t, store.CreateBucket("archive"))
	f := &front{server: gofakes3.New(store).Server()}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	b, err := bucket.Open(t.Context(), "s3://archive/cold?endpoint="+url.QueryEscape(server.URL), bucket.Options{})
	must(t, err)
	t.Cleanup(func() { _ = b.Close() })
	w.files = &flaky{Bucket: b}
	return f
}

// TestStoreRefuses: the objects alone are halted, with the cause and the way out, and go on when it
// takes them again.
func TestStoreRefuses(t *testing.T) {
	for name, x := range map[string]struct {
		status     int
		code       string
		halt, hint string
	}{
		"permission lost": {http.StatusForbidden, "AccessDenied", "archive_denied", "s3:PutObject"},
		"bucket full":     {http.StatusInsufficientStorage, "XMinioStorageFull", "archive_fatal", "room"},
		"bucket gone":     {http.StatusNotFound, "NoSuchBucket", "archive_missing", "make the bucket"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			f := w.useS3(t)
			w.edit = func(o *Options) { o.Subject = publisher{w} }
			r := w.start()
			r.store(w.deleted(0, 6))
			r.closed(0)
			no := &refusal{status: x.status, code: x.code}
			no.left.Store(1 << 40)
			f.refuse.Store(no)
			r.store(w.deleted(1, 6))
			w.await("the objects are halted", func() bool { return w.halted(SinkObjects) == x.halt })
			if why := r.Status().ObjectsTrouble; !strings.Contains(why, x.hint) {
				t.Errorf("status says %q, and not %q", why, x.hint)
			}
			r.store(w.deleted(2, 6))
			w.await("all are published", func() bool { return w.published() == 18 })
			if halt := w.halted(SinkSubject); halt != "" {
				t.Errorf("the subject is halted: %s", halt)
			}
			f.refuse.Store(nil)
			w.proven(r.closed(2))
			w.await("the halt is over", func() bool { return w.halted(SinkObjects) == "" })
		})
	}
}

// TestStoreIsBusy: S3 asks for fewer calls, which is no reason to halt.
func TestStoreIsBusy(t *testing.T) {
	w := newWorld(t)
	f := w.useS3(t)
	w.edit = func(o *Options) { o.Retry = time.Hour } // a halt would last
	r := w.start()
	r.store(w.deleted(0, 6))
	r.closed(0)
	no := &refusal{status: http.StatusServiceUnavailable, code: "SlowDown", method: http.MethodPut}
	no.left.Store(2)
	f.refuse.Store(no)
	r.store(w.deleted(1, 6))
	w.proven(r.closed(1))
	if no.left.Load() > 0 {
		t.Error("nothing was refused")
	}
}

// TestUploadsThatAPageAcceptsAreNotArchived: what stands before the store answers 200 to
// everything. Objects, and the manifest, are stored once it is gone.
//
// Rule 15.
func TestUploadsThatAPageAcceptsAreNotArchived(t *testing.T) {
	w := newWorld(t)
	f := w.useS3(t)
	w.edit = func(o *Options) { o.Retry = time.Hour }
	r := w.start()
	r.store(w.deleted(0, 6))
	r.closed(0)
	f.page.Store(true)
	r.store(w.deleted(1, 6))
	r.over(1)
	w.await("uploads are answered", func() bool { return f.accepted.Load() >= 1 && r.Status().ObjectsTrouble != "" })
	if why := r.Status().ObjectsTrouble; !strings.Contains(why, "a proxy") {
		t.Errorf("status says %q", why)
	}
	s, err := w.state()
	must(t, err)
	if len(s.Intents) == 0 || s.Closed > hour0+1 {
		t.Errorf("counted as archived: %d intents are open, hours before %d are closed", len(s.Intents), s.Closed)
	}
	f.page.Store(false)
	w.proven(w.until("the hour is closed", func(s *ledger.State) bool { return s.Closed > hour0+1 }))
}
