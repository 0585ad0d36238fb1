package conn

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// leaveAfter is after how long without any answer to requests a server is left for another one,
	// and leaveAtMost the longest such time: it doubles from one to the next, because the whole
	// cluster may be without a leader.
	leaveAfter  = 5 * time.Second
	leaveAtMost = time.Minute
)

// unanswered watches whether the server that the connection is with answers requests. One that is
// cut off from the rest of its cluster does not, but it keeps its clients, and answers their pings:
// without this they would stay for ever.
type unanswered struct {
	mu         sync.Mutex
	connection uint64
	answered   time.Time     // the last request
	since      time.Time     // when the first one was made that was not answered since; zero: all were
	patience   time.Duration // before the server is left
}

// noteAnswer notes that a request was answered.
func (u *unanswered) noteAnswer(connection uint64, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.connection, u.answered, u.since, u.patience = connection, now, time.Time{}, leaveAfter
}

// note notes that a request was not, after waiting for so long, and returns whether the server
// should be left.
func (u *unanswered) note(waited time.Duration, connection uint64, now time.Time) (leave bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.connection != connection { // how old it is, is not known
		u.connection, u.since, waited = connection, time.Time{}, 0
	}
	if made := now.Add(-waited); u.since.IsZero() {
		u.since, u.patience = made, max(u.patience, leaveAfter)
		if made.Before(u.answered) {
			u.since = u.answered
		}
	}
	if now.Sub(u.since) < u.patience {
		return false
	}
	u.since, u.patience = time.Time{}, min(2*u.patience, leaveAtMost)
	return true
}

// leave connects to another server, where there are several.
func (c *Conn) leave() {
	if c.opts.InProcess != nil || !c.NC.IsConnected() || len(c.NC.Servers()) < 2 {
		return
	}
	c.log.Warn("the NATS server answers no requests: going to another one", zap.String("server", c.NC.ConnectedAddr()))
	if err := c.NC.ForceReconnect(); err != nil {
		c.log.Warn("the NATS server cannot be left", zap.Error(err))
	}
}
