package archiving

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
)

// byHand returns the archive's stream, as an operator with a NATS client has it.
func byHand(t *testing.T, url string) (jetstream.JetStream, jetstream.Stream) {
	t.Helper()
	nc, err := nats.Connect(url)
	must(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	must(t, err)
	names := js.StreamNames(t.Context())
	for name := range names.Name() {
		if strings.HasSuffix(name, "_archive") {
			st, err := js.Stream(t.Context(), name)
			must(t, err)
			return js, st
		}
	}
	t.Fatalf("the archive has no stream: %v", names.Err())
	return nil, nil
}

// TestStrayMessagesAreLeftOut: somebody publishes on the subjects of the archive's stream, while an
// owner runs and while none does. Nothing is archived twice or left out, and the subject has
// everything.
func TestStrayMessagesAreLeftOut(t *testing.T) {
	w, p := newWorld(t), openWay(t)
	s := startNATS(t, t.TempDir(), p)
	t.Cleanup(func() { _ = s.Close() })
	w.use(queueBy(t, p), "Sessions")
	w.edit = func(o *Options) { o.Roll, o.Subject = time.Hour, publisher{w} } // events wait beside the stray messages
	r := w.start()
	r.store(w.deleted(0, 5))
	js, st := byHand(t, s.URL())
	stray := func() {
		for _, subject := range st.CachedInfo().Config.Subjects {
			_, err := js.Publish(t.Context(), subject, []byte("hello"))
			must(t, err)
		}
	}
	stray()
	r.store(w.deleted(0, 5))
	r.end()
	stray()
	w.until("they are counted", func(s *ledger.State) bool { return s.Strays > 0 })
	r = w.start()
	r.store(w.deleted(0, 5))
	w.proven(r.closed(0))
	w.await("all are published", func() bool { return w.published() == 15 })
}

// TestPurgedStreamSaysHowToGoOn: its first entry continues one that is gone. Only a new stream
// helps, and the hours of what was in the old one alone are named.
func TestPurgedStreamSaysHowToGoOn(t *testing.T) {
	w, p := newWorld(t), openWay(t)
	s := startNATS(t, t.TempDir(), p)
	t.Cleanup(func() { _ = s.Close() })
	w.use(queueBy(t, p), "Sessions")
	r := w.start()
	r.store(w.deleted(0, 6))
	r.closed(0)
	w.until("a snapshot", func(s *ledger.State) bool { return s.SnapshotFirst > 0 })
	r.store(w.deleted(1, 6))
	w.until("an object behind it", func(s *ledger.State) bool {
		return len(s.Objects) > 0 && len(s.Parts)+len(s.Intents) == 0
	})
	r.end()
	js, st := byHand(t, s.URL())
	info, err := st.Info(t.Context())
	must(t, err)
	must(t, st.Purge(t.Context(), jetstream.WithPurgeSequence(info.State.LastSeq))) // the last entry stays
	r = w.start()
	rm := "`nats stream rm " + info.Config.Name + "`"
	w.await("the status says what to do", func() bool { return strings.Contains(r.Status().Trouble, rm) })
	must(t, js.DeleteStream(t.Context(), info.Config.Name))
	r.store(w.deleted(2, 6))
	got := r.closed(2)
	if len(got.Lost) == 0 {
		t.Error("nothing says that the stream was lost")
	}
	w.check(got)
}
