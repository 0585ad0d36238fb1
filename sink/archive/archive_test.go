package archive

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	sandbox "github.com/tailrace-cdc/replicator/sandbox/nats"
	"github.com/tailrace-cdc/replicator/transform"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var day = time.Date(2026, 5, 4, 23, 59, 59, 0, time.UTC)

func expired(i int, at time.Time) *transform.Event {
	return &transform.Event{
		Stream: "label", Shard: "shard", Sequence: change.SequenceNumber(strconv.Itoa(i)), Table: "Sessions",
		Source: "arn:aws:dynamodb:eu-west-1:1:table/Sessions", Subject: fmt.Sprintf(`{"pk":{"S":"%d"}}`, i),
		Created: change.Millis(at.UnixMilli()),
	}
}

func write(t *testing.T, a *Subject, events ...*transform.Event) {
	t.Helper()
	if err := a.Write(t.Context(), events); err != nil {
		t.Fatal(err)
	}
}

// TestDataIsReadableJSON: a reader with jq and without a CloudEvents library finds the item under data.
func TestDataIsReadableJSON(t *testing.T) {
	e := expired(1, day)
	e.Item = []byte(`{"big":{"N":"12345678901234567890123456789012345678"},"t":{"S":"<a href=\"x\">&\u0001é"}}`)
	body, err := Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(e.Data()), string(got["data"])); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	if _, ok := got["data_base64"]; ok || string(got["datacontenttype"]) != `"application/json"` {
		t.Errorf("not JSON data: %s", body)
	}
	back := event.New()
	if err := json.Unmarshal(body, &back); err != nil || string(back.Data()) != string(e.Data()) {
		t.Errorf("the CloudEvents library reads back %s (%v)", back.Data(), err)
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
	var many []*transform.Event
	for i := range inFlight + 10 {
		many = append(many, expired(i, day))
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
	want, _ := Encode(many[0])
	if diff := cmp.Diff(string(want), string(msg.Data)); diff != "" {
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
	err := a.Write(t.Context(), []*transform.Event{expired(1, day), expired(2, day)})
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
	err := a.Write(t.Context(), []*transform.Event{expired(1, day)})
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
	write(t, a, expired(1, day))
	msg, err := sub.NextMsg(5 * time.Second)
	if err != nil || msg.Header.Get("Nats-Msg-Id") != "label/shard/1" {
		t.Errorf("got %+v, %v", msg, err)
	}
}
