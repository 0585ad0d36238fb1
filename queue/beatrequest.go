package queue

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
)

// RequestBeat asks the owner of the log, if there is one, for a complete listing and a beat now. The request is not
// stored and may be lost: without it the owner lists and beats when its own timers are due.
func (l *Log) RequestBeat() error {
	if err := l.q.conn.NC.Publish(l.beatRequestSubject(), nil); err != nil {
		return fmt.Errorf("request a beat in log of %s: %w", l.table, err)
	}
	return l.q.conn.NC.Flush()
}

// BeatRequests delivers a value for each call of RequestBeat, until ctx ends. Requests that arrive while a value is
// still waiting to be received are merged into it.
func (l *Log) BeatRequests(ctx context.Context) (<-chan struct{}, error) {
	requests := make(chan struct{}, 1)
	sub, err := l.q.conn.NC.Subscribe(l.beatRequestSubject(), func(*nats.Msg) {
		select {
		case requests <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listen for beat requests in log of %s: %w", l.table, err)
	}
	context.AfterFunc(ctx, func() { _ = sub.Unsubscribe() })
	return requests, nil
}

// beatRequestSubject returns a subject outside of the log's stream, so that requests are not stored. All versions of
// the program that run at the same time must use the same subject.
func (l *Log) beatRequestSubject() string {
	return "tailrace-nudge." + l.token + "." + shortHash(l.table)
}
