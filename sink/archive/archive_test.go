package archive

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/failure"
	sandbox "github.com/tailrace-cdc/replicator/sandbox/nats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func expired(i int) Message {
	return Message{ID: fmt.Sprint("label/shard/", i), Body: fmt.Appendf(nil, `{"specversion":"1.0","id":"label/shard/%d"}`, i)}
}

func write(t *testing.T, a *Subject, messages ...Message) {
	t.Helper()
	if err := a.Write(t.Context(), messages); err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T) *nats.Conn {
	t.Helper()
	s, err := sandbox.Open(sandbox.Options{Addr: "127.0.0.1:0", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	conn, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

func openConn(t *testing.T, conn *nats.Conn) *Subject {
	t.Helper()
	o := Options{Subject: "archive.expired", Conn: conn, Timeout: 5 * time.Second}
	a, err := OpenSubject(t.Context(), o, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestReplayedEventIsStoredOnceInAStream(t *testing.T) {
	conn := connect(t)
	js, _ := jetstream.New(conn)
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "A", Subjects: []string{"archive.>"}})
	if err != nil {
		t.Fatal(err)
	}
	a := openConn(t, conn)
	var many []Message
	for i := range inFlight + 10 {
		many = append(many, expired(i))
	}
	write(t, a, many...)
	write(t, a, many...)
	info, err := stream.Info(t.Context())
	if err != nil || info.State.Msgs != uint64(len(many)) {
		t.Errorf("%d messages stored, want %d (%v)", info.State.Msgs, len(many), err)
	}
	msg, err := stream.GetMsg(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(many[0].Body), string(msg.Data)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEventThatTheStreamRefusesIsNotDurable(t *testing.T) {
	conn := connect(t)
	js, _ := jetstream.New(conn)
	full := jetstream.StreamConfig{Name: "A", Subjects: []string{"archive.>"}, MaxMsgs: 1, Discard: jetstream.DiscardNew}
	if _, err := js.CreateStream(t.Context(), full); err != nil {
		t.Fatal(err)
	}
	a := openConn(t, conn)
	err := a.Write(t.Context(), []Message{expired(1), expired(2)})
	if err == nil {
		t.Fatal("an event that the stream refused was reported durable")
	}
	if Classify(err) == failure.Transient {
		t.Errorf("a full stream does not empty itself: %v", err)
	}
}

func TestUnavailableStreamIsAnErrorAndNotASilentLoss(t *testing.T) {
	conn := connect(t)
	js, _ := jetstream.New(conn)
	if _, err := js.CreateStream(t.Context(),
		jetstream.StreamConfig{Name: "A", Subjects: []string{"archive.>"}}); err != nil {
		t.Fatal(err)
	}
	a := openConn(t, conn)
	if err := js.DeleteStream(t.Context(), "A"); err != nil {
		t.Fatal(err)
	}
	err := a.Write(t.Context(), []Message{expired(1)})
	if err == nil {
		t.Fatal("an event was published into nothing and reported durable")
	}
	if Classify(err) != failure.Transient || !strings.Contains(err.Error(), "archive.expired") {
		t.Errorf("the stream may come back, and its subject is not named: %v", err)
	}
}

func TestSubjectWithoutAStreamReachesSubscribers(t *testing.T) {
	conn := connect(t)
	sub, err := conn.SubscribeSync("archive.>")
	if err != nil {
		t.Fatal(err)
	}
	a := openConn(t, conn)
	write(t, a, expired(1))
	msg, err := sub.NextMsg(5 * time.Second)
	if err != nil || msg.Header.Get("Nats-Msg-Id") != "label/shard/1" {
		t.Errorf("got %+v, %v", msg, err)
	}
}
