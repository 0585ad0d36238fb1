package export

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fsouza/fake-gcs-server/fakestorage"
	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/heartbeat"
)

// google is a server of Google Cloud Storage with a bucket, behind a front that may answer in its
// place.
type google struct {
	server *fakestorage.Server

	mu    sync.Mutex
	front func(w http.ResponseWriter, r *http.Request) bool
	calls int
}

// between sets the front.
func (g *google) between(front func(w http.ResponseWriter, r *http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.front, g.calls = front, 0
}

// answered reports whether the front has answered.
func (g *google) answered(w http.ResponseWriter, r *http.Request) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
	return g.front != nil && g.front(w, r)
}

func startGoogle(t *testing.T) *google {
	t.Helper()
	g := &google{}
	var next http.Handler
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.answered(w, r) {
			next.ServeHTTP(w, r)
		}
	}))
	var err error
	g.server, err = fakestorage.NewServerWithOptions(fakestorage.Options{
		NoListener: true, PublicHost: front.Listener.Addr().String(), Writer: io.Discard,
	})
	if err != nil {
		t.Fatal(err)
	}
	g.server.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: "copies"})
	next = g.server.HTTPHandler()
	front.Start()
	t.Cleanup(front.Close)
	t.Setenv("STORAGE_EMULATOR_HOST", front.Listener.Addr().String())
	return g
}

// copy stores all files of a folder below a prefix, as a copy between clouds does.
func (g *google) copy(t *testing.T, folder, prefix string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		attrs := fakestorage.ObjectAttrs{BucketName: "copies", Name: prefix + filepath.ToSlash(name)}
		if strings.HasSuffix(name, ".gz") {
			attrs.ContentEncoding = "gzip"
		}
		g.server.CreateObject(fakestorage.Object{ObjectAttrs: attrs, Content: content})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func linesOf(t *testing.T, e *Export) (lines []string) {
	t.Helper()
	for i := range e.Files {
		err := e.ReadFile(t.Context(), i, 0, func(l Line) error {
			lines = append(lines, string(l.Item))
			return nil
		})
		if err != nil {
			t.Fatalf("%v: %s", err, source.Hint(err))
		}
	}
	return lines
}

// TestExportIsReadFromGoogle: the copy of an export in Google Cloud Storage is read without any
// identity of AWS, and has the lines of the original.
func TestExportIsReadFromGoogle(t *testing.T) {
	f := newFixture(t, items(0, 300), items(300, 301), nil).write()
	folder, err := f.open(Want{TableID: "table-1"})
	if err != nil {
		t.Fatal(err)
	}
	g := startGoogle(t)
	g.copy(t, f.top, "from-aws/")
	for _, url := range []string{
		"gs://copies/from-aws/daily", "gs://copies/from-aws/daily/AWSDynamoDB/" + testID,
		"gs://copies/from-aws/daily/AWSDynamoDB/" + testID + "/" + summaryName,
	} {
		e, err := Open(t.Context(), url, Want{TableID: "table-1", TableARN: testARN, Scratch: t.TempDir()})
		if err != nil {
			t.Fatalf("%s: %v: %s", url, err, source.Hint(err))
		}
		if e.URL != "gs://copies/from-aws/daily/AWSDynamoDB/"+testID || e.Items != 301 || e.Wholeness != Unconfirmed {
			t.Errorf("%+v", e)
		}
		if d := cmp.Diff(linesOf(t, folder), linesOf(t, e)); d != "" {
			t.Error(d)
		}
	}
}

// TestRepliesOfGoogle: each is an error with class and hint, and a limited number of calls.
func TestRepliesOfGoogle(t *testing.T) {
	g := startGoogle(t)
	g.copy(t, newFixture(t, items(0, 3)).write().top, "")
	reply := func(status int, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
			return true
		}
	}
	const denied = `{"error":{"code":403,"message":"no storage.objects.list access","errors":[{"reason":"forbidden"}]}}`
	manifest := "gs://copies/daily/AWSDynamoDB/" + testID + "/" + summaryName
	for name, c := range map[string]struct {
		url   string
		front func(http.ResponseWriter, *http.Request) bool
		class failure.Class
		hint  string
	}{
		"no bucket":      {"gs://none/daily", nil, failure.Missing, "bucket's name"},
		"nothing there":  {"gs://copies/other", nil, failure.Missing, "manifest-summary.json"},
		"options":        {"gs://copies/daily?region=x", nil, failure.Rejected, "question mark"},
		"denied":         {"gs://copies/daily", reply(403, denied), failure.Denied, "roles/storage.objectViewer"},
		"not logged in":  {"gs://copies/daily", reply(401, ``), failure.Denied, "credentials"},
		"too many calls": {"gs://copies/daily", reply(429, ``), failure.Throttled, ""},
		"away":           {"gs://copies/daily", reply(503, ``), failure.Throttled, ""},
		"damaged":        {"gs://copies/daily", reply(200, `<html>Please log in</html>`), failure.Transient, ""},
		"of a manifest":  {manifest, reply(404, ``), failure.Missing, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g.between(c.front)
			e, err := Open(t.Context(), c.url, Want{})
			if e != nil || source.Classify(err) != c.class || !strings.Contains(source.Hint(err), c.hint) {
				t.Errorf("%v, %v: %s", source.Classify(err), err, source.Hint(err))
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			if c.front != nil && g.calls > gcsAttempts {
				t.Errorf("%d calls", g.calls)
			}
		})
	}
	g.between(nil)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ended, "gs://copies/daily", Want{}); source.Classify(err) != failure.Canceled {
		t.Errorf("ended context: %v", err)
	}
	g.between(func(w http.ResponseWriter, r *http.Request) bool { return g.calls == 1 && reply(503, ``)(w, r) })
	if _, err := Open(t.Context(), "gs://copies/daily", Want{}); err != nil {
		t.Errorf("one refused call: %v", err)
	}
}

