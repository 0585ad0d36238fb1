package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// folded is a state together with what it was read from.
type folded struct {
	state      *checkpoint.State
	info       Info
	lastID     string // message id of the newest message, "" when it has none
	snapshot   int    // size of the last snapshot
	connection uint64 // the state is in doubt under another one
}

// note keeps what the state does not know of a message.
func (f *folded) note(m message, e *checkpoint.Entry) {
	f.lastID = m.id
	if e == nil {
		return
	}
	if b, ok := e.Body.(*checkpoint.Snapshot); ok {
		if b.Part == 0 {
			f.snapshot = 0
		}
		f.snapshot += len(m.data)
	}
}

// Fold returns the state that the log adds up to now: the last complete snapshot and what follows it. Errors:
// ErrEmptied, ErrGap, *checkpoint.CorruptError, *checkpoint.NewerFormatError; others may pass.
func (l *Log) Fold(ctx context.Context) (*checkpoint.State, error) {
	f, err := l.fold(ctx)
	if err != nil {
		return nil, err
	}
	return f.state, nil
}

func (l *Log) fold(ctx context.Context) (*folded, error) {
	f := &folded{connection: l.q.connection.Load()}
	var err error
	if f.info, err = l.Info(ctx); err != nil {
		return nil, err
	}
	if f.info.empty() {
		if f.info.Last >= f.info.origin {
			return nil, fmt.Errorf("fold log of %s: %w: no entry left of those up to %d", l.table, ErrEmptied, f.info.Last)
		}
		f.state = checkpoint.NewState()
		f.state.Seq = f.info.Last
		return f, nil
	}
	if f.state, err = l.base(ctx, f.info); err != nil {
		return nil, fmt.Errorf("fold log of %s: %w", l.table, err)
	}
	foreign := f.state.Foreign
	if err := l.follow(ctx, f); err != nil {
		return nil, fmt.Errorf("fold log of %s: %w", l.table, err)
	}
	if n := f.state.Foreign - foreign; n > 0 {
		l.log.Warn("log holds messages that are no entries of its chain", zap.Uint64("messages", n))
	}
	return f, nil
}

// follow applies everything after the base, up to the newest message.
func (l *Log) follow(ctx context.Context, f *folded) error {
	c, err := l.cursor(ctx, f.state.Seq+1)
	if err != nil {
		return err
	}
	defer c.close(ctx)
	for idle := 0; c.pending > 0 && f.state.Seq < f.info.Last; {
		m, err := c.next(ctx, l.q.opts.IdleCheck)
		if errors.Is(err, errIdle) && idle < 2 {
			idle++
			continue
		}
		if err != nil {
			return err
		}
		if err := l.contiguous(f.state, m); err != nil {
			return err
		}
		before := f.state.Hash
		e, err := f.state.Apply(m.seq, m.data)
		if err != nil {
			return err
		}
		f.note(m, e)
		if e == nil && before == (checkpoint.Hash{}) && isEntry(m.data) {
			return fmt.Errorf("%w: what preceded entry %d", ErrGap, m.seq)
		}
		if c.pending = m.pending; m.pending == 0 {
			break
		}
	}
	// A tail that the store lost leaves numbers without messages: the next append gets a number after them.
	if f.state.Seq < f.info.Last {
		f.state.Seq, f.lastID = f.info.Last, ""
	}
	return nil
}

// contiguous asserts that nothing is missing between the state and m. A jump in the numbers over which the
// chain holds lost nothing of ours.
func (l *Log) contiguous(s *checkpoint.State, m message) error {
	if m.seq == s.Seq+1 {
		return nil
	}
	if e, err := checkpoint.Decode(m.data); err == nil && e.Prev == s.Hash {
		l.log.Warn("log skips numbers, its chain is whole", zap.Uint64("from", s.Seq+1), zap.Uint64("to", m.seq-1))
		return nil
	}
	return fmt.Errorf("%w: from %d to %d", ErrGap, s.Seq+1, m.seq-1)
}

func isEntry(msg []byte) bool {
	_, err := checkpoint.Decode(msg)
	return err == nil
}

// base returns the state to fold on: that of the last complete snapshot, or the empty one in a log that was
// never trimmed.
func (l *Log) base(ctx context.Context, info Info) (*checkpoint.State, error) {
	var below uint64
	m, err := l.newest(ctx, l.stream, l.subject.snapshot)
	for ; err == nil; m, err = l.snapshotBefore(ctx, info, below) {
		if s, err := l.restore(ctx, info, m); err == nil {
			return s, nil
		} else if newer := (*checkpoint.NewerFormatError)(nil); errors.As(err, &newer) || Transient(err) {
			return nil, err
		} else {
			l.log.Info("snapshot is of no use, trying the one before", zap.Uint64("seq", m.Sequence), zap.Error(err))
		}
		below = m.Sequence
	}
	if !errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, fmt.Errorf("find snapshot: %w", err)
	}
	if info.First != info.origin {
		return nil, fmt.Errorf("%w: no snapshot, and the log begins at %d instead of %d", ErrGap, info.First, info.origin)
	}
	s := checkpoint.NewState()
	s.Seq = info.First - 1
	return s, nil
}

// snapshotBefore finds the newest message on the snapshots' subject below a sequence. It walks all of them:
// only a crash between the parts of a snapshot, or a foreign message, brings us here.
func (l *Log) snapshotBefore(ctx context.Context, info Info, below uint64) (*jetstream.RawStreamMsg, error) {
	var found uint64
	for from := info.First; from < below; {
		m, err := l.message(ctx, from, jetstream.WithGetMsgSubject(l.subject.snapshot))
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

// restore rebuilds the state of the snapshot whose last part is m, and refuses one that does not follow from
// what is stored before it.
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
	return s, l.follows(ctx, info, first, s.Hash)
}

// maxStrays is how many foreign messages in a row may lie between an entry and its predecessor.
const maxStrays = 16

// follows checks that the entry before sequence first has this hash, as far as it is still stored.
func (l *Log) follows(ctx context.Context, info Info, first uint64, want checkpoint.Hash) error {
	for seq := first - 1; seq+maxStrays >= first; seq-- {
		if seq < info.First {
			return nil // trimmed
		}
		m, err := l.message(ctx, seq)
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return fmt.Errorf("read predecessor: %w", err)
		}
		if err == nil && checkpoint.HashOf(m.Data) == want {
			return nil
		}
		if err == nil && seq == info.First && isEntry(m.Data) {
			break // an entry, but of another history
		}
	}
	return fmt.Errorf("%w: no entry before %d has the hash of its predecessor", ErrChain, first)
}

// retry repeats f while its error may pass, until ctx ends.
func retry(ctx context.Context, f func() error) error {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := f()
		if err == nil || !Transient(err) || ctx.Err() != nil {
			return err
		}
		if werr := wait(ctx, pause); werr != nil {
			return errors.Join(err, werr)
		}
	}
}
