package conn

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// leaveAfter is after how long without any answer to requests a server is left for another one, and leaveAtMost
	// the longest such time: it doubles from one to the next, because the whole cluster may be without a leader.
	leaveAfter  = 5 * time.Second
	leaveAtMost = time.Minute
)

// unanswered watches whether the server that the connection is with answers requests. One that is cut off from the rest
// of its cluster does not, but it keeps its clients, and answers their pings: without this they would stay for ever.
type unanswered struct {
	mu         sync.Mutex
	connection uint64
	since      time.Time     // of the first request without an answer since the last one with; zero: none
	patience   time.Duration // before the server is left
}

// note notes the result of a request that was made on a connection, and returns whether the server should be left.
func (u *unanswered) note(answered bool, connection uint64, now time.Time) (leave bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case answered:
		u.since, u.patience = time.Time{}, leaveAfter
	case u.since.IsZero() || u.connection != connection:
		u.since, u.connection, u.patience = now, connection, max(u.patience, leaveAfter)
	case now.Sub(u.since) >= u.patience:
		u.since, u.patience = time.Time{}, min(2*u.patience, leaveAtMost)
		return true
	}
	return false
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
