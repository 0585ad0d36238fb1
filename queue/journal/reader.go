package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/conn"
)

// Reader reads a journal in order and reconnects by itself. It may be used by one goroutine only;
// Close it.
type Reader struct {
	j          *Journal
	cur        *conn.Consumer // nil until it is made again
	connection uint64         // conn.Connections when cur was made
	seq        uint64         // last message read
	idle       int            // how often in a row nothing came
}

// Read starts at a sequence.
func (j *Journal) Read(from uint64) *Reader { return &Reader{j: j, seq: from - 1} }

// Next returns the next message, which the caller may keep. It blocks until there is one. ErrGap:
// the messages between were deleted, or the journal ends before the reader.
func (r *Reader) Next(ctx context.Context) (seq uint64, data []byte, err error) {
	for {
		if r.cur == nil || r.connection != r.j.conn.Connections.Load() {
			if err := r.restart(ctx); err != nil {
				return 0, nil, err
			}
		}
		m, err := r.cur.Next(ctx, r.j.opts.IdleCheck)
		switch {
		case err == nil && m.Seq <= r.seq:
		case err == nil && m.Seq > r.seq+1:
			// The consumer's replica may lag behind the leader: only the leader's answer proves
			// that the message is gone.
			if _, _, err := r.j.At(ctx, r.seq+1); err != nil && !conn.Transient(err) {
				return 0, nil, err
			}
			r.drop(ctx)
		case err == nil:
			r.seq, r.idle = m.Seq, 0
			return m.Seq, m.Data, nil
		case ctx.Err() != nil:
			return 0, nil, context.Cause(ctx)
		case errors.Is(err, conn.ErrIdle):
			if err := r.checkIdle(ctx); err != nil {
				return 0, nil, err
			}
		default:
			r.drop(ctx)
		}
	}
}

// checkIdle checks with the leader whether there is something to read after all.
func (r *Reader) checkIdle(ctx context.Context) error {
	info, err := r.j.Info(ctx)
	if conn.Transient(err) {
		return nil // the server is away: the next attempt returns the error
	}
	switch {
	case err != nil:
		return err
	case info.Last < r.seq, info.First > r.seq+1 && info.Last > r.seq:
		return fmt.Errorf("read the %s of %s behind message %d: %w: it holds %d to %d",
			r.j.opts.What, r.j.opts.Table, r.seq, ErrGap, info.First, info.Last)
	case info.Last > r.seq:
		if r.idle++; r.idle > 1 { // the replica that serves the consumer is behind
			r.drop(ctx)
		}
	}
	return nil
}

// drop gives the consumer up; the next call of Next makes another one.
func (r *Reader) drop(ctx context.Context) {
	if r.cur != nil {
		r.cur.Close(ctx)
	}
	r.cur, r.idle = nil, 0
}

func (r *Reader) restart(ctx context.Context) error {
	r.drop(ctx)
	for pause := conn.LeastPause; ; pause = min(2*pause, conn.MostPause) {
		r.connection = r.j.conn.Connections.Load()
		cur, err := r.j.conn.Consume(ctx, r.j.opts.Stream, r.seq+1, r.j.opts.BytesRead)
		if err == nil {
			r.cur = cur
			return nil
		}
		if !conn.Transient(err) {
			return r.j.wrap("read", err)
		}
		if werr := failure.Pause(ctx, pause); werr != nil {
			return errors.Join(r.j.wrap("read", err), werr)
		}
	}
}

// Close ends the reading.
func (r *Reader) Close(ctx context.Context) { r.drop(ctx) }
