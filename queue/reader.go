package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/conn"
)

// Reader reads the entries of a log in order. It checks that none is missing and that each
// continues the one before. It may be used by one goroutine only; Close it.
type Reader struct {
	l          *Log
	cur        *conn.Consumer // nil until it is made again
	connection uint64         // conn.Connections when cur was made
	requested  uint64         // the last message that cur was to request; 0: none
	size       int            // bytes of the largest of the newest messages

	seq      uint64           // last message read, also one outside of the chain
	entry    uint64           // sequence of the last entry
	storedAt time.Time        // when it was stored
	chain    checkpoint.Chain // decides whether the next message is an entry

	copies copySearch // counts attempts to read from other replicas what the leader cannot read

	damage *DamageError // entries that cannot be read; later ones have no effect until one continues the chain

	endAt      uint64 // Next ends after this sequence; 0 = never
	idleRounds int    // how often in a row no message came although there is more to read
}

// Read starts at sequence from, the one after a mark with hash prev; with 0 at the oldest entry
// there is. It returns ErrGap when from was trimmed or lies beyond the end, and ErrChain when the
// entry before it has another hash, because the mark belongs to another log.
func (l *Log) Read(ctx context.Context, from uint64, prev checkpoint.Hash) (*Reader, error) {
	r := &Reader{l: l, connection: l.q.conn.Connections.Load()}
	info, err := l.Info(ctx)
	if err != nil {
		return nil, err
	}
	if from == 0 {
		from = info.First
	}
	if err := info.CheckMark(from - 1); err != nil {
		return nil, fmt.Errorf("read log of %s: %w", l.table, err)
	}
	r.seq, r.entry, r.chain = from-1, from-1, checkpoint.ChainAfter(prev)
	if from == info.origin && prev == (checkpoint.Hash{}) {
		r.chain = checkpoint.ChainFromStart()
	}
	if prev != (checkpoint.Hash{}) {
		// The sequence of a mark alone proves nothing: the log may have gone back to an older copy
		// and filled up again.
		if err := r.verifyLastRead(ctx); err != nil {
			return nil, fmt.Errorf("read log of %s: %w", l.table, err)
		}
	}
	if r.cur, err = l.consume(ctx, from); err != nil {
		return nil, err
	}
	return r, nil
}

// EndAt makes Next return io.EOF after the last entry up to this sequence, which is at most the
// log's last. There need not be an entry at it.
func (r *Reader) EndAt(seq uint64) { r.endAt = seq }

// Next returns the next entry, which aliases nothing that later calls change. It blocks until there is one, and
// reconnects by itself. Messages that are not part of the chain are skipped and counted. Errors:
//
//	ErrGap, ErrChain                what was read before is not in the log any more: fold again, start from the mark
//	ErrEmptied                      the stream is gone, or another one
//	*DamageError                    entries cannot be read: SkipDamage
//	*VolumeError                    they cannot be read now
//	*checkpoint.NewerFormatError    a newer build wrote the entry
//	io.EOF                          after EndAt
func (r *Reader) Next(ctx context.Context) (uint64, *checkpoint.Entry, error) {
	seq, e, err := r.next(ctx)
	if errors.Is(err, ErrDamaged) {
		err = r.l.q.confirmUnreadable(r.l.name, err)
	}
	return seq, e, err
}

// next is Next, which confirms damage.
func (r *Reader) next(ctx context.Context) (uint64, *checkpoint.Entry, error) {
	for {
		if r.endAt > 0 && r.seq >= r.endAt {
			return 0, nil, io.EOF
		}
		if r.cur == nil || r.connection != r.l.q.conn.Connections.Load() {
			if err := r.restart(ctx); err != nil {
				return 0, nil, err
			}
		}
		m, err := r.receive(ctx)
		switch {
		case err == nil:
			e, err := r.accept(ctx, m)
			if errors.Is(err, conn.ErrDropped) { // the consumer's replica lags behind the leader, or the client was too slow
				if err := failure.Pause(ctx, conn.LeastPause); err != nil {
					return 0, nil, err
				}
				if err := r.restart(ctx); err != nil {
					return 0, nil, err
				}
				continue
			}
			if err != nil {
				return 0, nil, fmt.Errorf("read log of %s: %w", r.l.table, err)
			}
			if e != nil {
				return m.Seq, e, nil
			}
		case ctx.Err() != nil:
			return 0, nil, context.Cause(ctx)
		case errors.Is(err, conn.ErrIdle):
			if err := r.checkIdle(ctx); err != nil {
				return 0, nil, err
			}
		default:
			if err := r.restart(ctx); err != nil {
				return 0, nil, err
			}
		}
	}
}

// receive returns the next message.
func (r *Reader) receive(ctx context.Context) (conn.Message, error) {
	if err := r.request(ctx); err != nil {
		return conn.Message{}, err
	}
	m, err := r.cur.Next(ctx, r.l.q.opts.IdleCheck)
	r.size = max(len(m.Data), r.size*7/8) // marks between frames do not make it small
	return m, err
}

