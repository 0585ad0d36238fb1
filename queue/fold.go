package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/conn"
)

// folded is a state together with what it was read from.
type folded struct {
	state      *checkpoint.State
	info       Info
	newest     uint64          // sequence of the newest message that was read, even if it is outside of the chain
	newestHash checkpoint.Hash // hash of that message
	storedAt   time.Time       // when the last entry of the chain was stored
	damage     *DamageError    // entries that cannot be read, so far
	lastID     string          // message id of the newest message, "" when it has none
	snapshot   int             // size of the last snapshot
	connection uint64          // conn.Connections at the fold; once it changes the outcome of appends is unknown
	copies     copySearch      // counts attempts to read from other replicas what the leader cannot read
}

// noteMessage records facts about a message that the state does not keep: its id, and the size of a
// snapshot.
func (f *folded) noteMessage(m conn.Message, e *checkpoint.Entry) {
	f.lastID = m.ID
	if e == nil {
		return
	}
	if b, ok := e.Body.(*checkpoint.Snapshot); ok {
		if b.Part == 0 {
			f.snapshot = 0
		}
		f.snapshot += len(m.Data)
	}
}

// Fold computes the state from the last complete snapshot and the entries after it, up to the
// newest one that the stream's leader holds. Errors: ErrEmptied, *DamageError, *VolumeError,
// *checkpoint.CorruptError, *checkpoint.NewerFormatError; others are transient.
func (l *Log) Fold(ctx context.Context) (*checkpoint.State, error) {
	f, err := l.fold(ctx)
	if err != nil {
		return nil, err
	}
	return f.state, nil
}

// errLogChanged means that the log was trimmed beyond what a fold has read, or put back to an older
// copy: the fold begins again.
var errLogChanged = errors.New("the log changed while it was read")

// fold does what Fold documents, and returns what else this package needs. With a *DamageError it
// also returns what was read before the damage, and where the log ends.
func (l *Log) fold(ctx context.Context) (*folded, error) {
	for pause := conn.LeastPause; ; pause = min(2*pause, conn.MostPause) {
		f, err := l.foldOnce(ctx)
		if err == nil {
			return f, nil
		}
		if errors.Is(err, ErrDamaged) {
			err = l.q.confirmUnreadable(l.name, err)
		}
		if !errors.Is(err, errLogChanged) {
			return f, fmt.Errorf("fold log of %s: %w", l.table, err)
		}
		l.log.Warn("the log changed while it was read, reading it again", zap.Error(err))
		if werr := failure.Pause(ctx, pause); werr != nil {
			return nil, fmt.Errorf("fold log of %s: %w: %w", l.table, werr, err)
		}
	}
}

// readOn reads what has come since a fold, and reports whether the result is a fold, too: it is not
// if anything else may have happened to the log than that it grew.
func (l *Log) readOn(ctx context.Context, f *folded) bool {
	info, err := l.Info(ctx)
	if err != nil || info.Last <= f.state.Seq || f.damage != nil || f.state.Epoch == 0 {
		return false
	}
	f.info = info
	foreign := f.state.Foreign
	return l.applyRest(ctx, f) == nil && f.state.Foreign == foreign
}

// foldOnce folds the log; errLogChanged when it must be read again.
func (l *Log) foldOnce(ctx context.Context) (*folded, error) {
	f := &folded{connection: l.q.conn.Connections.Load()}
	var err error
	if f.info, err = l.Info(ctx); err != nil {
		return nil, err
	}
	if f.info.empty() {
		if f.info.Last >= f.info.origin {
			return nil, fmt.Errorf("%w: all entries up to %d are gone", ErrEmptied, f.info.Last)
		}
		f.state = checkpoint.NewState()
		f.state.Seq = f.info.Last
		return f, nil
	}
	if err := l.loadBase(ctx, f); err != nil {
		return nil, err
	}
	foreign := f.state.Foreign
	if err := l.applyRest(ctx, f); err != nil {
		return f, err
	}
	if n := f.state.Foreign - foreign; n > 0 && l.numberChanged("foreign", n) {
		l.log.Warn("log holds messages that are not entries of its chain", zap.Uint64("messages", n))
	}
	return f, nil
}

