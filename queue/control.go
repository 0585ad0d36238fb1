package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/conn"
)

// AppendControl appends a control entry without owning the log, and returns its sequence. The
// owner's next append is then refused, so that the owner folds the log again and acts on the entry.
// AppendControl retries while other messages come first, until ctx ends. After a time-out the entry
// may have been stored twice, which changes nothing.
func (l *Log) AppendControl(ctx context.Context, body *checkpoint.Control) (seq uint64, err error) {
	nonce, err := newNonce()
	if err != nil {
		return 0, err
	}
	var f *folded
	for pause := conn.StorePause; ; pause = conn.OutcomeOf(err).NextPause(pause) {
		f, seq, err = l.appendControlOnce(ctx, f, body, nonce)
		switch conn.OutcomeOf(err) {
		case conn.Stored:
			return seq, nil
		case conn.Fenced:
		case conn.Unknown:
			if f = nil; !conn.Transient(err) {
				return 0, fmt.Errorf("control log of %s: %w", l.table, err)
			}
		default:
			return 0, fmt.Errorf("control log of %s: %w", l.table, err)
		}
		if werr := failure.Pause(ctx, pause); werr != nil {
			return 0, fmt.Errorf("control log of %s: %w: %w", l.table, werr, err)
		}
	}
}

// appendControlOnce folds the log and appends the entry behind it, once. It reads on from an
// earlier fold: a fold from the beginning takes longer than an owner that is busy leaves between
// two entries, and would come too late for ever.
func (l *Log) appendControlOnce(
	ctx context.Context, before *folded, body *checkpoint.Control, nonce checkpoint.Nonce,
) (f *folded, seq uint64, err error) {
	if f = before; f == nil || !l.readOn(ctx, f) {
		f, err = l.fold(ctx)
	}
	if errors.Is(err, ErrDamaged) && body.Resume && f != nil && f.state.Epoch > 0 {
		err = nil // the entry continues the chain from before the damage: that is how an operator accepts the loss
	}
	if err != nil {
		return nil, 0, err
	}
	s := f.state
	if err := s.CheckNext(body); err != nil {
		return nil, 0, err
	}
	e := &checkpoint.Entry{Kind: checkpoint.KindControl, Epoch: s.Epoch, Nonce: nonce, Prev: s.Hash, Body: body}
	msg, err := checkpoint.Encode(nil, e)
	if err != nil {
		return nil, 0, err
	}
	seq, err = l.publish(ctx, checkpoint.KindControl, msg, s.Seq, f.lastID, l.q.messageID(nonce))
	return f, seq, err
}
