package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue/conn"
)

const (
	maxPart    = 1 << 20 // bytes of a part of a snapshot
	perMessage = 256     // estimated bytes that the store adds to an entry
)

// Writer appends to a log, from its claim until the claim is lost or released. Its methods may be
// called by several goroutines; appends run one at a time.
type Writer struct {
	l     *Log
	ttl   time.Duration
	owner string
	epoch uint64
	nonce checkpoint.Nonce

	mu         sync.Mutex
	folded     *folded   // the state as of the last acknowledged append
	unknown    error     // why nothing may be appended before Recover; nil = appends are allowed
	ended      error     // why nothing may be appended ever again; nil = appends are allowed
	ahead      *ahead    // the frame that probably follows; nil = none is ready
	lastAcked  uint64    // sequence of the last own entry of this epoch
	lastReport time.Time // when the last frame or beat was appended

	lastSent atomic.Pointer[time.Time] // when the last acknowledged append was sent; never nil
	lastSeq  atomic.Uint64             // its sequence, or that of the log's end at the claim
	acked    atomic.Pointer[protocol.LogNote]
	sending  atomic.Bool   // an entry was sent and not acknowledged yet
	changes  atomic.Uint64 // the last entry with changes
}

// State returns the state as of the last acknowledged append or Recover. The next append changes
// it, and Recover replaces it: only the goroutine that appends may read it.
func (w *Writer) State() *checkpoint.State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.folded.state
}

// Epoch returns the number of this claim.
func (w *Writer) Epoch() uint64 { return w.epoch }

// Log returns the log that the writer appends to.
func (w *Writer) Log() *Log { return w.l }

// checkUsable returns why no append can be tried: the claim is lost, the outcome of an earlier
// append is unknown, or ctx has ended.
func (w *Writer) checkUsable(ctx context.Context) error {
	if w.ended != nil {
		return w.ended
	}
	if w.unknown == nil && w.folded.connection != w.l.q.conn.Connections.Load() {
		w.setUnknown(errors.New("the connection was lost in between"))
	}
	if w.unknown != nil {
		return fmt.Errorf("append to log of %s: %w: %w", w.l.table, ErrOutcomeUnknown, w.unknown)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("append to log of %s: %w", w.l.table, context.Cause(ctx))
	}
	return nil
}

// append sends one entry and folds it once it is acknowledged.
func (w *Writer) append(ctx context.Context, body any, data []byte) (uint64, error) {
	return w.appendDuring(ctx, body, data, nil)
}

// appendDuring is append, and calls meanwhile while the server stores the entry.
func (w *Writer) appendDuring(ctx context.Context, body any, data []byte, meanwhile during) (uint64, error) {
	// A stored entry cannot be taken back, and after one that contradicts the log no fold would
	// succeed.
	if err := w.folded.state.CheckNext(body); err != nil {
		return 0, fmt.Errorf("append to log of %s: %w", w.l.table, err)
	}
	e, err := w.take(body, data)
	if err != nil {
		return 0, fmt.Errorf("append to log of %s: %w", w.l.table, err)
	}
	defer e.recycle()
	if !mustFit(e.kind) && e.kind != checkpoint.KindFrame {
		if err := w.checkRoom(e.kind, len(e.msg())+perMessage); err != nil {
			return 0, err
		}
	}
	sent, id := time.Now(), w.l.q.messageID(w.nonce)
	seq, err := w.publishDuring(ctx, e, id, meanwhile)
	if conn.OutcomeOf(err) == conn.Full && mustFit(e.kind) {
		// Without the entries that allow trimming, the log would stay full for ever.
		w.l.raiseLimit(ctx, w.folded.info.Bytes, w.folded.snapshot)
		sent, id = time.Now(), w.l.q.messageID(w.nonce)
		seq, err = w.publishDuring(ctx, e, id, nil)
	}
	if err == nil && w.folded.connection != w.l.q.conn.Connections.Load() {
		err = errors.New("the connection was lost in between")
	}
	if err != nil {
		return 0, w.publishError(e.kind, err)
	}
	return seq, w.applyAcknowledged(seq, e, id, sent)
}

// publishError turns the error of a publish into the error of Append. When the outcome is unknown
// it also records that, so that nothing is appended before Recover.
func (w *Writer) publishError(kind checkpoint.Kind, err error) error {
	m := w.l.metrics
	var what error
	switch conn.OutcomeOf(err) {
	case conn.Full:
		what = ErrFull
		m.m.refused.WithLabelValues(w.l.table, "full").Inc()
	case conn.TooLarge:
		what = ErrTooLarge
		m.m.refused.WithLabelValues(w.l.table, "size").Inc()
	case conn.Fenced:
		// Rule 2: another message came first. The fold shows which one.
		what = ErrOutcomeUnknown
		w.setUnknown(err)
		m.fenced.Inc()
	default:
		what = ErrOutcomeUnknown
		w.setUnknown(err)
		m.outcomeUnknown.Inc()
	}
	return fmt.Errorf("append %s to log of %s: %w: %w", kind, w.l.table, what, err)
}

