package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/source"
)

// daemon notes what a finder asks of it.
type daemon struct {
	added chan string
	notes chan map[string]status.Reason
}

func (d daemon) Add(_ context.Context, _ *config.Config, t config.Table) error {
	d.added <- t.Source
	return nil
}
func (daemon) Remove(context.Context, string)        {}
func (daemon) ReadToEnd(string) bool                 { return false }
func (d daemon) Note(notes map[string]status.Reason) { d.notes <- notes }

// TestTablesWithManyTagsAreFoundWithoutAPause: their tags cannot be asked for before the daemon
// begins, five a second. The daemon begins without them, says that and not that a service fails,
// and does not wait for the next search.
func TestTablesWithManyTagsAreFoundWithoutAPause(t *testing.T) {
	dynamo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch op := r.Header.Get("X-Amz-Target"); {
		case strings.HasSuffix(op, ".ListTables"):
			names := make([]string, 10)
			for i := range names {
				names[i] = fmt.Sprintf("%q", fmt.Sprint("table-", i))
			}
			fmt.Fprintf(w, `{"TableNames":[%s]}`, strings.Join(names, ","))
		default:
			fmt.Fprint(w, `{"Tags":[{"Key":"a","Value":"1"}]}`)
		}
	}))
	defer dynamo.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	src, err := source.Open(t.Context(), source.Options{Region: "eu-west-1", Endpoint: dynamo.URL}, zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	q, err := queue.Open(t.Context(), queue.Options{Pipeline: "shop", Dir: t.TempDir()}, zap.NewNop(),
		prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = q.Close() }()
	cfg := config.Default()
	cfg.Protocol.Find = config.Duration(time.Hour)
	cfg.Selections = []config.Table{{Tag: map[string]string{"a": "1"}, Target: "{table}"}}
	f := New(&cfg, src, q, zap.NewNop())
	f.lister.place, f.within = "arn:aws:dynamodb:eu-west-1:000000000000:table/", 300*time.Millisecond
	if _, err := f.First(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	d, ended := daemon{make(chan string, 10), make(chan map[string]status.Reason, 10)}, make(chan error, 1)
	go func() { ended <- f.Run(ctx, d) }()
	if n := (<-d.notes)["tables"].Text; !strings.Contains(n, "tried again at once") || strings.Contains(n, "deadline") {
		t.Errorf("it says: %s", n)
	}
	for range 10 {
		select {
		case <-d.added:
		case <-time.After(time.Minute):
			t.Fatal("the tables are not found until the next search")
		}
	}
	if n := (<-d.notes)["tables"].Text; n != "" {
		t.Errorf("it still says: %s", n)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestLogWithoutALeaderKeepsNoOtherTableFromBeginning: the tables of the logs that are listed
// begin, and no new one, whose target may be that of the log that is not. A NATS server without
// JetStream stands for a cluster, and another client answers in its place.
func TestLogWithoutALeaderKeepsNoOtherTableFromBeginning(t *testing.T) {
	dynamo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, `{"TableNames":["orders","silent","unknown"]}`)
	}))
	defer dynamo.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	src, err := source.Open(t.Context(), source.Options{Region: "eu-west-1", Endpoint: dynamo.URL}, zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	q, silent := clusterOf(t, "orders", "silent")
	cfg := config.Default()
	cfg.Protocol.Find = config.Duration(time.Hour)
	cfg.Selections = []config.Table{{Source: "*", Target: "{table}"}}
	f := New(&cfg, src, q, zap.NewNop())
	f.within = time.Second
	first, err := f.First(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Tables) != 1 || first.Tables[0].Source != "orders" {
		t.Errorf("it begins with %+v", first.Tables)
	}
	ctx, stop := context.WithCancel(t.Context())
	d, ended := daemon{make(chan string, 10), make(chan map[string]status.Reason, 10)}, make(chan error, 1)
	go func() { ended <- f.Run(ctx, d) }()
	if n := (<-d.notes)["tables"].Text; !strings.HasPrefix(n, "the logs cannot be listed") {
		t.Errorf("it says: %s", n)
	}
	silent.Store(false)
	for _, want := range []string{"silent", "unknown"} {
		select {
		case got := <-d.added:
			if got != want {
				t.Errorf("%s begins, want %s", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatal("the other tables do not begin when all logs are listed")
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// clusterOf opens a queue that has the logs of two tables, of which the second has no leader while
// silent is true.
func clusterOf(t *testing.T, leads, has string) (q *queue.Queue, silent *atomic.Bool) {
	t.Helper()
	embedded, err := queue.Open(t.Context(), queue.Options{Pipeline: "shop", Dir: t.TempDir(), MaxBytes: 64 << 20},
		zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	var streams [2]string
	for i, table := range []string{leads, has} {
		if _, err = embedded.CreateLog(t.Context(), table, "t0ken"); err != nil {
			t.Fatal(err)
		}
		kept, err := embedded.Kept(t.Context(), table)
		if err != nil || len(kept) == 0 {
			t.Fatal(kept, err)
		}
		streams[i] = kept[0].Stream
	}
	if err := embedded.Close(); err != nil {
		t.Fatal(err)
	}
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(srv.Shutdown)
	answers, err := nats.Connect(srv.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(answers.Close)
	silent = new(atomic.Bool)
	silent.Store(true)
	described := func(i int, table string) string {
		return fmt.Sprintf(`{"config":{"name":%q,"metadata":{%q:"shop",%q:%q}}}`, streams[i], conn.MetaPipeline,
			conn.MetaTable, table)
	}
	for subject, answer := range map[string]func() string{
		"$JS.API.INFO": func() string {
			return `{"type":"io.nats.jetstream.api.v1.account_info_response","limits":{"max_streams":-1}}`
		},
		"$JS.API.STREAM.LIST": func() string {
			const listing = `{"type":"io.nats.jetstream.api.v1.stream_list_response","total":2,"streams":[%s],"missing":[%s]}`
			if silent.Load() {
				return fmt.Sprintf(listing, described(0, leads), strconv.Quote(streams[1]))
			}
			return fmt.Sprintf(listing, described(0, leads)+","+described(1, has), "")
		},
	} {
		if _, err := answers.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond([]byte(answer())) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := answers.Flush(); err != nil {
		t.Fatal(err)
	}
	q, err = queue.Open(t.Context(), queue.Options{Pipeline: "shop", URL: srv.ClientURL()}, zap.NewNop(),
		prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	return q, silent
}

// removing notes which tables are removed.
type removing struct {
	daemon
	removed []string
}

func (d *removing) Remove(_ context.Context, source string) { d.removed = append(d.removed, source) }

// TestTableIsRemovedByTwoLooks: Rule 13. One look that lacks a table which is replicated ends
// nothing.
func TestTableIsRemovedByTwoLooks(t *testing.T) {
	known := &config.Config{Tables: []config.Table{{Source: "a", Found: true}, {Source: "b", Found: true}}}
	f, d := &Finder{known: known, ended: map[string]bool{}, log: zap.NewNop()}, &removing{}
	look := func(tables ...config.Table) {
		f.follow(t.Context(), d, &config.Config{Tables: tables})
	}
	a, b := known.Tables[0], known.Tables[1]
	look(a)
	look(a, b)
	look(a)
	if len(d.removed) > 0 || len(f.known.Tables) != 2 {
		t.Fatalf("removed %v after one look, known are %v", d.removed, f.known.Tables)
	}
	look(a)
	if len(d.removed) != 1 || d.removed[0] != "b" || len(f.known.Tables) != 1 {
		t.Errorf("removed %v after two looks, known are %v", d.removed, f.known.Tables)
	}
}

// refusing cannot add tables a number of times.
type refusing struct {
	removing
	times int
	added []string
}

func (d *refusing) Add(_ context.Context, _ *config.Config, t config.Table) error {
	if d.times--; d.times >= 0 {
		return errors.New("the target is taken")
	}
	d.added = append(d.added, t.Source)
	return nil
}

// TestTableThatCannotBeAddedIsTriedAgain: one failure would leave it to other replicas for good,
// and unnamed.
func TestTableThatCannotBeAddedIsTriedAgain(t *testing.T) {
	f, d := &Finder{known: &config.Config{}, ended: map[string]bool{}, log: zap.NewNop()}, &refusing{times: 2}
	d.notes = make(chan map[string]status.Reason, 1)
	for look := range 4 {
		f.follow(t.Context(), d, &config.Config{Tables: []config.Table{{Source: "a", Found: true}}})
		f.tell(d)
		if note := (<-d.notes)["a"].Text; strings.Contains(note, "the target is taken") != (look < 2) {
			t.Errorf("look %d: the note is %q", look, note)
		}
	}
	if len(d.added) != 1 {
		t.Errorf("added %v", d.added)
	}
}
