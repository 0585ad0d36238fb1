package queue

import (
	"context"
	"fmt"
)

// RequestBeat requests a complete listing and a beat from the owner of the log, if there is one.
// The request is not stored and may be lost; the owner then lists and beats when its own timers are
// due.
func (l *Log) RequestBeat() error {
	if err := l.q.conn.Signal(nudgeSubject(l.token, l.table)); err != nil {
		return fmt.Errorf("request a beat in log of %s: %w", l.table, err)
	}
	return nil
}

// BeatRequests delivers a value for calls of RequestBeat, until ctx ends.
func (l *Log) BeatRequests(ctx context.Context) (<-chan struct{}, error) {
	requests, err := l.q.conn.Signals(ctx, nudgeSubject(l.token, l.table))
	if err != nil {
		return nil, fmt.Errorf("listen for beat requests in log of %s: %w", l.table, err)
	}
	return requests, nil
}
