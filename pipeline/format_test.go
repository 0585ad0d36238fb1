package pipeline_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline"
)

// oldLog makes the log of a table as a build of format 1 leaves it after its first claim.
func (w *world) oldLog(name string) {
	w.t.Helper()
	r := w.open(name)
	must := func(err error) {
		w.t.Helper()
		if err != nil {
			w.t.Fatal(err)
		}
	}
	l, err := r.queue.CreateLog(w.t.Context(), name, "t0ken")
	must(err)
	info, err := l.Info(w.t.Context())
	must(err)
	_, js := r.js()
	prev := checkpoint.Hash{}
	for i, body := range []any{&checkpoint.Claim{Owner: "older"}, &checkpoint.Release{}} {
		msg, err := checkpoint.Encode(nil, &checkpoint.Entry{
			Kind: checkpoint.KindOf(body), Epoch: 1, Nonce: checkpoint.Nonce{1}, Prev: prev, Body: body,
		})
		must(err)
		_, err = js.Publish(w.t.Context(), r.claims(), msg, jetstream.WithExpectLastSequence(info.Last+uint64(i)))
		must(err)
		prev = checkpoint.HashOf(msg)
	}
	r.ended <- nil
	r.close()
}

// claims is the subject of the only log's claims.
func (r *run) claims() string {
	r.t.Helper()
	_, js := r.js()
	for info := range js.ListStreams(r.t.Context()).Info() {
		for _, subject := range info.Config.Subjects {
			if strings.HasSuffix(subject, ".claim") {
				return subject
			}
		}
	}
	r.t.Fatal("no log was found")
	return ""
}

// A build that is rolled out beside an older one must not lock that out of the log; --upgrade says that none is left.
func TestLogKeepsItsFormatUntilUpgrade(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t)
	w.createTable("Orders")
	w.oldLog("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 61, 50)
	r.settle()
	if got := r.table("Orders").LogFormat; got != 1 {
		t.Errorf("log of format %d without an upgrade", got)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	w.opts = func(o *pipeline.Options) { o.Upgrade = true }
	r = w.start("Orders")
	w.changeItems("Orders", 62, 50)
	r.settle()
	if got := r.table("Orders").LogFormat; got != checkpoint.Format {
		t.Errorf("log of format %d after the upgrade", got)
	}
	r.equal()
}
