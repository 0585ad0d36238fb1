package embedded

import (
	"context"
	"fmt"
	"slices"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/conn"
)

// Run maintains the store until ctx ends. Every Options.CheckEvery it looks at the volume and makes the reserve if that
// is missing. When writes have failed because the volume is full, it deletes the reserve and opens the store again,
// because the server refuses all writes to a stream after one has failed, until it is restarted. Connections then drop
// for a moment, the outcome of appends in flight is unknown, and every client goes on from what is stored (Rule 4).
func (e *Server) Run(ctx context.Context) error {
	for failure.Pause(ctx, e.opts.CheckEvery) == nil {
		e.Check(ctx)
	}
	return nil
}

// Check looks once, as Run does; ctx bounds the opening of a store.
func (e *Server) Check(ctx context.Context) {
	dir := e.opts.Dir
	d, err := e.disk.Look()
	if err != nil {
		return
	}
	e.disk.metrics.show(d)
	if readAgain(e.unreadFolders()) {
		e.log.Warn("a stream that could not be read is readable again: the store is opened again")
		if err := e.Reopen(ctx); err != nil && ctx.Err() == nil {
			e.log.Error("store of the queue not opened again, trying again", zap.Error(err))
		}
		return
	}
	size := reserveSize(d.Volume)
	if !e.outOfSpace() {
		if !HasReserve(dir) && d.Available >= 2*uint64(size) {
			if err := makeReserve(dir, size); err != nil {
				e.log.Warn("reserve for a full volume not made, trying again", zap.Error(err))
			}
		}
		return
	}
	if dropReserve(dir) {
		e.log.Error("the volume of the queue is full: its reserve was deleted, free some space", zap.String("dir", dir))
	}
	if d, err = e.disk.Look(); err != nil || d.Available < uint64(size)/2 {
		return // opening the store would fail again
	}
	if err := e.Reopen(ctx); err != nil && ctx.Err() == nil {
		e.log.Error("store of the queue not opened again, trying again", zap.Error(err))
	} else if err == nil {
		e.log.Warn("store of the queue opened again after its volume was full", zap.Uint64("available", d.Available))
	}
}

// outOfSpace reports whether the store has refused a write because the volume is full, or could not be opened again
// since.
func (e *Server) outOfSpace() bool {
	srv := e.server()
	return srv == nil || slices.ContainsFunc(healthOf(srv).Errors,
		func(e server.HealthzError) bool { return conn.IsNoSpace(e.Error) })
}

// unreadFolders returns the folders of streams that could not be read when the store was opened.
func (e *Server) unreadFolders() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.unread
}

// Reopen shuts the server down and starts another one on the same store, with the same token, and at the same address
// unless another process has taken it meanwhile.
func (e *Server) Reopen(ctx context.Context) error {
	e.stop()
	if err := e.start(ctx); err != nil {
		e.port = 0
		return fmt.Errorf("open store again: %w", err)
	}
	return nil
}
