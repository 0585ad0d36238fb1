package s3_test

import (
	"encoding/xml"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/sandbox/s3"
)

// serve returns a store with a bucket b of these objects, and its URL.
func serve(t *testing.T, keys ...string) (store *s3.Store, url string) {
	t.Helper()
	store, err := s3.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Create("b"); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if err := store.Put("b", key, strings.NewReader("body of "+key)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := s3.Serve("127.0.0.1:0", store)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return store, s.URL()
}

func get(t *testing.T, url, byteRange string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if byteRange != "" {
		req.Header.Set("Range", byteRange)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// TestListingGoesOnAfterEachPage: every object and every folder is on exactly one page.
func TestListingGoesOnAfterEachPage(t *testing.T) {
	_, url := serve(t, "a", "dir/1", "dir/2", "dir/sub/3", "e", "f")
	for query, want := range map[string][]string{
		"":                         {"a", "dir/1", "dir/2", "dir/sub/3", "e", "f"},
		"&delimiter=/":             {"a", "dir/", "e", "f"},
		"&prefix=dir/":             {"dir/1", "dir/2", "dir/sub/3"},
		"&prefix=dir/&delimiter=/": {"dir/1", "dir/2", "dir/sub/"},
	} {
		var got []string
		for token, more := "", true; more; {
			_, body := get(t, url+"/b?list-type=2&max-keys=1"+query+token, "")
			var page struct {
				Contents, CommonPrefixes []struct{ Key, Prefix string }
				IsTruncated              bool
				NextContinuationToken    string
			}
			if err := xml.Unmarshal([]byte(body), &page); err != nil {
				t.Fatal(err)
			}
			for _, o := range append(page.Contents, page.CommonPrefixes...) {
				got = append(got, o.Key+o.Prefix)
			}
			token, more = "&continuation-token="+page.NextContinuationToken, page.IsTruncated && len(got) < 20
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}

// TestFilesAndObjectsAreTheSame: a changed file is another object, a removed one is missing, no key
// leaves its bucket.
func TestFilesAndObjectsAreTheSame(t *testing.T) {
	store, url := serve(t, "dir/x")
	if status, body := get(t, url+"/b/dir/x", "bytes=5-6"); status != http.StatusPartialContent || body != "of" {
		t.Errorf("range: %d %q", status, body)
	}
	file := filepath.Join(store.Dir("b"), "dir", "x")
	if err := os.WriteFile(file, []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, body := get(t, url+"/b/dir/x", ""); status != http.StatusOK || body != "other" {
		t.Errorf("changed: %d %q", status, body)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if status, _ := get(t, url+"/b/dir/x", ""); status != http.StatusNotFound {
		t.Errorf("removed: %d", status)
	}
	if err := store.Put("b", "empty//part/x", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	if status, body := get(t, url+"/b?list-type=2&delimiter=/&prefix=empty//", ""); status != http.StatusOK ||
		!strings.Contains(body, "<Prefix>empty//part/</Prefix>") {
		t.Errorf("empty parts: %d %s", status, body)
	}
	if status, _ := get(t, url+"/b/empty/part/x", ""); status != http.StatusNotFound {
		t.Errorf("the key without its empty parts: %d", status)
	}
	if err := store.Put("b", "../escaped", strings.NewReader("x")); err == nil {
		t.Error("a key left its bucket")
	}
	if err := store.Put("none", "x", strings.NewReader("x")); err == nil {
		t.Error("an object was put into no bucket")
	}
}
