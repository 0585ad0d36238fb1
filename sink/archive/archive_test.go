package archive

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/failure"
	sandbox "github.com/tailrace-cdc/replicator/sandbox/nats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func expired(i int) Message {
	id := fmt.Sprint("label/shard/", i)
	return Message{ID: id, Body: fmt.Appendf(nil, `{"specversion":"1.0","id":%q}`, id)}
}

func write(t *testing.T, a *Subject, messages ...Message) {
	t.Helper()
	if refused, err := a.Write(t.Context(), messages); err != nil || len(refused) > 0 {
		t.Fatal(refused, err)
	}
}

func connect(t *testing.T) *nats.Conn {
	t.Helper()
	return connectTo(t, sandbox.Options{})
}

func connectTo(t *testing.T, o sandbox.Options) *nats.Conn {
	t.Helper()
	o.Addr, o.Dir = "127.0.0.1:0", t.TempDir()
	s, err := sandbox.Open(o)
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
	_, err := a.Write(t.Context(), []Message{expired(1), expired(2)})
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
	_, err := a.Write(t.Context(), []Message{expired(1)})
	if err == nil {
		t.Fatal("an event was published into nothing and reported durable")
	}
	if Classify(err) != failure.Transient || !strings.Contains(err.Error(), "archive.expired") {
		t.Errorf("the stream may come back, and its subject is not named: %v", err)
	}
}

// loading is a connection to a server that answers one question for names as if it had no streams.
type loading struct {
	net.Conn
	asked atomic.Bool
}

func (l *loading) Dial(network, address string) (_ net.Conn, err error) {
	l.Conn, err = net.Dial(network, address)
	return l, err
}

func (l *loading) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("$JS.API.STREAM.NAMES")) && l.asked.CompareAndSwap(false, true) {
		return l.Conn.Write(bytes.Replace(b, []byte(`"archive.expired"`), []byte(`"archivX.expired"`), 1))
	}
	return l.Conn.Write(b)
}

// Rule 13: one answer that no stream listens on the subject would make all events of the process
// unstored ones.
func TestOneNotFoundDoesNotMakeEventsUnstored(t *testing.T) {
	conn := connect(t)
	js, _ := jetstream.New(conn)
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "A", Subjects: []string{"archive.>"}})
	if err != nil {
		t.Fatal(err)
	}
	l := &loading{}
	late, err := nats.Connect(conn.ConnectedUrl(), nats.SetCustomDialer(l))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(late.Close)
	a := openConn(t, late)
	if !l.asked.Load() || a.stream == nil {
		t.Fatal("no stream was found")
	}
	write(t, a, expired(1))
	if info, err := stream.Info(t.Context()); err != nil || info.State.Msgs != 1 {
		t.Errorf("%+v, %v", info, err)
	}
}

// TestSilentStreamIsFoundByItsName, Rule 13: after a first answer that there is no stream, the
// listing of a cluster leaves the stream out, because its leader does not answer. Another client
// answers in place of the cluster.
func TestSilentStreamIsFoundByItsName(t *testing.T) {
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(srv.Shutdown)
	var conns [2]*nats.Conn
	for i := range conns {
		if conns[i], err = nats.Connect(srv.ClientURL()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conns[i].Close)
	}
	var asked atomic.Int32
	for subject, answer := range map[string]func() string{
		"$JS.API.STREAM.LIST": func() string { return `{"total":0,"streams":[],"missing":["A"]}` },
		"$JS.API.STREAM.NAMES": func() string {
			if asked.Add(1) == 1 {
				return `{"total":0,"streams":[]}`
			}
			return `{"total":1,"streams":["A"]}`
		},
	} {
		if _, err := conns[0].Subscribe(subject, func(m *nats.Msg) { _ = m.Respond([]byte(answer())) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := conns[0].Flush(); err != nil {
		t.Fatal(err)
	}
	if a := openConn(t, conns[1]); a.stream == nil || asked.Load() != 2 {
		t.Error("the stream was not found: events would be lost")
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

// TestMessageThatIsTooLargeIsCompressedOrRefused, whoever sets the limit: the server, or the stream
// on the subject.
func TestMessageThatIsTooLargeIsCompressedOrRefused(t *testing.T) {
	const limit = 16 << 10
	noise := make([]byte, limit)
	_, _ = rand.Read(noise)
	small := expired(1)
	dull := Message{ID: "label/shard/2", Body: []byte(`"` + strings.Repeat("dull ", limit) + `"`)}
	wild := Message{ID: "label/shard/3", Body: fmt.Appendf(nil, `"%x"`, noise)}
	for name, x := range map[string]struct {
		server int
		stream *jetstream.StreamConfig
	}{
		"server":                   {limit, &jetstream.StreamConfig{}},
		"server, without a stream": {limit, nil},
		"stream":                   {0, &jetstream.StreamConfig{MaxMsgSize: limit}},
	} {
		t.Run(name, func(t *testing.T) {
			conn := connectTo(t, sandbox.Options{MaxPayload: x.server})
			if x.stream != nil {
				js, _ := jetstream.New(conn)
				x.stream.Name, x.stream.Subjects = "A", []string{"archive.>"}
				if _, err := js.CreateStream(t.Context(), *x.stream); err != nil {
					t.Fatal(err)
				}
			}
			sub, err := conn.SubscribeSync("archive.>")
			if err != nil {
				t.Fatal(err)
			}
			refused, err := openConn(t, conn).Write(t.Context(), []Message{dull, wild, small})
			if err != nil || len(refused) != 1 || refused[0].ID != wild.ID {
				t.Fatalf("refused %d, %v", len(refused), err)
			}
			got := map[string]string{}
			for len(got) < 2 {
				msg, err := sub.NextMsg(5 * time.Second)
				if err != nil {
					t.Fatal(err)
				}
				body := msg.Data
				switch msg.Header.Get("Content-Encoding") {
				case "zstd":
					if body, err = unpack(body); err != nil {
						t.Fatal(err)
					}
				case "":
					if len(body) > limit { // a subscriber sees what the stream refuses
						continue
					}
				}
				got[msg.Header.Get("Nats-Msg-Id")] = string(body)
			}
			want := map[string]string{small.ID: string(small.Body), dull.ID: string(dull.Body)}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func unpack(b []byte) ([]byte, error) {
	z, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	return z.DecodeAll(b, nil)
}
