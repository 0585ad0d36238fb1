package queue

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/queue/conn"
)

// TestListingThatLacksALogIsNone, Rule 13: a cluster's listing leaves out the logs whose leader
// does not answer, and names them. It would make the format of the pipeline, its first start and
// the tables that are carried look like those of fewer logs. A NATS server without JetStream stands
// for the cluster, and another client answers in its place.
func TestListingThatLacksALogIsNone(t *testing.T) {
	stream := func(table string) string {
		return fmt.Sprintf(`{"config":{"name":%q,"metadata":{%q:"shop",%q:%q}}}`, streamName("shop", table),
			conn.MetaPipeline, conn.MetaTable, table)
	}
	listing := func(total int, streams, missing string) string {
		return fmt.Sprintf(`{"type":"io.nats.jetstream.api.v1.stream_list_response","total":%d,"offset":0,"limit":256,`+
			`"streams":[%s],"missing":[%s]}`, total, streams, missing)
	}
	a, b, c := stream("A"), stream("B"), stream("C")
	silent := fmt.Sprintf("%q", streamName("shop", "B"))
	for name, test := range map[string]struct {
		pages map[int]string // by offset
		want  string
		lacks bool // an error after which the listing is asked for again
	}{
		"all":                   {map[int]string{0: listing(3, a+","+b+","+c, "")}, "A B C", false},
		"none":                  {map[int]string{0: listing(0, "", "")}, "", false},
		"one is silent":         {map[int]string{0: listing(3, a+","+c, silent), 2: listing(3, c, "")}, "A C", true},
		"the last is silent":    {map[int]string{0: listing(2, a, silent), 1: listing(2, "", silent)}, "A", true},
		"two pages, one silent": {map[int]string{0: listing(3, a, silent), 2: listing(3, c, "")}, "A C", true},
		"one is deleted":        {map[int]string{0: listing(3, a+","+b, ""), 2: listing(2, "", "")}, "A B", true},
		"all are silent":        {map[int]string{0: listing(1, "", silent)}, "", true},
		"its server is away":    {map[int]string{0: listing(2, a+","+b, silent)}, "A B", false},
		"another's is silent":   {map[int]string{0: listing(3, a+","+b, `"ORDERS"`)}, "A B", false},
		"two pages":             {map[int]string{0: listing(3, a+","+b, ""), 2: listing(3, c, "")}, "A B C", false},
		"a page is empty":       {map[int]string{0: listing(3, a+","+b, ""), 2: listing(3, "", "")}, "A B", true},
		"a stream is null":      {map[int]string{0: listing(2, a+",null", "")}, "", true},
		"nothing in it":         {map[int]string{0: "{}"}, "", true},
		"a page of a proxy":     {map[int]string{0: "<html><body>Bad Gateway</body></html>"}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			q := answering(t, func(offset int) string { return test.pages[offset] })
			all, err := q.conn.ListStreams(t.Context(), streamsOf("shop"))
			var tables []string
			for _, info := range all {
				tables = append(tables, info.Config.Metadata[conn.MetaTable])
			}
			if (err != nil) != test.lacks || strings.Join(tables, " ") != test.want {
				t.Errorf("streams of %q, %v", tables, err)
			}
			if err != nil && (!conn.Transient(err) || !errors.Is(err, ErrListing)) {
				t.Errorf("it would not be asked for again: %v", err)
			}
		})
	}
}

// TestErrorOfAListingIsNoListing: it has the type of one, and no streams.
func TestErrorOfAListingIsNoListing(t *testing.T) {
	q := answering(t, func(int) string {
		return `{"type":"io.nats.jetstream.api.v1.stream_list_response","total":0,"offset":0,"limit":0,"streams":null,` +
			`"error":{"code":503,"err_code":10008,"description":"JetStream system temporarily unavailable"}}`
	})
	if all, err := q.conn.ListStreams(t.Context(), streamsOf("shop")); !conn.Transient(err) {
		t.Errorf("%d streams, %v", len(all), err)
	}
}

// withoutJetStream starts a NATS server without JetStream, for which the returned connection
// answers.
func withoutJetStream(t *testing.T) (*server.Server, *nats.Conn) {
	t.Helper()
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(srv.Shutdown)
	other, err := nats.Connect(srv.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	return srv, other
}

// answering opens a queue on a server that answers listings with pages by their offset.
func answering(t *testing.T, page func(offset int) string) *Queue {
	t.Helper()
	srv, other := withoutJetStream(t)
	_, err := other.Subscribe("$JS.API.*", func(m *nats.Msg) {
		_ = m.Respond([]byte(`{"type":"io.nats.jetstream.api.v1.account_info_response","limits":{"max_streams":-1}}`))
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = other.Subscribe("$JS.API.STREAM.LIST", func(m *nats.Msg) {
		var asked struct{ Offset int }
		if err := json.Unmarshal(m.Data, &asked); err != nil {
			t.Error(err)
		}
		_ = m.Respond([]byte(page(asked.Offset)))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Flush(); err != nil {
		t.Fatal(err)
	}
	q, err := Open(t.Context(), Options{Pipeline: "shop", URL: srv.ClientURL()}, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	return q
}

// TestListingIsAskedForAgain until it has all logs.
func TestListingIsAskedForAgain(t *testing.T) {
	stream := fmt.Sprintf(`{"config":{"name":%q,"metadata":{%q:"shop",%q:"A"}}}`, streamName("shop", "A"),
		conn.MetaPipeline, conn.MetaTable)
	const answer = `{"type":"io.nats.jetstream.api.v1.stream_list_response","total":1,"streams":[%s],"missing":[%s]}`
	var asked atomic.Int32
	q := answering(t, func(int) string {
		if asked.Add(1) == 1 {
			return fmt.Sprintf(answer, "", fmt.Sprintf("%q", streamName("shop", "A")))
		}
		return fmt.Sprintf(answer, stream, "")
	})
	if tables, err := q.Tables(t.Context()); err != nil || !slices.Equal(tables, []string{"A"}) || asked.Load() != 2 {
		t.Errorf("tables %q, %v, after %d listings", tables, err, asked.Load())
	}
}

// TestLogOfAnIncompleteListingMayBeGone: the complete one that follows does not have it.
func TestLogOfAnIncompleteListingMayBeGone(t *testing.T) {
	stream := func(table string) string {
		return fmt.Sprintf(`{"config":{"name":%q,"metadata":{%q:"shop",%q:%q}}}`, streamName("shop", table),
			conn.MetaPipeline, conn.MetaTable, table)
	}
	const answer = `{"type":"io.nats.jetstream.api.v1.stream_list_response","total":%d,"streams":[%s],"missing":[%s]}`
	var asked atomic.Int32
	q := answering(t, func(int) string {
		if asked.Add(1) == 1 {
			return fmt.Sprintf(answer, 2, stream("A"), fmt.Sprintf("%q", streamName("shop", "B")))
		}
		return fmt.Sprintf(answer, 1, stream("B"), "")
	})
	if tables, err := q.Tables(t.Context()); err != nil || !slices.Equal(tables, []string{"B"}) {
		t.Errorf("tables %q, %v, after %d listings", tables, err, asked.Load())
	}
}
