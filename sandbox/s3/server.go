package s3

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/johannesboyne/gofakes3"
)

// Server serves a store over the S3 protocol: listings, objects and ranges of them, uploads in one
// piece or in parts. Rules of a bucket's lifecycle can be put and read, and delete nothing. Buckets
// are addressed by path; signatures are not checked.
type Server struct {
	listener net.Listener
	http     *http.Server
	base     http.Handler // the library's
	handler  atomic.Pointer[http.Handler]
	done     chan error
}

// Serve listens on an address and serves a store. When the port is taken, errors.Is(err,
// syscall.EADDRINUSE) holds.
func Serve(addr string, store *Store) (*Server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for s3: %w", err)
	}
	fake := gofakes3.New(backend{store}, gofakes3.WithTimeSkewLimit(0), gofakes3.WithLogger(gofakes3.DiscardLog()))
	base := &lifecycles{store: store, next: exportTags(fake.Server()), all: map[string][]byte{}}
	s := &Server{listener: l, done: make(chan error, 1), base: base}
	s.Use(nil)
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { s.done <- s.http.Serve(l) }()
	return s, nil
}

// URL returns the server's URL.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Use puts a middleware, as a fault, in place of the one before; nil: none. It may be called while
// requests are served.
func (s *Server) Use(mw func(http.Handler) http.Handler) {
	next := s.base
	if mw != nil {
		next = mw(next)
	}
	s.handler.Store(&next)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*s.handler.Load()).ServeHTTP(w, r)
}

// Close stops the server and waits for it.
func (s *Server) Close() error {
	err := s.http.Close()
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// exportTags gives the data files of exports the ETag that ETag returns; the library supports only
// plain MD5s.
func exportTags(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			w = &tagger{ResponseWriter: w, key: key}
		}
		next.ServeHTTP(w, r)
	})
}

// tagger replaces the ETag header of one reply.
type tagger struct {
	http.ResponseWriter
	key   string
	begun bool // the header is written
}

func (t *tagger) WriteHeader(status int) {
	t.begun = true
	if sum, err := hex.DecodeString(strings.Trim(t.Header().Get("ETag"), `"`)); err == nil && len(sum) > 0 {
		t.Header().Set("ETag", `"`+ETag(t.key, sum)+`"`)
	}
	t.ResponseWriter.WriteHeader(status)
}

func (t *tagger) Write(p []byte) (int, error) {
	if !t.begun {
		t.WriteHeader(http.StatusOK)
	}
	return t.ResponseWriter.Write(p)
}