// applyRest applies everything after the snapshot, up to what the leader held when the fold began.
// When a consumer has no more to deliver, that need not be the end of the log: its replica may lag
// behind the leader, and then another consumer goes on.
func (l *Log) applyRest(ctx context.Context, f *folded) error {
	for pause := conn.LeastPause; f.state.Seq < f.info.Last; pause = min(2*pause, conn.MostPause) {
		before := f.state.Seq
		if err := l.applyDelivered(ctx, f); err != nil {
			return err
		}
		if f.state.Seq >= f.info.Last {
			break
		}
		next, err := l.q.conn.Next(ctx, l.name, f.state.Seq+1)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			if tryAgain, err := l.noteMissingTail(ctx, f); err != nil {
				return err
			} else if !tryAgain {
				break
			}
		} else if err != nil {
			return err
		} else {
			l.log.Debug("a replica behind the leader was read, reading on elsewhere",
				zap.Uint64("read", f.state.Seq), zap.Uint64("stored", next.Sequence))
		}
		if f.state.Seq > before {
			pause = conn.LeastPause
		}
		if err := failure.Pause(ctx, pause); err != nil {
			return err
		}
	}
	if err := l.verifyNewest(ctx, f); err != nil || f.damage == nil {
		return err
	}
	// Rule 8: entries that cannot be read are never skipped silently.
	f.damage.Last, f.damage.Until = f.info.Last, f.info.Now
	if f.state.Epoch == 0 {
		f.damage.Hint = hintNoSnapshot
	}
	return f.damage
}

// noteMissingTail records that the log's last sequence numbers have no messages: the next append
// gets a number after them. It returns true when another copy may have the messages, so that the
// fold goes on.
func (l *Log) noteMissingTail(ctx context.Context, f *folded) (bool, error) {
	lost, err := l.tailDeleted(ctx, f.state.Seq+1)
	if err != nil {
		return false, err
	}
	if !lost && f.damage == nil && f.copies.tryAnother(f.state.Seq, f.info.copies) {
		l.logBadCopy(f.state.Seq + 1)
		return true, nil
	}
	if lost {
		l.log.Error("log lost its newest entries, going on from what is stored: the source is read again from there",
			zap.Uint64("from", f.state.Seq+1), zap.Uint64("to", f.info.Last))
	} else {
		f.noteDamage(conn.Message{Seq: f.info.Last + 1})
	}
	f.state.Seq, f.lastID = f.info.Last, ""
	return false, nil
}

// applyDelivered applies what one consumer delivers after the state, until it has no more or the
// fold is complete.
func (l *Log) applyDelivered(ctx context.Context, f *folded) error {
	c, err := l.consume(ctx, f.state.Seq+1)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	for c.Pending() > 0 && f.state.Seq < f.info.Last {
		m, err := c.Next(ctx, l.q.opts.IdleCheck)
		if conn.Transient(err) && ctx.Err() == nil {
			return nil
		}
		if err != nil {
			return err
		}
		if m.Seq <= f.state.Seq {
			continue
		}
		if m.Seq != f.state.Seq+1 && f.damage == nil && !continues(&f.state.Chain, m.Data) {
			damage := (*DamageError)(nil)
			if err := l.explainMissing(ctx, f.state.Seq+1, m.Seq); !errors.As(err, &damage) {
				return err // nil when the leader holds the missing entry: the next consumer reads it
			}
			if f.copies.tryAnother(f.state.Seq, f.info.copies) {
				l.logBadCopy(f.state.Seq + 1)
				return nil
			}
			f.noteDamage(m)
		}
		if err := f.apply(m); err != nil {
			return err
		}
	}
	return nil
}

// apply applies the next message to the state. After damage, messages have no effect until an entry
// continues the chain from before the damage.
func (f *folded) apply(m conn.Message) error {
	unknown := f.state.Hash == (checkpoint.Hash{})
	e, err := f.state.Apply(m.Seq, m.Data)
	if err != nil {
		return err
	}
	f.noteMessage(m, e)
	f.newest, f.newestHash = m.Seq, checkpoint.HashOf(m.Data)
	switch {
	case e != nil:
		f.storedAt, f.damage = m.Stored, nil
	case f.damage == nil && unknown && isEntry(m.Data):
		f.damage = &DamageError{From: f.info.First, To: m.Seq - 1, Hint: hintNoSnapshot}
	}
	return nil
}

// verifyNewest checks that the newest message that was read is the one that the leader holds at its
// sequence. With that the whole state is the leader's, because each entry carries the hash of the
// one before. Rule 2: an entry appended behind another predecessor than its writer expects would
// fork the log.
func (l *Log) verifyNewest(ctx context.Context, f *folded) error {
	if f.newest == 0 {
		return nil
	}
	f.connection = l.q.conn.Connections.Load()
	m, err := l.message(ctx, f.newest)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return l.explainNewestGone(ctx, f)
	case err != nil:
		return err
	case checkpoint.HashOf(m.Data) != f.newestHash:
		return fmt.Errorf("%w: the leader holds another entry %d than was read", errLogChanged, f.newest)
	}
	return nil
}

