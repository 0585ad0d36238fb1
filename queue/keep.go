package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/conn"
)

// Run watches the embedded store until ctx ends: it holds a reserve on the store's volume, and when writes have
// failed because the volume is full it gives the reserve up and opens the store again. The server refuses all writes
// to a stream after one has failed, until it is restarted: connections drop for a moment, what was under way is in
// doubt, and everybody goes on from what is stored (Rule 4). With a server elsewhere there is nothing to do.
func (q *Queue) Run(ctx context.Context) error {
	if q.embedded == nil {
		<-ctx.Done()
		return nil
	}
	for failure.Pause(ctx, q.opts.DiskCheck) == nil {
		q.checkStore(ctx)
	}
	return nil
}

// checkStore looks once; ctx ends the opening of a store.
func (q *Queue) checkStore(ctx context.Context) {
	d, ok := q.Disk()
	if !ok {
		return
	}
	q.disk.metrics.show(d)
	size := reserveSize(d.Volume)
	if !q.embedded.outOfSpace() {
		if !holdsReserve(q.opts.Dir) && d.Available >= 2*uint64(size) {
			if err := makeReserve(q.opts.Dir, size); err != nil {
				q.log.Warn("no reserve for a full volume", zap.Error(err))
			}
		}
		return
	}
	if dropReserve(q.opts.Dir) {
		q.log.Error("the volume of the queue is full: its reserve is given up, free some room", zap.String("dir", q.opts.Dir))
	}
	if d, ok = q.Disk(); !ok || d.Available < uint64(size)/2 {
		return // whatever is opened would fail again
	}
	if err := q.embedded.reopen(ctx, q.opts, q.log); err != nil && ctx.Err() == nil {
		q.log.Error("store of the queue not opened again, trying again", zap.Error(err))
	} else if err == nil {
		q.log.Warn("store of the queue opened again after its volume was full", zap.Uint64("available", d.Available))
	}
}

// outOfSpace tells whether the store has refused a write for want of room, or could not be opened again since.
func (e *embedded) outOfSpace() bool {
	srv := e.server()
	return srv == nil || conn.SaysNoSpace(srv.Healthz(&server.HealthzOptions{}).Error)
}

// reopen shuts the server down and starts another one on the same store, with the same token, and at the same address
// unless somebody else has taken it meanwhile.
func (e *embedded) reopen(ctx context.Context, o Options, log *zap.Logger) error {
	e.stop()
	if err := e.start(ctx, o, log); err != nil {
		e.port = 0
		return fmt.Errorf("open store again: %w", err)
	}
	return nil
}

// openRoomy opens a store whose volume may be full, by giving up the reserve. It removes no other file: what else is
// there, the operator has to judge.
func (e *embedded) openRoomy(ctx context.Context, o Options, log *zap.Logger) error {
	err := e.start(ctx, o, log)
	if err == nil {
		return nil
	}
	v, verr := o.Volume(o.Dir)
	if verr != nil || v.Available > uint64(reserveSize(v)) {
		return err
	}
	if dropReserve(o.Dir) {
		log.Error("the volume of the queue is full: its reserve is given up, free some room", zap.String("dir", o.Dir))
		if err = e.start(ctx, o, log); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%w: %w", ErrNoSpace, err)
}

// ErrNoSpace means that the volume of the embedded store is full, so that not even the store can be opened.
var ErrNoSpace = errors.New("no room on the volume of the queue: free some, or enlarge it; never delete files of the queue")
