package test

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

// answerStore is the object store of the archive, behind the shim.
type answerStore struct {
	side string
	url  string
	env  []string
	put  asked         // the call that stores an object
	dir  func() string // a directory with its objects
}

// newAnswerStore starts the object store of a side: S3 is that of the sandbox, and that of each
// other side.
func newAnswerStore(x *answering, side string) answerStore {
	switch side {
	case "gcs":
		return newGCSStore(x)
	case "azure":
		return newAzureStore(x)
	}
	return answerStore{side: "s3", url: "s3://cold/archive", put: asked{"s3", "PUT cold/*.parquet"},
		dir: func() string { return x.Buckets.Dir("cold") }}
}

// newGCSStore starts a server that speaks the protocol of Google Cloud Storage.
func newGCSStore(x *answering) answerStore {
	x.t.Helper()
	server := httptest.NewUnstartedServer(nil)
	addr := server.Listener.Addr().String()
	fake, err := fakestorage.NewServerWithOptions(fakestorage.Options{
		NoListener: true, PublicHost: addr, Writer: io.Discard,
	})
	if err != nil {
		x.t.Fatal(err)
	}
	fake.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: "cold"})
	server.Config.Handler = x.shim.http("gcs", gcsCall, gcsRefusal, fake.HTTPHandler())
	server.Start()
	x.t.Cleanup(server.Close)
	return answerStore{side: "gcs", url: "gs://cold/archive", env: []string{"STORAGE_EMULATOR_HOST=" + addr},
		put: asked{"gcs", "POST upload *.parquet"}, dir: func() string { return objectsOf(x.t, fake) }}
}