// explainNewestGone returns why the leader does not have the newest message that was read: it was
// trimmed (errLogChanged), or only another copy has it (*DamageError).
func (l *Log) explainNewestGone(ctx context.Context, f *folded) error {
	now, err := l.Info(ctx)
	switch {
	case err != nil:
		return err
	case now.First > f.newest || now.Last < f.newest:
		return fmt.Errorf("%w: entry %d is not there any more", errLogChanged, f.newest)
	}
	return &DamageError{From: f.newest, To: f.newest, Last: now.Last, Since: f.storedAt, Until: now.Now, Hint: hintResume}
}

// loadBase sets the state to fold on: the state of the last complete snapshot, or the empty one in
// a log that was never trimmed.
func (l *Log) loadBase(ctx context.Context, f *folded) error {
	var below uint64
	info := f.info
	m, err := l.newest(ctx, l.subject.Snapshot)
	for ; err == nil; m, err = l.snapshotBefore(ctx, info, below) {
		if s, err := l.restore(ctx, info, m); err == nil {
			f.state, f.newest, f.newestHash, f.storedAt = s, m.Sequence, checkpoint.HashOf(m.Data), m.Time
			return nil
		} else if newer := (*checkpoint.NewerFormatError)(nil); errors.As(err, &newer) || conn.Transient(err) {
			return err
		} else {
			l.log.Info("snapshot cannot be used, trying the one before", zap.Uint64("seq", m.Sequence), zap.Error(err))
		}
		below = m.Sequence
	}
	if !errors.Is(err, jetstream.ErrMsgNotFound) {
		return fmt.Errorf("find snapshot: %w", err)
	}
	now, err := l.Info(ctx)
	if err != nil {
		return err
	}
	if now.First != info.First { // the snapshots were trimmed during the search
		return fmt.Errorf("%w: trimmed up to %d", errLogChanged, now.First-1)
	}
	if info.First != info.origin {
		return &DamageError{From: info.origin, To: info.First - 1, Last: info.Last, Hint: hintNoSnapshot}
	}
	f.state = checkpoint.NewState()
	f.state.Seq = info.First - 1
	return nil
}

// snapshotBefore returns the newest message on the snapshots' subject below a sequence. It reads
// all of them: it is needed only after a crash between the parts of a snapshot, or after a message
// of another program.
func (l *Log) snapshotBefore(ctx context.Context, info Info, below uint64) (*jetstream.RawStreamMsg, error) {
	var found uint64
	for from := info.First; from < below; {
		m, err := l.q.conn.GetMessage(ctx, l.name, conn.MessageRequest{Seq: from, NextFor: l.subject.Snapshot})
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
		if m.Sequence >= below {
			break
		}
		found, from = m.Sequence, m.Sequence+1
	}
	if found == 0 {
		return nil, jetstream.ErrMsgNotFound
	}
	return l.message(ctx, found)
}

// restore rebuilds the state of the snapshot that ends with part m. It returns an error when the
// snapshot is incomplete, or does not follow from what is stored before it.
func (l *Log) restore(ctx context.Context, info Info, m *jetstream.RawStreamMsg) (*checkpoint.State, error) {
	e, err := checkpoint.Decode(m.Data)
	if err != nil {
		return nil, err
	}
	b, ok := e.Body.(*checkpoint.Snapshot)
	if !ok || b.Part != b.Parts-1 || b.Part < 0 || m.Sequence < info.First+uint64(b.Part) {
		return nil, errors.New("snapshot is incomplete")
	}
	first := m.Sequence - uint64(b.Part)
	if b.Part > 0 && b.First != first {
		return nil, errors.New("snapshot is interrupted")
	}
	parts := make([][]byte, b.Parts)
	parts[b.Part] = m.Data
	for i := range b.Part {
		part, err := l.message(ctx, first+uint64(i))
		if err != nil {
			return nil, fmt.Errorf("read snapshot: %w", err)
		}
		parts[i] = part.Data
	}
	s, err := checkpoint.Restore(first, parts)
	if err != nil {
		return nil, err
	}
	return s, l.verifyPredecessor(ctx, info, first, s.Hash, &s.Chain)
}

// verifyPredecessor returns ErrChain unless checkpoint.Predecessor finds that the entry before
// sequence first has the hash want.
func (l *Log) verifyPredecessor(
	ctx context.Context, info Info, first uint64, want checkpoint.Hash, chain *checkpoint.Chain,
) error {
	ok, err := checkpoint.Predecessor(info.First, first, want, chain, func(seq uint64) ([]byte, error) {
		m, err := l.message(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read predecessor: %w", err)
		}
		return m.Data, nil
	})
	if err == nil && !ok {
		err = fmt.Errorf("%w: no entry before %d has the hash of its predecessor", ErrChain, first)
	}
	return err
}