// TestMissingFileOfACopyIsNamed: a copy between clouds that was cut off is refused when it is
// opened.
func TestMissingFileOfACopyIsNamed(t *testing.T) {
	f := newFixture(t, items(0, 3)).write()
	if err := os.Remove(f.path("data/file0.json.gz")); err != nil {
		t.Fatal(err)
	}
	startGoogle(t).copy(t, f.top, "")
	_, err := Open(t.Context(), "gs://copies/daily", Want{})
	if source.Classify(err) != failure.Missing || !strings.Contains(err.Error(), "gs://copies/daily/AWSDynamoDB/") ||
		!strings.Contains(source.Hint(err), "copy the whole export") || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v: %s", err, source.Hint(err))
	}
}

// TestKnownExportIsReadWithoutDynamoDB: a process that is told which lines are heartbeats leaves
// them out, and a filter that the manifest names is refused all the same.
func TestKnownExportIsReadWithoutDynamoDB(t *testing.T) {
	beat := `{"Item":{"pk":{"S":"tailrace#0"},"` + heartbeat.Attr + `":{"N":"1700000000000"}}}`
	f := newFixture(t, append(items(0, 2), beat)).write()
	filter := heartbeat.NewFilter(heartbeat.Keys{Prefix: "tailrace#"}, change.KeyAttr{Name: "pk", Type: 'S'})
	e, err := f.open(Want{Known: &Known{Heartbeats: filter, Wholeness: Whole}})
	if err != nil {
		t.Fatal(err)
	}
	lines := linesOf(t, e)
	if len(lines) != 2 || e.Wholeness != Whole || strings.Contains(strings.Join(lines, ""), "tailrace#") {
		t.Errorf("%s: %q", e.Wholeness, lines)
	}
	f = newFixture(t, items(0, 2))
	f.summary["filterSpecification"] = map[string]any{"projectionExpression": "pk"}
	if _, err := f.write().open(Want{Known: &Known{Wholeness: Whole}}); source.Classify(err) != failure.Rejected {
		t.Errorf("filtered: %v", err)
	}
}