// objectsOf writes what a server holds into a directory.
func objectsOf(t *testing.T, fake *fakestorage.Server) (dir string) {
	t.Helper()
	dir = t.TempDir()
	all, err := fake.ListObjectsWithOptionsPaginated("cold", fakestorage.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all.Objects {
		o, err := fake.GetObject("cold", a.Name)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, filepath.FromSlash(a.Name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, o.Content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// ofObject names an object in a call: what differs between runs is left out.
func ofObject(key string) string {
	if ext := path.Ext(key); ext != "" {
		return "*" + ext
	}
	return path.Base(key)
}

// gcsCall names a request to Google Cloud Storage. The name of an object that is uploaded is in the
// body.
func gcsCall(r *http.Request) string {
	at := strings.TrimPrefix(r.URL.Path, "/upload")
	switch {
	case at != r.URL.Path:
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		_, name, _ := bytes.Cut(body[:min(len(body), 2000)], []byte(`"name":"`))
		name, _, _ = bytes.Cut(name, []byte(`"`))
		return r.Method + " upload " + ofObject(string(name))
	case strings.HasSuffix(at, "/o"):
		return r.Method + " list"
	case strings.HasSuffix(at, "/b/cold"):
		return r.Method + " bucket"
	case strings.Contains(at, "/o/"):
		return r.Method + " object " + ofObject(at)
	}
	return r.Method + " content " + ofObject(at)
}

// gcsRefusal returns Google Cloud Storage's reply for an answer.
func gcsRefusal(give wrong) (status int, body string) {
	status = map[wrong]int{
		sayUnknown: http.StatusNotFound, sayDenied: http.StatusForbidden, sayBusy: http.StatusTooManyRequests,
		sayFault: http.StatusInternalServerError,
	}[give]
	return status, fmt.Sprintf(`{"error":{"code":%d,"message":"a wrong answer"}}`, status)
}

// newAzureStore starts a server that speaks what the replicator uses of Azure's protocol, over a
// directory: there is none to run in a test.
func newAzureStore(x *answering) answerStore {
	x.t.Helper()
	dir := x.t.TempDir()
	server := httptest.NewServer(x.shim.http("azure", azureCall, azureRefusal, azureServer(dir)))
	x.t.Cleanup(server.Close)
	return answerStore{
		side: "azure", url: "azblob://cold/archive?protocol=http&domain=" + strings.TrimPrefix(server.URL, "http://"),
		env: []string{
			"AZURE_STORAGE_ACCOUNT=account", "AZURE_STORAGE_KEY=" + base64.StdEncoding.EncodeToString([]byte("key")),
		},
		put: asked{"azure", "PUT blob *.parquet"},
		dir: func() string { return dir },
	}
}

// azureServer serves the container cold from a directory.
type azureServer string

func (s azureServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Ms-Request-Id", "1")
	w.Header().Set("X-Ms-Version", "2024-11-04")
	key := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/account/cold"), "/")
	file := filepath.Join(string(s), filepath.FromSlash(key))
	switch {
	case r.URL.Query().Get("comp") == "list":
		s.list(w, r.URL.Query())
	case r.Method == http.MethodPut:
		s.put(w, r, file)
	default:
		content, err := os.ReadFile(file)
		if err != nil {
			w.Header().Set("X-Ms-Error-Code", "BlobNotFound")
			w.WriteHeader(http.StatusNotFound)
			return
		}
		describeBlob(w, content)
		if at := r.Header.Get("X-Ms-Range"); at != "" {
			r.Header.Set("Range", at)
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}
}

// describeBlob sets the headers that Azure states of a blob.
func describeBlob(w http.ResponseWriter, content []byte) {
	sum, at := md5.Sum(content), time.Unix(1_790_000_000, 0).UTC().Format(http.TimeFormat)
	w.Header().Set("Etag", fmt.Sprintf(`"%x"`, sum))
	w.Header().Set("Content-Md5", base64.StdEncoding.EncodeToString(sum[:]))
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("X-Ms-Blob-Type", "BlockBlob")
	w.Header().Set("Last-Modified", at)
	w.Header().Set("X-Ms-Creation-Time", at)
}

func (s azureServer) put(w http.ResponseWriter, r *http.Request, file string) {
	content, err := io.ReadAll(r.Body)
	if err != nil {
		return // the connection was cut
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		panic(err)
	}
	// A blob is there whole or not at all: the test reads the directory meanwhile.
	part, err := os.CreateTemp("", "blob")
	if err != nil {
		panic(err)
	}
	defer os.Remove(part.Name())
	if _, err := part.Write(content); err != nil {
		panic(err)
	}
	if err := part.Close(); err != nil {
		panic(err)
	}
	if err := os.Link(part.Name(), file); err != nil {
		w.Header().Set("X-Ms-Error-Code", "BlobAlreadyExists")
		w.WriteHeader(http.StatusConflict)
		return
	}
	describeBlob(w, content)
	w.WriteHeader(http.StatusCreated)
}

// list answers with all blobs whose names begin with a prefix, in one page.
func (s azureServer) list(w http.ResponseWriter, q url.Values) {
	type blob struct {
		Name   string
		Length int64  `xml:"Properties>Content-Length"`
		Etag   string `xml:"Properties>Etag"`
	}
	var reply struct {
		XMLName xml.Name `xml:"EnumerationResults"`
		Blobs   []blob   `xml:"Blobs>Blob"`
		Next    string   `xml:"NextMarker"`
	}
	err := filepath.WalkDir(string(s), func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		key, err := filepath.Rel(string(s), file)
		if err != nil || !strings.HasPrefix(filepath.ToSlash(key), q.Get("prefix")) {
			return err
		}
		info, err := e.Info()
		if err == nil {
			reply.Blobs = append(reply.Blobs, blob{filepath.ToSlash(key), info.Size(), "1"})
		}
		return err
	})
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/xml")
	text, err := xml.Marshal(reply)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(text) // the client may have gone
}

// azureCall names a request to Azure.
func azureCall(r *http.Request) string {
	if comp := r.URL.Query().Get("comp"); comp != "" {
		return r.Method + " " + comp
	}
	return r.Method + " blob " + ofObject(r.URL.Path)
}

// azureRefusal returns Azure's reply for an answer.
func azureRefusal(give wrong) (status int, body string) {
	of := map[wrong]struct {
		status int
		code   string
	}{
		sayUnknown: {http.StatusNotFound, "ContainerNotFound"}, sayDenied: {http.StatusForbidden, "AuthorizationFailure"},
		sayBusy: {http.StatusServiceUnavailable, "ServerBusy"}, sayFault: {http.StatusInternalServerError, "InternalError"},
	}[give]
	return of.status, "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>" + of.code +
		"</Code><Message>a wrong answer</Message></Error>"
}
