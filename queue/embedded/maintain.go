package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/conn"
)

// Run maintains the store until ctx ends. Every Options.CheckEvery it looks at the volume and makes
// the reserve if that is missing. When writes have failed because the volume is full, it deletes
// the reserve and opens the store again, because the server refuses all writes to a stream after
// one has failed, until it is restarted. After another error of the volume it opens the store again
// once the volume can be written, or what could not be read can be. Connections then drop for a
// moment, the outcome of appends in flight is unknown, and every client goes on from what is stored
// (Rule 4).
func (e *Server) Run(ctx context.Context) error {
	for failure.Pause(ctx, e.opts.CheckEvery) == nil {
		e.Check(ctx)
	}
	return nil
}

// Check looks once, as Run does; ctx bounds the opening of a store.
func (e *Server) Check(ctx context.Context) {
	d, err := e.disk.Look()
	if err != nil {
		return
	}
	e.disk.metrics.show(d)
	what := e.trouble()
	switch size := uint64(reserveSize(d.Volume)); {
	case what == "" && readAgain(e.unreadNow()):
		e.log.Warn("a stream that could not be read is readable again: the store is opened again")
		e.reopen(ctx)
	case what == "":
		if !HasReserve(e.opts.Dir) && d.Available >= 2*size {
			if err := makeReserve(e.opts.Dir, int64(size)); err != nil {
				e.log.Warn("reserve for a full volume not made, trying again", zap.Error(err))
			}
		}
	case conn.IsNoSpace(what) || d.Available < size/2:
		e.makeRoom(ctx, size)
	default:
		e.reopenAfterError(ctx, what)
	}
}

// makeRoom deletes the reserve, and opens the store again once there is room.
func (e *Server) makeRoom(ctx context.Context, reserve uint64) {
	if dropReserve(e.opts.Dir) {
		e.log.Error("the volume of the queue is full: its reserve was deleted, free some space",
			zap.String("dir", e.opts.Dir))
	}
	d, err := e.disk.Look()
	if err != nil || d.Available < reserve/2 {
		return // opening the store would fail again
	}
	if e.reopen(ctx) {
		e.log.Warn("store of the queue opened again after its volume was full", zap.Uint64("available", d.Available))
	}
}

// mostReopenPause is the longest time between two openings of a store in which one stream cannot be
// written: each of them stops all streams for a moment.
const mostReopenPause = 5 * time.Minute

// reopenAfterError opens the store again after another error of its volume, once that can be
// written: the server refuses all writes to a stream after one has failed, until it is restarted.
func (e *Server) reopenAfterError(ctx context.Context, what string) {
	if time.Now().Before(e.reopenAfter) {
		return
	}
	if err := tryWriting(e.opts.Dir); err != nil {
		e.log.Error("input/output error of the queue's volume: the store is opened again when it can be written",
			zap.String("what", what), zap.Error(err))
		return
	}
	if time.Since(e.reopenAfter) > mostReopenPause {
		e.reopenPause = 0
	}
	e.reopenPause = min(max(2*e.reopenPause, e.opts.CheckEvery), mostReopenPause)
	e.reopenAfter = time.Now().Add(e.reopenPause)
	e.log.Error("input/output error of the queue's volume, which can be written again: the store is opened again",
		zap.String("what", what))
	e.reopen(ctx)
}

// reopen calls Reopen and logs its error.
func (e *Server) reopen(ctx context.Context) bool {
	err := e.Reopen(ctx)
	if err != nil && ctx.Err() == nil {
		e.log.Error("store of the queue not opened again, trying again", zap.Error(err))
	}
	return err == nil
}

// trouble returns what is wrong with the store: it could not be opened again, or has refused a
// write since; "" if nothing is.
func (e *Server) trouble() string {
	e.mu.Lock()
	srv, failed := e.srv, e.failed
	e.mu.Unlock()
	switch {
	case srv == nil && failed != nil:
		return failed.Error()
	case srv == nil:
		return errClosed.Error()
	case !srv.JetStreamEnabled():
		return "the server has stopped JetStream"
	}
	for _, e := range healthOf(srv).Errors {
		if e.Type == server.HealthzErrorStream || conn.IsNoSpace(e.Error) {
			return e.Error
		}
	}
	return ""
}

// WriteErr returns why the store refuses writes to a stream; nil if it does not, or its volume is
// full.
func (e *Server) WriteErr(stream string) error {
	srv := e.server()
	if srv == nil {
		return nil
	}
	for _, e := range healthOf(srv).Errors {
		if e.Type == server.HealthzErrorStream && e.Stream == stream && !conn.IsNoSpace(e.Error) {
			return errors.New(e.Error)
		}
	}
	return nil
}

// unreadNow returns the folders of streams that could not be read when the store was opened.
func (e *Server) unreadNow() []unread {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.unread
}

// Reopen shuts the server down and starts another one on the same store, with the same token, and
// at the same address unless another process has taken it meanwhile.
func (e *Server) Reopen(ctx context.Context) error {
	e.stop()
	err := e.start(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed = err; err != nil {
		e.port = 0
		return fmt.Errorf("open store again: %w", err)
	}
	return nil
}
