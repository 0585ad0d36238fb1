package pipeline_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/sandbox"
	sandnats "github.com/tailrace-cdc/replicator/sandbox/nats"
)

// natsServer is an outside NATS that can be restarted in its place.
type natsServer struct {
	t   *testing.T
	o   sandnats.Options
	srv *sandnats.Server
	url string
}

func startNATS(t *testing.T) *natsServer {
	t.Helper()
	s := &natsServer{t: t, o: sandnats.Options{Addr: sandbox.FreeAddr(t), Dir: t.TempDir(), MaxPayload: 8 << 20}}
	s.open()
	s.url = s.srv.URL()
	t.Cleanup(func() { _ = s.srv.Close() })
	return s
}

func (s *natsServer) open() {
	s.t.Helper()
	var err error
	if s.srv, err = sandnats.Open(s.o); err != nil {
		s.t.Fatal(err)
	}
}

func (s *natsServer) restart() {
	s.t.Helper()
	if err := s.srv.Close(); err != nil {
		s.t.Fatal(err)
	}
	s.open()
}

func externalNATS(t *testing.T) string { return startNATS(t).url }

// js is JetStream of the embedded server, as an operator with the nats tool has it.
func (r *run) js() (*nats.Conn, jetstream.JetStream) {
	r.t.Helper()
	c, ok := r.queue.Client()
	if !ok {
		r.t.Fatal("the queue is not embedded")
	}
	nc, err := nats.Connect(c.URL, nats.Token(c.Token))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		r.t.Fatal(err)
	}
	return nc, js
}

func (r *run) deleteStreams() { r.t.Helper(); r.deleteStream("") }

// deleteStream deletes the log and the letters of a table; of all when it is empty.
func (r *run) deleteStream(table string) {
	r.t.Helper()
	_, js := r.js()
	names := js.StreamNames(r.t.Context())
	for name := range names.Name() {
		if !strings.Contains(name, table) {
			continue
		}
		if err := js.DeleteStream(r.t.Context(), name); err != nil {
			r.t.Fatal(err)
		}
	}
	if names.Err() != nil {
		r.t.Fatal(names.Err())
	}
}

// publishStray does what a mistyped `nats pub` does.
func (r *run) publishStray() {
	r.t.Helper()
	_, js := r.js()
	streams := js.ListStreams(r.t.Context())
	for info := range streams.Info() {
		if len(info.Config.Subjects) == 3 {
			if _, err := js.Publish(r.t.Context(), info.Config.Subjects[0], []byte("hello")); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	if streams.Err() != nil {
		r.t.Fatal(streams.Err())
	}
}
