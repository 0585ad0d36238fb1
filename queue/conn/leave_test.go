package conn

import (
	"testing"
	"time"
)

// TestServerWithoutAnswersIsLeft: after five seconds, then ten, up to a minute, until one answers. Another connection
// begins anew.
func TestServerWithoutAnswersIsLeft(t *testing.T) {
	now, u, connection := time.Now(), &unanswered{}, uint64(1)
	leftAfter := func() time.Duration {
		began := now
		for !u.note(false, connection, now) {
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
	u.note(true, connection, now)
	if d := leftAfter(); d != leaveAfter {
		t.Errorf("left %v after an answer and 5 s without one", d)
	}
	u.note(true, connection, now)
	u.note(false, connection, now)
	now = now.Add(4 * time.Second)
	connection++ // the library has connected to another server meanwhile
	if d := leftAfter(); d != leaveAfter {
		t.Errorf("a new connection is left after %v", d)
	}
	u.note(true, connection, now)
	for range 20 {
		u.note(false, connection, now)
		now = now.Add(time.Second)
		if u.note(true, connection, now) || u.note(false, connection, now) {
			t.Fatal("a server that answers some requests is left")
		}
	}
}
