package conn

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	sandnats "github.com/tailrace-cdc/replicator/sandbox/nats"
)

// TestConnectionGoesToAnotherServer where requests have had no answer for long enough; one server
// is not left.
func TestConnectionGoesToAnotherServer(t *testing.T) {
	var urls []string
	for range 2 {
		srv, err := sandnats.Open(sandnats.Options{Addr: "127.0.0.1:0", Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = srv.Close() })
		urls = append(urls, srv.URL())
	}
	unanswered := func(url string) (*Conn, string) {
		c, err := Dial(t.Context(), Options{URL: url, AckTimeout: time.Second}, zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		first := c.NC.ConnectedUrl()
		c.Report(t.Context(), nats.ErrTimeout)
		c.silent.since = c.silent.since.Add(-leaveAfter)
		c.Report(t.Context(), nats.ErrTimeout)
		return c, first
	}
	c, first := unanswered(urls[0] + "," + urls[1])
	for deadline := time.Now().Add(time.Minute); ; <-time.After(time.Millisecond) {
		if now := c.NC.ConnectedUrl(); c.NC.IsConnected() && now != first {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("still with %s", first)
		}
	}
	if n := c.Connections.Load(); n < 2 {
		t.Errorf("connection %d: what was sent before must be unknown", n)
	}
	c, _ = unanswered(urls[0])
	if n := c.Connections.Load(); !c.NC.IsConnected() || n != 1 {
		t.Errorf("the only server is left: connection %d", n)
	}
}

// TestServerWithoutAnswersIsLeft: after five seconds, then ten, up to a minute, until one answers.
// Another connection begins anew.
func TestServerWithoutAnswersIsLeft(t *testing.T) {
	now, u, connection := time.Now(), &unanswered{}, uint64(1)
	leftAfter := func() time.Duration {
		began := now
		for !u.note(0, connection, now) {
			now = now.Add(500 * time.Millisecond)
		}
		return now.Sub(began)
	}
	for _, want := range []time.Duration{5, 10, 20, 40, 60, 60} {
		if d := leftAfter(); d != want*time.Second {
			t.Errorf("left after %v, want %d s", d, want)
		}
		connection++
	}
	u.noteAnswer(connection, now)
	if d := leftAfter(); d != leaveAfter {
		t.Errorf("left %v after an answer and 5 s without one", d)
	}
	u.noteAnswer(connection, now)
	u.note(0, connection, now)
	now = now.Add(4 * time.Second)
	connection++ // the library has connected to another server meanwhile
	if d := leftAfter(); d != leaveAfter {
		t.Errorf("a new connection is left after %v", d)
	}
	u.noteAnswer(connection, now)
	for range 20 {
		u.note(0, connection, now)
		now = now.Add(time.Second)
		if u.noteAnswer(connection, now); u.note(0, connection, now) {
			t.Fatal("a server that answers some requests is left")
		}
	}
}

// TestRequestThatWasNotAnsweredInTimeCountsFromWhenItWasMade, and not from its end: on a server
// that is silent the second one would have to end, too. Where another request was answered
// meanwhile, it counts from then.
func TestRequestThatWasNotAnsweredInTimeCountsFromWhenItWasMade(t *testing.T) {
	now, u := time.Now(), &unanswered{}
	u.noteAnswer(1, now)
	now = now.Add(time.Hour)
	if !u.note(leaveAfter, 1, now) {
		t.Error("a server that was silent for five seconds is not left")
	}
	u.noteAnswer(1, now)
	if now = now.Add(leaveAfter - time.Second); u.note(leaveAfter, 1, now) {
		t.Error("a server is left that answered another request four seconds ago")
	}
	if now = now.Add(time.Second); !u.note(leaveAfter, 1, now) {
		t.Error("a server that has answered nothing for five seconds is not left")
	}
	if u.note(leaveAfter, 2, now) {
		t.Error("a connection is left for what the one before did not answer")
	}
}