// applyAcknowledged applies an entry that the server has stored to the state.
func (w *Writer) applyAcknowledged(seq uint64, sentEntry *encoded, id string, sent time.Time) error {
	msg := sentEntry.msg()
	e, err := w.folded.state.ApplyMessage(seq, sentEntry.read)
	if err != nil {
		w.ended = fmt.Errorf("append to log of %s: %w", w.l.table, err)
		return w.ended
	}
	if e == nil {
		w.setUnknown(errors.New("the entry was stored and is not part of the chain"))
		return fmt.Errorf("append to log of %s: %w: %w", w.l.table, ErrOutcomeUnknown, w.unknown)
	}
	w.folded.noteMessage(conn.Message{Data: msg, ID: id}, e)
	w.l.tail.note(seq, len(msg), time.Now())
	w.folded.info.Last = seq
	w.folded.info.Bytes += uint64(len(msg)) + perMessage
	w.lastAcked = seq
	w.lastSent.Store(&sent)
	w.lastSeq.Store(seq)
	w.changes.Store(w.folded.state.LastFrame)
	w.acked.Store(&protocol.LogNote{Created: w.l.created, Seq: seq, Hash: w.folded.state.Hash})
	switch e.Kind {
	case checkpoint.KindFrame, checkpoint.KindBeat:
		w.lastReport = sent
	case checkpoint.KindSnapshot:
		w.l.metrics.snapshot.Set(float64(w.folded.snapshot))
	}
	return nil
}

// Upgrade raises a log of an older format to a newer one, by appending a snapshot. From then on
// builds that cannot read that format refuse the log: call it only when none of them runs any more.
// It returns the errors of Append.
func (w *Writer) Upgrade(ctx context.Context, to int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.checkUsable(ctx); err != nil {
		return err
	}
	was := w.folded.state.Format
	if was >= to {
		return nil
	}
	parts, err := w.folded.state.UpgradeSnapshot(to, w.partSize())
	if err == nil {
		err = w.appendParts(ctx, parts, nil)
	}
	if err != nil {
		return fmt.Errorf("upgrade log of %s: %w", w.l.table, err)
	}
	w.l.log.Info("log upgraded", zap.Int("from_format", was), zap.Int("format", to))
	return nil
}

// partSize returns the most bytes of a part of a snapshot.
func (w *Writer) partSize() int { return min(maxPart, w.l.q.conn.MaxMessage()-4096) }

// snapshot appends the whole state. ErrFull when the log has no room for it. With needed, because
// nothing can be trimmed without this snapshot, it may also use the room that is reserved for marks
// and claims.
func (w *Writer) snapshot(ctx context.Context, needed bool) error {
	return w.snapshotDuring(ctx, needed, nil)
}

// snapshotDuring is snapshot, and calls meanwhile while the server stores the last part.
func (w *Writer) snapshotDuring(ctx context.Context, needed bool, meanwhile during) error {
	if !needed && w.checkRoom(checkpoint.KindSnapshot, w.folded.snapshot) != nil {
		return ErrFull // checked here too, to save the encoding
	}
	parts, err := w.folded.state.Snapshot(w.partSize())
	if err != nil {
		return err
	}
	size := 0
	for _, p := range parts {
		size += len(p.Data) + perMessage
	}
	if !needed {
		if err := w.checkRoom(checkpoint.KindSnapshot, size); err != nil {
			return err
		}
	}
	return w.appendParts(ctx, parts, meanwhile)
}

// appendParts appends the parts of a snapshot. If another message comes between them, the server
// refuses the next part, and the snapshot is abandoned.
func (w *Writer) appendParts(ctx context.Context, parts []checkpoint.SnapshotPart, meanwhile during) error {
	first := w.folded.state.Seq + 1
	for i, p := range parts {
		if p.Body.Part > 0 {
			p.Body.First = first
		}
		last := meanwhile
		if i < len(parts)-1 {
			last = nil
		}
		if _, err := w.appendDuring(ctx, p.Body, p.Data, last); err != nil {
			return err
		}
	}
	return nil
}

