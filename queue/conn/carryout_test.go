package conn

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TestOnlyTheServerSaysThatSomethingIsDeleted, Rule 15: an answer without "success" is none, for
// each request whose answer holds nothing else.
func TestOnlyTheServerSaysThatSomethingIsDeleted(t *testing.T) {
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(srv.Shutdown)
	nc, err := nats.Connect(srv.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	var answer atomic.Value // a string, for another goroutine
	for _, subject := range []string{"$JS.API.STREAM.PURGE.S", "$JS.API.STREAM.DELETE.S", "$JS.API.CONSUMER.DELETE.S.c"} {
		if _, err := nc.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond([]byte(answer.Load().(string))) }); err != nil {
			t.Fatal(err)
		}
	}
	c := &Conn{NC: nc, AckTimeout: time.Minute}
	js := bounded{c: c}
	requests := map[string]func() error{
		"purge":           func() error { return c.Purge(t.Context(), "S", PurgeRequest{Below: 7}) },
		"delete stream":   func() error { return js.DeleteStream(t.Context(), "S") },
		"delete consumer": func() error { return js.DeleteConsumer(t.Context(), "S", "c") },
	}
	for _, x := range []struct {
		answer string
		want   error
	}{
		{`{"type": "io.nats.jetstream.api.v1.stream_purge_response", "success": true, "purged": 0}`, nil},
		{`{"success": false}`, jetstream.ErrInvalidJetStreamResponse},
		{`{}`, jetstream.ErrInvalidJetStreamResponse},
		{``, jetstream.ErrInvalidJetStreamResponse},
		{`<html>a proxy</html>`, jetstream.ErrInvalidJetStreamResponse},
		{`{"error": {"code": 404, "err_code": 10059, "description": "stream not found"}}`, jetstream.ErrStreamNotFound},
	} {
		answer.Store(x.answer)
		for name, ask := range requests {
			if err := ask(); !errors.Is(err, x.want) {
				t.Errorf("%s, answered %q: %v", name, x.answer, err)
			}
		}
	}
}
