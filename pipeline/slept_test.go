package pipeline_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/source"
)

// A replica that stood by sleeps while the log is lost and another replica recovers. By what it
// knows of the pipeline's row, which is of the life before, the new log is a foreign one.
func TestReplicaThatSleptThroughARecoveryStandsByAgain(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	url := externalNATS(t)
	w.qopts = func(o *queue.Options) { o.Dir, o.URL = "", url }
	w.opts = func(o *pipeline.Options) { o.Periods.ClaimTTL = time.Hour } // a busy machine: nobody takes over
	owner := w.start("Orders")
	w.put("Orders", "p", "s", `"v":{"N":"1"}`)
	owner.settle()

	var asleep atomic.Bool
	woken, held := make(chan struct{}), make(chan struct{}, 100)
	own := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, req *http.Request) {
		if asleep.Load() {
			held <- struct{}{}
			<-woken
		}
		w.tables.ServeHTTP(out, req)
	}))
	t.Cleanup(own.Close)
	wake := sync.OnceFunc(func() { close(woken) })
	t.Cleanup(wake)
	w.sopts = func(o *source.Options) { o.Endpoint = own.URL }
	slept := w.start("Orders")
	w.sopts = nil
	slept.until("it stands by", func() bool { return slept.table("Orders").State == "standby" })
	asleep.Store(true)
	deleteLogs(t, url)
	slept.until("it asks DynamoDB in its sleep", func() bool { return len(held) > 0 })
	owner.kill()
	w.recover("Orders")
	next := w.restart("Orders")
	next.recovered()
	wake()
	slept.until("it stands by again", func() bool {
		next.hasten()
		return slept.table("Orders").State == "standby"
	})
}

// deleteLogs deletes everything that a NATS server holds.
func deleteLogs(t *testing.T, url string) {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	names := js.StreamNames(t.Context())
	for name := range names.Name() {
		if err := js.DeleteStream(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if names.Err() != nil {
		t.Fatal(names.Err())
	}
}
