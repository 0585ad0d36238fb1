package queue

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/queue/conn"
)

// replicaStream is a stream about which a replica answers, because the stream has no leader or is
// not open yet.
type replicaStream struct {
	jetstream.Stream
	info *jetstream.StreamInfo
	err  error
}

func (d replicaStream) Info(context.Context, ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	return d.info, d.err
}

// A replica may answer with old facts, or with "not found" for a stream that it has not opened yet:
// neither is trusted.
func TestAnswersOfAReplicaAboutAStreamAreNotTrusted(t *testing.T) {
	ctx := testContext(t)
	q := embeddedQueue(t)
	l := createLog(t, q)
	old := *l.stream.CachedInfo()
	old.Cluster = &jetstream.ClusterInfo{Name: "c"}
	st := l.stream
	l.stream = replicaStream{st, &old, nil}
	if _, err := l.Info(ctx); !errors.Is(err, conn.ErrNoLeader) || !conn.Transient(err) {
		t.Errorf("without a leader: %v", err)
	}
	for name, c := range map[string]struct {
		replicas []*jetstream.PeerInfo
		leads    bool
	}{
		"one copy":                 {nil, true},
		"all are there":            {[]*jetstream.PeerInfo{{Active: time.Second}, {Active: 2 * time.Second}}, true},
		"one is away":              {[]*jetstream.PeerInfo{{Active: time.Second}, {Active: time.Hour, Offline: true}}, true},
		"no majority is heard":     {[]*jetstream.PeerInfo{{Active: 5 * time.Second}, {Active: 5 * time.Second}}, false},
		"both are known to be off": {[]*jetstream.PeerInfo{{Active: 1, Offline: true}, {Active: 1, Offline: true}}, false},
		"one of three":             {[]*jetstream.PeerInfo{{Offline: true}, {Active: time.Second, Offline: true}}, false},
		"one of two":               {[]*jetstream.PeerInfo{{Active: time.Hour}}, false},
	} {
		old.Cluster = &jetstream.ClusterInfo{Name: "c", Leader: "n1", Replicas: c.replicas}
		if _, err := l.Info(ctx); errors.Is(err, conn.ErrNoLeader) == c.leads || c.leads && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	l.stream = replicaStream{st, nil, jetstream.ErrStreamNotFound}
	if _, err := l.Info(ctx); !errors.Is(err, conn.ErrNoLeader) {
		t.Errorf("denied by a replica: %v", err)
	}
	if _, err := q.conn.JS.CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := q.conn.JS.Publish(ctx, "s", nil); err != nil {
		t.Fatal(err)
	}
	if err := q.conn.ConfirmMissing(ctx, "S"); !errors.Is(err, conn.ErrNoLeader) {
		t.Errorf("denied by a replica of a stream that has the message: %v", err)
	}
	if err := q.conn.JS.DeleteStream(ctx, l.name); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Info(ctx); !errors.Is(err, ErrEmptied) {
		t.Errorf("deleted: %v", err)
	}
}

// TestAnswerWithoutAMessageIsNoMessage: nor does it show that there is none.
func TestAnswerWithoutAMessageIsNoMessage(t *testing.T) {
	for _, answer := range []string{`{}`, `{"message":null}`, `[]`, `<html>Bad Gateway</html>`} {
		q := answering(t, func(int) string { return "" })
		other, err := nats.Connect(q.conn.NC.ConnectedUrl())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(other.Close)
		_, err = other.Subscribe("$JS.API.STREAM.MSG.GET.*", func(m *nats.Msg) { _ = m.Respond([]byte(answer)) })
		if err = errors.Join(err, other.Flush()); err != nil {
			t.Fatal(err)
		}
		m, err := q.conn.GetMessage(t.Context(), "S", conn.MessageRequest{Seq: 1})
		if m != nil || !errors.Is(err, jetstream.ErrInvalidJetStreamResponse) {
			t.Errorf("%s: %v, %v", answer, m, err)
		}
		if err := q.conn.ConfirmMissing(t.Context(), "S"); !errors.Is(err, jetstream.ErrInvalidJetStreamResponse) {
			t.Errorf("%s: %v", answer, err)
		}
	}
}