// SkipDamage lets Next go on after entries that cannot be read, once it has returned d for them.
// The owner of the next entry and the hash of its predecessor are then unknown, as at the start of
// a trimmed log.
func (r *Reader) SkipDamage(ctx context.Context, d *DamageError) {
	r.Close(ctx)
	r.cur, r.damage = nil, nil
	r.seq, r.entry, r.chain = d.To, d.To, checkpoint.ChainAfter(checkpoint.Hash{})
}

// Mark returns the mark of the entry that Next returned last.
func (r *Reader) Mark() checkpoint.Mark { return checkpoint.Mark{Seq: r.entry, Hash: r.chain.Hash} }

// Close ends the reading.
func (r *Reader) Close(ctx context.Context) {
	if r.cur != nil {
		r.cur.Close(ctx)
	}
}

// accept returns the entry in m; nil when the message has no effect. conn.ErrDropped when messages
// before m must be read again, from another consumer.
func (r *Reader) accept(ctx context.Context, m conn.Message) (*checkpoint.Entry, error) {
	r.idleRounds = 0
	if m.Seq <= r.seq {
		return nil, nil
	}
	e, err := checkpoint.Decode(m.Data)
	if newer := (*checkpoint.NewerFormatError)(nil); errors.As(err, &newer) {
		return nil, err
	}
	follows := err == nil && r.chain.Continues(e)
	if r.damage == nil && m.Seq != r.seq+1 && (!follows || !r.chain.Known()) {
		err := r.l.explainMissing(ctx, r.seq+1, m.Seq)
		if err == nil {
			err = conn.ErrDropped
		}
		damage := (*DamageError)(nil)
		if !errors.As(err, &damage) {
			return nil, err
		}
		if r.copies.tryAnother(r.seq, damage.copies) {
			r.l.logBadCopy(damage.From)
			return nil, conn.ErrDropped
		}
		r.damage = damage
		if r.damage.Until = m.Stored; !r.storedAt.IsZero() {
			r.damage.Since = r.storedAt
		}
	}
	if r.damage != nil && (!follows || !r.chain.Known()) {
		// Rule 8: only an entry that continues the chain from before the damage shows that an
		// operator accepted it.
		if r.seq = m.Seq; m.Seq >= r.damage.Last {
			return nil, r.damage
		}
		return nil, nil
	}
	if r.damage = nil; err == nil && !follows {
		// Either another program wrote the message, or the log went back and continued with other
		// entries.
		if err := r.verifyLastRead(ctx); err != nil {
			return nil, err
		}
	}
	r.seq = m.Seq
	accepted := false
	if err == nil {
		if accepted, err = r.chain.Accept(e, m.Data); err != nil {
			return nil, err
		}
	}
	if !accepted {
		r.l.metrics.foreign.Inc()
		r.l.log.Warn("log holds a message that is not an entry of its chain, skipped", zap.Uint64("seq", m.Seq))
		return nil, nil
	}
	r.entry, r.storedAt = m.Seq, m.Stored
	return e, nil
}

// verifyLastRead checks that the log still holds the entry that was read last.
//
// Rule 4: memory proves nothing about what is stored.
func (r *Reader) verifyLastRead(ctx context.Context) error {
	info, err := r.l.Info(ctx)
	if err != nil {
		return err
	}
	if info.Last < r.seq {
		return fmt.Errorf("%w: read up to %d, the log ends at %d", ErrChain, r.seq, info.Last)
	}
	if r.chain.Hash == (checkpoint.Hash{}) {
		return nil // no entry was read yet, or it is trimmed: the next entry is checked against the chain
	}
	return r.l.verifyPredecessor(ctx, info, r.entry+1, r.chain.Hash, nil)
}

// restart makes another consumer, after a reconnect or when the old one ended, once it has verified
// that the log still holds what was read.
func (r *Reader) restart(ctx context.Context) error {
	r.l.metrics.resets.Inc()
	r.Close(ctx)
	r.cur = nil
	err := conn.Retry(ctx, func() error {
		connection := r.l.q.conn.Connections.Load()
		if err := r.verifyLastRead(ctx); err != nil {
			return err
		}
		cur, err := r.l.consume(ctx, r.seq+1)
		if err != nil {
			return err
		}
		r.cur, r.connection, r.requested, r.idleRounds = cur, connection, 0, 0
		return nil
	})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// checkIdle finds out why no message came: the reader has reached the end of the log, or the
// consumer does not deliver, and then checkIdle restarts it.
func (r *Reader) checkIdle(ctx context.Context) error {
	info, err := r.l.Info(ctx)
	switch {
	case err != nil && conn.Transient(err):
		return nil // Next restarts once the connection is back
	case err != nil:
		return err
	case info.Last < r.seq:
		return fmt.Errorf("read log of %s: %w: read up to %d, the log ends at %d", r.l.table, ErrChain, r.seq, info.Last)
	case info.Last == r.seq:
		r.idleRounds = 0
		return nil
	}
	if r.idleRounds++; r.idleRounds < 2 {
		return nil
	}
	_, err = r.l.q.conn.Next(ctx, r.l.name, r.seq+1)
	if errors.Is(err, jetstream.ErrMsgNotFound) { // the log's last sequences have no messages: only a fold shows why
		if r.damage != nil {
			return r.damage
		}
		if r.idleRounds = 0; r.endAt > 0 {
			r.seq = info.Last
		}
		return nil
	}
	return r.restart(ctx)
}
