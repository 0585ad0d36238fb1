package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/failure"
)

// everywhere runs a test against each service, with a way to put an answer in front of it. The one
// of Azure has nothing behind.
func everywhere(t *testing.T, test func(t *testing.T, b Bucket, between func(http.HandlerFunc))) {
	services(t, func(t *testing.T, s *service) {
		test(t, s.open(t, "some/prefix"), func(h http.HandlerFunc) {
			if h == nil {
				s.between(nil)
				return
			}
			s.between(func(w http.ResponseWriter, r *http.Request) bool { h(w, r); return true })
		})
	})
	t.Run("azure", func(t *testing.T) {
		var answer http.HandlerFunc
		b := startAzure(t, func(w http.ResponseWriter, r *http.Request) { answer(w, r) })
		test(t, b, func(h http.HandlerFunc) { answer = h })
	})
}

// TestNothingIsBelievedOfAMiddlebox: each answer that is a success by its status alone, to every
// call.
//
// Rule 15.
func TestNothingIsBelievedOfAMiddlebox(t *testing.T) {
	everywhere(t, func(t *testing.T, b Bucket, between func(http.HandlerFunc)) {
		b.(*cloud).pause = func(context.Context, int) error { return nil }
		for _, status := range []int{200, 201, 204, 206} {
			for _, x := range []struct{ kind, body string }{
				{"text/html", "<html><head><title>Sign in</title></head><body><h1>Welcome</h1></body></html>"},
				{"application/json", "{}"}, {"application/xml", "<Answer/>"}, {"", ""},
			} {
				between(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					w.Header().Set("Content-Type", x.kind)
					if x.body == "" {
						w.Header().Set("Content-Length", "0")
					}
					w.WriteHeader(status)
					if status != http.StatusNoContent {
						_, _ = io.WriteString(w, x.body)
					}
				})
				answer := fmt.Sprintf("%d with %q", status, x.body)
				refusedBy(t, answer+", create", createBytes(t, b, "a", []byte("x")))
				refusedBy(t, answer+", probe", Probe(t.Context(), b))
				refusedBy(t, answer+", text", CreateText(t.Context(), b, "a", "x"))
				if _, err := b.Open(t.Context(), "a"); true {
					refusedBy(t, answer+", open", err)
				}
				var listed error
				for _, listed = range b.List(t.Context(), "") {
					break
				}
				refusedBy(t, answer+", list", listed)
				if _, err := Lifecycle(t.Context(), b); !errors.Is(err, ErrNoLifecycle) { // Azure's, which is not asked
					refusedBy(t, answer+", lifecycle", err)
				}
			}
		}
	})
}

// refusedBy holds an error to be a transient one that decides nothing.
func refusedBy(t *testing.T, what string, err error) {
	t.Helper()
	if Classify(err) != failure.Transient || errors.Is(err, ErrExists) || errors.Is(err, ErrNotFound) {
		t.Errorf("%s: %v, %s", what, err, Classify(err))
	}
}

// TestMiddleboxIsNamed: the error of an upload says what to look for.
func TestMiddleboxIsNamed(t *testing.T) {
	everywhere(t, func(t *testing.T, b Bucket, between func(http.HandlerFunc)) {
		between(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, "<html>hello</html>")
		})
		if err := createBytes(t, b, "a", []byte("x")); !strings.Contains(Hint(err), "a proxy") {
			t.Errorf("%v; %q", err, Hint(err))
		}
	})
}

// TestProbeReadsBack: whatever answers 412 to a PUT has not shown that it keeps objects.
func TestProbeReadsBack(t *testing.T) {
	services(t, func(t *testing.T, s *service) {
		b := s.open(t, "")
		s.between(func(w http.ResponseWriter, r *http.Request) bool {
			if isWrite(r) {
				return refusal(s, 412, "PreconditionFailed")(w, r)
			}
			return false
		})
		if err := Probe(t.Context(), b); !errors.Is(err, ErrNotFound) {
			t.Errorf("nothing was stored: %v", err)
		}
		s.between(nil)
		if err := createBytes(t, b, "_tailrace/probe~", []byte("something else")); err != nil {
			t.Fatal(err)
		}
		if err := Probe(t.Context(), b); Classify(err) != failure.Fatal || !strings.Contains(Hint(err), "move it") {
			t.Errorf("something else: %v, %q", err, Hint(err))
		}
	})
}

// TestUploadIsConfirmed: where a key of KMS encrypts objects, the ETag is no MD5, and the metadata
// of the object show that it is the one that was sent.
func TestUploadIsConfirmed(t *testing.T) {
	s := startS3(t)
	b := s.open(t, "")
	answers := func(edit func(http.Header)) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			e := &edited{ResponseWriter: w, edit: edit}
			s.next.ServeHTTP(e, r)
			_, _ = e.Write(nil) // S3 answers a PUT without a body
			return true
		}
	}
	s.between(answers(func(h http.Header) { h.Set("Etag", `"0123456789abcdef0123456789abcdef"`) }))
	if err := createBytes(t, b, "a", []byte("x")); err != nil {
		t.Errorf("confirmed by metadata: %v", err)
	}
	if calls := s.between(nil); len(calls) != 2 || calls[1].Method != http.MethodHead {
		t.Errorf("%d requests", len(calls))
	}
	s.between(answers(func(h http.Header) {
		h.Set("Etag", `"0123456789abcdef0123456789abcdef"`)
		h.Del("X-Amz-Meta-Tailrace-Md5")
	}))
	refusedBy(t, "without metadata", createBytes(t, b, "b", []byte("x")))
	seven := func(h http.Header) { h.Set("Content-Length", "7") }
	s.between(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodHead {
			return answers(seven)(w, r)
		}
		return answers(func(h http.Header) { h.Set("Etag", `"1"`) })(w, r)
	})
	refusedBy(t, "of another size", createBytes(t, b, "c", []byte("x")))
}

