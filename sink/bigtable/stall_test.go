package bigtable

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// stoppable lets a test stop the process for a while, as its clocks show it.
type stoppable struct{ ahead atomic.Int64 }

func (s *stoppable) now() instant {
	d := time.Duration(s.ahead.Load())
	return instant{present.Add(d), d}
}

func (s *stoppable) stop(d time.Duration) { s.ahead.Add(int64(d)) }

// stopping makes a client whose process only the test stops.
func stopping(t *testing.T) (*Client, *front, *stoppable) {
	t.Helper()
	c, f := rig(t)
	c.opt.Concurrency = callsPerConn // so that there is one connection
	s := &stoppable{}
	c.watch.mu.Lock()
	defer c.watch.mu.Unlock()
	c.watch.now, c.watch.seen = s.now, s.now()
	return c, f, s
}

// TestCallOfAStoppedProcessIsNotSent is attack 44: the process is stopped behind the look that
// allows the call, and before the call is sent.
func TestCallOfAStoppedProcessIsNotSent(t *testing.T) {
	t.Run("on the old connection", func(t *testing.T) { stopBetweenLookAndCall(t, false) })
	t.Run("on a connection opened behind the stop", func(t *testing.T) { stopBetweenLookAndCall(t, true) })
}

func stopBetweenLookAndCall(t *testing.T, reconnect bool) {
	c, f, s := stopping(t)
	mustApply(t, c, own("hats", 1, "x", "1"))
	f.fates(nil)
	lost, asked := errors.New("another owner has the log"), 0
	err := c.ApplyWhile(t.Context(), target, own("caps", 1, "x", "1"), func() error {
		if asked++; asked > 1 {
			return lost
		}
		s.stop(stallLimit + time.Millisecond)
		if reconnect {
			plain(t, c)
		}
		return nil
	})
	if !errors.Is(err, lost) || asked != 2 || f.count() != 0 {
		t.Errorf("%v; the look was asked %d times, and %d calls arrived", err, asked, f.count())
	}
	plain(t, c) // what was open before the stop is not used any more
	asked = 0
	err = c.ApplyWhile(t.Context(), target, own("belts", 1, "x", "1"), func() error {
		asked++
		if asked == 1 {
			s.stop(stallLimit)
		}
		return nil
	})
	if err != nil || asked != 1 {
		t.Errorf("a short stop: %v, and the look was asked %d times", err, asked)
	}
	if diff := cmp.Diff(map[string]string{"hats d:x": "1", "belts d:x": "1"}, plain(t, c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCallsGoOnBehindAStop: the first write finds its connection ended, and the next one is used.
func TestCallsGoOnBehindAStop(t *testing.T) {
	c, _, s := stopping(t)
	mustApply(t, c, own("hats", 1, "x", "1"))
	s.stop(time.Hour)
	mustApply(t, c, own("hats", 2, "x", "2"))
	if diff := cmp.Diff(map[string]string{"hats d:x": "2"}, plain(t, c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestConnectionSendsNothingBehindAStop: what gRPC has taken and not sent yet is not sent, whether
// the write itself notices the stop or the observer was first.
func TestConnectionSendsNothingBehindAStop(t *testing.T) {
	for name, noticed := range map[string]bool{"by the write": false, "by the observer": true} {
		t.Run(name, func(t *testing.T) {
			s := &stoppable{}
			w := &stallWatch{now: s.now, seen: s.now()}
			here, there := net.Pipe()
			got := make(chan string, 1)
			go func() {
				b, err := io.ReadAll(there)
				if err != nil {
					b = []byte(err.Error())
				}
				got <- string(b)
			}()
			c := &wakefulConn{here, w, w.count()}
			for _, text := range []string{"a", "b"} {
				s.stop(stallLimit)
				if _, err := c.Write([]byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			s.stop(stallLimit + 1)
			if noticed {
				w.count()
			}
			if n, err := c.Write([]byte("stale")); n != 0 || !errors.Is(err, errStalled) {
				t.Errorf("written: %d bytes, %v", n, err)
			}
			_ = here.Close() // which Write has done
			if g := <-got; g != "ab" {
				t.Errorf("sent: %q", g)
			}
		})
	}
}

// TestEitherClockShowsAStop: the monotonic clock stands still while the machine is suspended, and
// the wall clock may be set back while the process is stopped.
func TestEitherClockShowsAStop(t *testing.T) {
	at := instant{present, time.Hour}
	w := &stallWatch{now: func() instant { return at }, seen: at}
	at.wall = at.wall.Add(time.Hour)
	if w.count() != 1 {
		t.Error("the machine was suspended")
	}
	at = instant{at.wall.Add(-time.Hour), at.mono + time.Hour}
	if w.count() != 2 {
		t.Error("the process was stopped, and the clock set back")
	}
	at = instant{at.wall.Add(stallLimit), at.mono + stallLimit}
	if w.count() != 2 {
		t.Error("the process ran")
	}
}
