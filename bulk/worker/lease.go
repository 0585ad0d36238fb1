package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/protocol"
)

// longestWait is how long a write waits for the daemon before its file fails. A restart of the
// daemon takes seconds, and its deployment minutes. Were it ten times as long, a job without a
// daemon would keep its machines for as long.
const longestWait = 10 * time.Minute

// lease is the lease of a process on its order.
type lease struct {
	read  func(context.Context) (*delegation.Seen, error)
	begin time.Time // from which the monotonic clock counts

	mu     sync.Mutex
	judge  *delegation.Lease
	noted  chan struct{} // is closed by the next reading
	failed error         // why the last reading failed
}

func newLease(o *delegation.Order, read func(context.Context) (*delegation.Seen, error)) *lease {
	return &lease{read: read, begin: time.Now(), judge: delegation.NewLease(o), noted: make(chan struct{})}
}

func (l *lease) now() protocol.Instant { return protocol.InstantOf(time.Now(), l.begin) }

// run reads the order until it is closed or ctx ends.
func (l *lease) run(ctx context.Context) {
	for ctx.Err() == nil && l.renew(ctx) != delegation.Closed {
		l.mu.Lock()
		after := l.judge.ReadAfter()
		l.mu.Unlock()
		if failure.Pause(ctx, after) != nil {
			return
		}
	}
}

// renew reads the order once, and returns what it permits then. A reading that failed changes
// nothing: the one before counts until it is too old. An order that this build cannot read is
// closed for it.
func (l *lease) renew(ctx context.Context) delegation.Verdict {
	began := l.now()
	call, cancel := context.WithTimeout(ctx, delegation.ReadEvery)
	seen, err := l.read(call)
	cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	if unreadable(err) {
		seen, err = &delegation.Seen{}, nil
	}
	if l.failed = err; err == nil {
		l.judge.Note(began, *seen)
	}
	close(l.noted)
	l.noted = make(chan struct{})
	return l.judge.Judge(l.now())
}

// unreadable reports whether a reading was answered, and the answer cannot be understood.
func unreadable(err error) bool {
	var newer *delegation.NewerFormatError
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	return errors.As(err, &newer) || errors.As(err, &syntax) || errors.As(err, &kind)
}

// date returns the time of the tombstone gate.
func (l *lease) date() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.judge.Date(l.now()).Time()
}

// fresh blocks until an attempt of a call may be sent. It is asked before each.
//
// Rule 12: behind a fence nothing is written. Only a lease that is valid at this moment permits it.
func (l *lease) fresh(ctx context.Context) error {
	return l.await(ctx, delegation.Verdict.Permits)
}

// mayBegin blocks until a new item may be begun.
func (l *lease) mayBegin(ctx context.Context) error {
	return l.await(ctx, func(v delegation.Verdict) bool { return v == delegation.Writes })
}

func (l *lease) await(ctx context.Context, enough func(delegation.Verdict) bool) error {
	v, noted, _ := l.verdict()
	if enough(v) { // as a rule
		return nil
	}
	limit := time.NewTimer(longestWait)
	defer limit.Stop()
	for !enough(v) {
		switch v {
		case delegation.Closed:
			return ErrClosed
		case delegation.Waits: // the daemon is there, and asks for patience
			limit.Reset(longestWait)
		}
		select {
		case <-noted:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limit.C:
			_, _, failed := l.verdict()
			return errors.Join(fmt.Errorf("no write was permitted for %s: %s", longestWait, v), failed)
		}
		v, noted, _ = l.verdict()
	}
	return nil
}

// verdict returns what is permitted now, what ends with the next reading, and why the last one
// failed.
func (l *lease) verdict() (v delegation.Verdict, noted <-chan struct{}, failed error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.judge.Judge(l.now()), l.noted, l.failed
}