// TestContentOfAnotherObjectIsNotRead: a middlebox may answer with what it has kept of an earlier
// request.
//
// Rule 15.
func TestContentOfAnotherObjectIsNotRead(t *testing.T) {
	s := startS3(t)
	b := s.open(t, "")
	if err := createBytes(t, b, "a", []byte("x")); err != nil {
		t.Fatal(err)
	}
	r, err := b.Open(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	s.between(func(w http.ResponseWriter, r *http.Request) bool {
		e := &edited{ResponseWriter: w, edit: func(h http.Header) { h.Set("Etag", `"0123456789abcdef0123456789abcdef"`) }}
		s.next.ServeHTTP(e, r)
		return true
	})
	if _, err := r.ReadAt(make([]byte, 1), 0); Classify(err) != failure.Transient {
		t.Errorf("read with %v", err)
	}
	s.between(nil)
	if _, err := r.ReadAt(make([]byte, 1), 0); err != nil {
		t.Errorf("read again with %v", err)
	}
}

// edited is a reply whose headers are edited before they are sent.
type edited struct {
	http.ResponseWriter
	edit func(http.Header)
	done bool
}

func (e *edited) WriteHeader(status int) {
	if !e.done {
		e.done = true
		e.edit(e.Header())
	}
	e.ResponseWriter.WriteHeader(status)
}

func (e *edited) Write(p []byte) (int, error) {
	if !e.done {
		e.WriteHeader(http.StatusOK)
	}
	return e.ResponseWriter.Write(p)
}

// TestNotFoundIsAskedOfAListing: one reply that an object is missing does not make it so.
//
// Rule 13.
func TestNotFoundIsAskedOfAListing(t *testing.T) {
	services(t, func(t *testing.T, s *service) {
		b := s.open(t, "")
		if err := createBytes(t, b, "a/b", []byte("x")); err != nil {
			t.Fatal(err)
		}
		isHead := func(r *http.Request) bool {
			return r.Method == http.MethodHead || strings.Contains(r.URL.Path, "/o/")
		}
		replies := 0
		missing := func(times int) func(http.ResponseWriter, *http.Request) bool {
			replies = 0
			return func(w http.ResponseWriter, r *http.Request) bool {
				if !isHead(r) || replies == times {
					return false
				}
				replies++
				return refusal(s, 404, "notFound")(w, r)
			}
		}
		s.between(missing(1))
		if got := content(t, b, "a/b"); string(got) != "x" || replies != 1 {
			t.Errorf("after one reply: %q, %d replies", got, replies)
		}
		s.between(missing(-1))
		_, err := b.Open(t.Context(), "a/b")
		refusedBy(t, "while the object is listed", err)
		if _, err := b.Open(t.Context(), "a/c"); !errors.Is(err, ErrNotFound) {
			t.Errorf("one that is not listed: %v", err)
		}
	})
}

// TestEndOfAListingIsAskedAgain: an answer that lacks objects, well-formed and once, hides none.
//
// Rule 13.
func TestEndOfAListingIsAskedAgain(t *testing.T) {
	for name, shown := range map[string]string{"nothing": "nothing/", "some": "p/0000"} {
		t.Run(name, func(t *testing.T) {
			services(t, func(t *testing.T, s *service) {
				var want []string
				for i := range 25 {
					want = append(want, fmt.Sprintf("p/%05d", i))
				}
				s.fill(t, append(slices.Clone(want), "a", "q/1"))
				once := true
				s.between(func(_ http.ResponseWriter, r *http.Request) bool {
					if q := r.URL.Query(); once && q.Has("prefix") {
						once = false
						q.Set("prefix", shown)
						r.URL.RawQuery = q.Encode()
					}
					return false
				})
				if got := names(t, s.open(t, ""), "p/"); !slices.Equal(got, want) || once {
					t.Errorf("%d names, want %d", len(got), len(want))
				}
			})
		})
	}
}

// TestObjectIsFoundByItsPath: a volume is taken away while a file is written. The open directory
// takes it all the same.
func TestObjectIsFoundByItsPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "archive")
	b, err := Open(t.Context(), "file://"+path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	d := b.(*directory)
	d.fault = func(step string) error {
		if step != "sync a" {
			return nil
		}
		return errors.Join(os.Rename(path, path+".away"), os.MkdirAll(path+"/a", dirMode),
			os.WriteFile(path+"/a/b", []byte("y"), fileMode))
	}
	if err := createBytes(t, b, "a/b", []byte("x")); Classify(err) != failure.Missing || errors.Is(err, ErrExists) {
		t.Errorf("%v, %s", err, Classify(err))
	}
	d.fault = func(string) error { return nil }
	if err := errors.Join(os.RemoveAll(path), os.Rename(path+".away", path)); err != nil {
		t.Fatal(err)
	}
	if err := createBytes(t, b, "a/b", []byte("x")); !errors.Is(err, ErrExists) {
		t.Errorf("afterwards: %v", err)
	}
}
