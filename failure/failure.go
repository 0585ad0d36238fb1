// Package failure is the vocabulary of errors that all packages share: what the caller can do about
// an error (Class), what its reader can do next (the hint of an Error), and how to wait before
// another try (Pause).
//
// source, queue and sink classify the errors of DynamoDB, NATS and Bigtable with it. Only
// pipeline/outcome decides what a class does to a table, and only package cli makes an exit code of
// it.
package failure

import (
	"context"
	"time"
)

// Class is what can be done about an error.
type Class uint8

// The classes. The zero value is the class of a nil error.
const (
	None      Class = iota
	Transient       // the network, a busy or electing server, a truncated reply: try again
	Throttled       // the service asks for fewer calls: try again, slower
	Denied          // credentials or permissions: the same call may succeed once an operator has granted them
	Missing         // a table, column family or stream does not exist yet: an operator creates it
	Gone            // the shard, stream, table or records do not exist any more
	Rejected        // the service will never accept this request; others may succeed
	Fatal           // anything else: the same call gives the same error until an operator acts
	Canceled        // the caller's own context ended

	// Of commands and what they call. An exit code is made from the class by package cli alone.
	Usage     // the command line, the configuration or a file that was given is wrong
	Unready   // an operator has to act first: a server, a permission, a port or a table is missing
	Different // the work was done, and what was compared is not equal
)

var names = [...]string{"ok", "transient", "throttled", "denied", "missing", "gone", "rejected", "fatal", "canceled",
	"usage", "unready", "different"}

// String returns the class as metrics, logs and JSON spell it.
func (c Class) String() string { return names[c] }

// Pause blocks for d, or until ctx ends: then it returns the context's cause.
func Pause(ctx context.Context, d time.Duration) error { return PauseUntil(ctx, d, nil) }

// PauseUntil is Pause that also ends when a value is received, or the channel is closed.
func PauseUntil(ctx context.Context, d time.Duration, ended <-chan struct{}) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-ended:
		return nil
	case <-t.C:
		return nil
	}
}
