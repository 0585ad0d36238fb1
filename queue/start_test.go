package queue

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// TestStartAsksAgainAfterAWrongAnswer, Rule 13: one answer at the start does not end the process,
// unless it is a denial. A NATS server without JetStream stands for one with it, and another client
// answers in its place.
func TestStartAsksAgainAfterAWrongAnswer(t *testing.T) {
	const good = `{"type":"io.nats.jetstream.api.v1.account_info_response","memory":0,"storage":0,"streams":0,` +
		`"consumers":0,"limits":{"max_memory":-1,"max_storage":-1,"max_streams":-1,"max_consumers":-1}}`
	failing := func(code, description string) string {
		return `{"type":"io.nats.jetstream.api.v1.account_info_response","error":{"code":` + code +
			`,"description":"` + description + `"}}`
	}
	for name, answer := range map[string]string{
		"internal error":    failing("500", "internal error"),
		"not found":         failing("404", "not found"),
		"a page of a proxy": "<html><body>Bad Gateway</body></html>",
		"empty":             "",
		"nothing in it":     "{}",
	} {
		t.Run(name, func(t *testing.T) {
			srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
			if err != nil {
				t.Fatal(err)
			}
			srv.Start()
			defer srv.Shutdown()
			other, err := nats.Connect(srv.ClientURL())
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			asked := 0
			_, err = other.Subscribe("$JS.API.INFO", func(m *nats.Msg) {
				reply := good
				if asked++; asked == 1 {
					reply = answer
				}
				_ = m.Respond([]byte(reply))
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := other.Flush(); err != nil {
				t.Fatal(err)
			}
			q, err := Open(t.Context(), Options{Pipeline: "shop", URL: srv.ClientURL()}, zap.NewNop(),
				prometheus.NewRegistry())
			if err != nil {
				t.Fatal(err)
			}
			if err := q.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