// Recover reads what the log really holds, after ErrOutcomeUnknown, and retries transient errors
// until ctx ends.
//
// Rule 4: after an unknown outcome, go on from what is stored. Before the call, drop the pages and
// iterators in memory; after it, start the source's readers from the positions of the new State.
// Errors: ErrLost when another owner has claimed the log, ErrEmptied when the stream was deleted,
// re-created or emptied; nothing can be appended any more then.
func (w *Writer) Recover(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended != nil {
		return w.ended
	}
	var f *folded
	err := conn.Retry(ctx, func() (err error) {
		if err := w.l.q.checkWritable(w.l.name); err != nil {
			return err
		}
		f, err = w.l.fold(ctx)
		return err
	})
	if err != nil {
		err = fmt.Errorf("recover log of %s: %w", w.l.table, err)
		if !conn.Transient(err) && ctx.Err() == nil {
			w.ended = err
		}
		return err
	}
	if s := f.state; !s.OwnedBy(w.epoch, w.nonce) {
		w.ended = fmt.Errorf("recover log of %s: %w: epoch %d of %s after ours, %d",
			w.l.table, ErrLost, s.Epoch, s.Owner, w.epoch)
		return w.ended
	}
	if f.state.Seq < w.lastAcked {
		w.l.log.Warn("log lost acknowledged entries, going on from what is stored",
			zap.Uint64("acknowledged", w.lastAcked), zap.Uint64("stored", f.state.Seq))
	}
	// The log may have gone back, so that earlier acknowledgements prove nothing: Trim waits for
	// the next append.
	w.folded, w.unknown, w.lastAcked = f, nil, 0
	w.acked.Store(nil)
	return nil
}

// Head returns the sequence of the last entry that the writer has appended or read, and when it was
// sent. Any goroutine may call it.
func (w *Writer) Head() (seq uint64, sent time.Time) { return w.lastSeq.Load(), *w.lastSent.Load() }

// LastChanges returns the sequence of the last entry with changes. Any goroutine may call it.
func (w *Writer) LastChanges() uint64 { return w.changes.Load() }

// Sending reports whether an entry was sent and not acknowledged yet. Any goroutine may call it.
func (w *Writer) Sending() bool { return w.sending.Load() }

// Acked returns the last entry that the server has acknowledged to this writer; nil before the
// first one, and after Recover before the next one. Any goroutine may call it.
func (w *Writer) Acked() *protocol.LogNote { return w.acked.Load() }

// Release gives up the log, so that the next owner need not wait for TTL. When enough was appended
// since the last snapshot it appends another one first, so that the next owner starts fast. Nothing
// can be appended afterwards, even if Release fails: where its outcome is unknown, the next owner
// waits for TTL. Only where the server refused it because another message came first, such as an
// entry of a command, it is ErrOutcomeUnknown: Recover, and release again.
func (w *Writer) Release(ctx context.Context) error { return w.HandOver(ctx, "") }

// HandOver releases the log to one process, which alone may claim it for two seconds; "": to the
// first process that claims it.
func (w *Writer) HandOver(ctx context.Context, to string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.checkUsable(ctx); err != nil {
		return err
	}
	var err error
	if w.folded.state.BytesSinceSnapshot > int64(w.folded.snapshot/4) {
		err = w.snapshot(ctx, false)
	}
	if err == nil || errors.Is(err, ErrFull) {
		_, err = w.append(ctx, &checkpoint.Release{To: to}, nil)
	}
	if conn.OutcomeOf(err) == conn.Fenced {
		return err
	}
	w.ended = fmt.Errorf("append to log of %s: %w: it was released", w.l.table, ErrLost)
	return err
}

// BeatDueIn returns the time until the next beat is due: TTL/3 after the last frame or beat. Marks
// do not count: they carry no progress of the source. Zero or less means now.
func (w *Writer) BeatDueIn() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Until(w.lastReport.Add(w.ttl / 3))
}

// ClaimValid reports whether no other process can have claimed the log yet, by when the last
// acknowledged append was sent (protocol.MayWrite). While it is false, the owner writes nothing to
// Bigtable until an append succeeds. No other process can claim a log of the embedded server.
//
// It never waits, also not for an append: every write to Bigtable calls it.
func (w *Writer) ClaimValid() bool {
	if w.l.q.embedded != nil {
		return true
	}
	sent, now := w.silence()
	return protocol.MayWrite(w.ttl, sent, now)
}

// silence returns since when the writer is silent, which is when the last acknowledged append was
// sent, and what time it is.
func (w *Writer) silence() (sent, now protocol.Instant) {
	at := *w.lastSent.Load()
	return protocol.InstantOf(at, at), protocol.InstantOf(time.Now(), at)
}
