package queue

import "github.com/nats-io/nats.go"

// Conn returns the queue's own connection, for publishing beside the logs: archival events go to the same servers. It
// stays the queue's: whoever borrows it does not close it.
func (q *Queue) Conn() *nats.Conn { return q.conn.NC }
