package archive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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

func openDir(t *testing.T, dir string) *Archive {
	t.Helper()
	a, err := Open(t.Context(), Options{Dir: dir}, zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

func write(t *testing.T, a *Archive, events ...*transform.Event) {
	t.Helper()
	if err := a.Write(t.Context(), events); err != nil {
		t.Fatal(err)
	}
}

// ids reads a file of events, each of which must be whole.
func ids(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasSuffix(data, []byte("\n")) {
		t.Errorf("%s ends within a line", file)
	}
	var out []string
	for _, l := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		var e struct{ Specversion, ID, Type, Subject string }
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			t.Fatalf("%s: %v in %q", file, err, l)
		}
		if e.Specversion != "1.0" || e.Type != EventType {
			t.Errorf("not an event of ours: %s", l)
		}
		out = append(out, e.ID)
	}
	return out
}

func TestEventsAreInTheFileOfTheirOwnDay(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir)
	elsewhere := day.In(time.FixedZone("", -5*3600)) // still 4 May in UTC
	write(t, a, expired(1, day), expired(2, day.Add(time.Second)), expired(3, elsewhere))
	write(t, a, expired(4, day))
	if diff := cmp.Diff([]string{"label/shard/1", "label/shard/3", "label/shard/4"},
		ids(t, filepath.Join(dir, "2026-05-04.jsonl"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"label/shard/2"}, ids(t, filepath.Join(dir, "2026-05-05.jsonl"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDataIsReadableJSON: a reader with jq and without a CloudEvents library finds the item under data.
func TestDataIsReadableJSON(t *testing.T) {
	e := expired(1, day)
	e.Item = []byte(`{"big":{"N":"12345678901234567890123456789012345678"},"t":{"S":"<a href=\"x\">&\u0001é"}}`)
	body, err := encode(e)
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

func TestReplayWritesTheSameBytes(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir)
	write(t, a, expired(1, day), expired(2, day))
	once, _ := os.ReadFile(filepath.Join(dir, "2026-05-04.jsonl"))
	write(t, a, expired(1, day), expired(2, day))
	twice, _ := os.ReadFile(filepath.Join(dir, "2026-05-04.jsonl"))
	if diff := cmp.Diff(string(once)+string(once), string(twice)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTornLineIsCutOffAtStart(t *testing.T) {
	for name, torn := range map[string]string{
		"short": `{"specversion":"1.0","id":"label/sh`,
		"long":  `{"specversion":"1.0","id":"` + strings.Repeat("x", 300<<10),
	} {
		for _, whole := range []int{0, 2} {
			t.Run(fmt.Sprint(name, " after ", whole), func(t *testing.T) {
				dir := t.TempDir()
				file := filepath.Join(dir, "2026-05-04.jsonl")
				var kept []string
				first := openDir(t, dir)
				for i := range whole {
					write(t, first, expired(i, day))
					kept = append(kept, fmt.Sprintf("label/shard/%d", i))
				}
				_ = first.Close()
				tear(t, file, torn)
				second := openDir(t, dir)
				if data, _ := os.ReadFile(file); whole == 0 && len(data) != 0 {
					t.Errorf("%d bytes are left", len(data))
				}
				write(t, second, expired(7, day))
				if diff := cmp.Diff(append(kept, "label/shard/7"), ids(t, file)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestTornLineOfAFailedWriteIsCutOffByTheNext(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir)
	write(t, a, expired(1, day))
	file := filepath.Join(dir, "2026-05-04.jsonl")
	tear(t, file, `{"specversion"`)
	write(t, a, expired(2, day))
	if diff := cmp.Diff([]string{"label/shard/1", "label/shard/2"}, ids(t, file)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func tear(t *testing.T, file, tail string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o640)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(tail); err != nil {
		t.Fatal(err)
	}
}

func TestSecondProcessIsKeptOutOfTheDirectory(t *testing.T) {
	dir := t.TempDir()
	openDir(t, dir)
	if _, err := Open(t.Context(), Options{Dir: dir}, zap.NewNop(), nil); err == nil {
		t.Error("two archives write to one directory")
	}
}

func TestDirectoryThatCannotBeWrittenIsAnError(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir)
	if err := os.Mkdir(filepath.Join(dir, "2026-05-04.jsonl"), 0o750); err != nil {
		t.Fatal(err)
	}
	err := a.Write(t.Context(), []*transform.Event{expired(1, day)})
	if err == nil {
		t.Fatal("an event that is nowhere was reported durable")
	}
	if Classify(err) == failure.Transient {
		t.Errorf("a directory that cannot be written needs an operator, so its class is Fatal: %v", err)
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

func openConn(t *testing.T, conn *nats.Conn) *Archive {
	t.Helper()
	a, err := Open(t.Context(), Options{Subject: "archive.expired", Conn: conn, Timeout: 5 * time.Second}, zap.NewNop(),
		nil)
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
	want, _ := encode(many[0])
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
