package bucket

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/failure"
)

// startAzure answers a container's requests by a function: there is no server of Azure's protocol
// to run in a test, so what is tested is what the requests say, and what replies mean.
func startAzure(t *testing.T, answer http.HandlerFunc) Bucket {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	t.Setenv("AZURE_STORAGE_ACCOUNT", "account")
	t.Setenv("AZURE_STORAGE_KEY", base64.StdEncoding.EncodeToString([]byte("key")))
	domain := strings.TrimPrefix(server.URL, "http://")
	b, err := Open(t.Context(), "azblob://archive/some/prefix?protocol=http&domain="+domain, Options{})
	if err != nil {
		t.Fatalf("%v; %s", err, Hint(err))
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func TestAzureRequests(t *testing.T) {
	want := random(1, 3<<20)
	var calls []*http.Request
	var body []byte
	b := startAzure(t, func(w http.ResponseWriter, r *http.Request) {
		calls = append(calls, r)
		at := time.Now().UTC().Format(http.TimeFormat)
		w.Header().Set("Last-Modified", at)
		w.Header().Set("X-Ms-Creation-Time", at)
		w.Header().Set("Etag", `"1"`)
		switch {
		case r.URL.Query().Get("comp") == "list":
			fmt.Fprintf(w, `<EnumerationResults><Blobs><Blob><Name>some/prefix/a/b</Name><Properties>
				<Content-Length>7</Content-Length><Last-Modified>%[1]s</Last-Modified><Etag>1</Etag>
				<Creation-Time>%[1]s</Creation-Time></Properties></Blob></Blobs><NextMarker/></EnumerationResults>`, at)
		case r.Method == http.MethodPut:
			body, _ = io.ReadAll(r.Body)
			w.Header().Set("Content-Md5", r.Header.Get("Content-Md5"))
			w.WriteHeader(http.StatusCreated)
		case r.Method == http.MethodHead:
			w.Header().Set("Content-Length", fmt.Sprint(len(want)))
			w.Header().Set("X-Ms-Blob-Type", "BlockBlob")
		default:
			if x := r.Header.Get("X-Ms-Range"); x != "" {
				r.Header.Set("Range", x)
			}
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(want))
		}
	})
	if err := createBytes(t, b, "a/b", want); err != nil {
		t.Fatalf("%v; %s", err, Hint(err))
	}
	if len(calls) != 1 || !bytes.Equal(body, want) {
		t.Fatalf("%d requests, %d bytes", len(calls), len(body))
	}
	h := calls[0].Header
	if calls[0].URL.Path != "/account/archive/some/prefix/a/b" || h.Get("If-None-Match") != "*" ||
		h.Get("Content-MD5") == "" || h.Get("X-Ms-Blob-Type") != "BlockBlob" || h.Get("Authorization") == "" {
		t.Errorf("%s, %v", calls[0].URL, h)
	}
	if got := content(t, b, "a/b"); !bytes.Equal(got, want) {
		t.Errorf("read %d bytes", len(got))
	}
	if got := names(t, b, "a/"); len(got) != 1 || got[0] != "a/b" {
		t.Errorf("listed %q", got)
	}
}

func TestAzureReplies(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		class  failure.Class
		hint   string
	}{
		{409, "BlobAlreadyExists", failure.Rejected, ""},
		{412, "ConditionNotMet", failure.Rejected, ""},
		{400, "Md5Mismatch", failure.Transient, ""},
		{403, "AuthorizationFailure", failure.Denied, "Storage Blob Data Contributor"},
		{404, "ContainerNotFound", failure.Missing, "make the bucket azblob://archive"},
		{500, "InternalError", failure.Transient, ""},
		{503, "ServerBusy", failure.Throttled, ""},
	} {
		calls := 0
		b := startAzure(t, func(w http.ResponseWriter, r *http.Request) {
			calls++
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("X-Ms-Error-Code", c.code)
			w.WriteHeader(c.status)
		})
		err := createBytes(t, b, "a", []byte("x"))
		if Classify(err) != c.class || !strings.Contains(Hint(err), c.hint) || calls != 1 ||
			errors.Is(err, ErrExists) != (c.class == failure.Rejected) {
			t.Errorf("%d %s: %v, %s, %q, %d calls", c.status, c.code, err, Classify(err), Hint(err), calls)
		}
	}
}
