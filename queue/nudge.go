package queue

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
)

// Nudge asks the owner of the log, if there is one, for a complete listing and a beat now. It is a courtesy:
// nothing depends on its arrival.
func (l *Log) Nudge() error {
	if err := l.q.nc.Publish(l.nudges(), nil); err != nil {
		return fmt.Errorf("nudge owner of log of %s: %w", l.table, err)
	}
	return l.q.nc.Flush()
}

// Nudges delivers a value for nudges that arrived, until ctx ends.
func (l *Log) Nudges(ctx context.Context) (<-chan struct{}, error) {
	c := make(chan struct{}, 1)
	sub, err := l.q.nc.Subscribe(l.nudges(), func(*nats.Msg) {
		select {
		case c <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listen for nudges of log of %s: %w", l.table, err)
	}
	context.AfterFunc(ctx, func() { _ = sub.Unsubscribe() })
	return c, nil
}

// nudges is outside of the log's own subjects: a nudge is not stored.
func (l *Log) nudges() string { return "tailrace-nudge." + l.token + "." + hashWord(l.table) }
