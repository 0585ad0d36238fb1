package queue

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue/frame"
)

// encoded is an entry in its stored form. It was decoded again, so that the state takes what is
// stored, and hashed.
type encoded struct {
	kind checkpoint.Kind
	read checkpoint.Message
	buf  *[]byte
}

func (e *encoded) msg() []byte { return *e.buf }

func (e *encoded) recycle() { frame.Recycle(e.buf) }

// encode makes the stored form of an entry behind a predecessor.
func (w *Writer) encode(body any, data []byte, prev checkpoint.Hash) (*encoded, error) {
	e := &checkpoint.Entry{
		Kind: checkpoint.KindOf(body), Epoch: w.epoch, Nonce: w.nonce, Prev: prev, Body: body, Data: data,
	}
	if e.Kind == 0 {
		return nil, fmt.Errorf("%T is not the body of an entry", body)
	}
	buf := frame.Buffer(len(data) + 4096)
	msg, err := checkpoint.Encode(*buf, e)
	if err != nil {
		frame.Recycle(buf)
		return nil, err
	}
	*buf = msg
	return &encoded{kind: e.Kind, read: checkpoint.ReadMessage(msg), buf: buf}, nil
}

// ahead is a frame that was encoded while the entry before it was being stored.
type ahead struct {
	body  *checkpoint.Frame
	prev  checkpoint.Hash // of the entry before it
	entry *encoded
}

// encodeAhead encodes a frame that is to follow the entry with this hash, whose acknowledgement is
// awaited. An error is left to the append.
func (w *Writer) encodeAhead(f *frame.Packed, prev checkpoint.Hash) {
	w.dropAhead()
	if e, err := w.encode(f.Body, f.Data, prev); err == nil {
		w.ahead = &ahead{f.Body, prev, e}
	}
}

func (w *Writer) dropAhead() {
	if w.ahead != nil {
		w.ahead.entry.recycle()
		w.ahead = nil
	}
}

// setUnknown records that nothing may be appended before Recover.
//
// Rule 4: what was encoded ahead assumes that the entry before it is stored, and is dropped.
func (w *Writer) setUnknown(err error) {
	w.unknown = err
	w.dropAhead()
}

// take returns the stored form of the next entry: the one that was encoded ahead if it continues the
// log, or else another one.
//
// Rule 2: beats, marks and snapshots may have come between the frame and the entry that it was
// encoded behind. Readers ignore an entry that names another predecessor.
func (w *Writer) take(body any, data []byte) (*encoded, error) {
	prev := w.folded.state.Hash
	if a := w.ahead; a != nil && any(a.body) == body && a.prev == prev {
		w.ahead = nil
		return a.entry, nil
	}
	w.dropAhead()
	return w.encode(body, data, prev)
}

// appendWithSnapshot appends an entry, and a snapshot if one is due then. It calls meanwhile while
// the entry is being stored, and snapshotting while the last part of the snapshot is; both may be
// nil.
func (w *Writer) appendWithSnapshot(
	ctx context.Context, body any, data []byte, meanwhile, snapshotting during,
) (seq uint64, err error) {
	if err := w.checkUsable(ctx); err != nil {
		return 0, err
	}
	if _, frame := body.(*checkpoint.Frame); frame {
		if err := w.checkRoom(checkpoint.KindFrame, 0); err != nil {
			return 0, err
		}
	}
	if seq, err = w.appendDuring(ctx, body, data, meanwhile); err != nil {
		return 0, err
	}
	if w.folded.state.SnapshotDue(w.folded.snapshot) {
		// The entry is stored even if the snapshot fails. If its outcome is unknown, the next
		// append returns that error.
		if err := w.snapshotDuring(ctx, false, snapshotting); err != nil && !errors.Is(err, ErrFull) {
			w.l.log.Warn("snapshot not stored, trying again later", zap.Error(err))
		}
	}
	return seq, nil
}

// during is what append calls while the server stores an entry; acked is closed once it has
// answered. The calls have ended when append returns.
type during func(e *encoded, acked <-chan struct{})

// publishDuring is publish of an entry behind the newest one. One append is in flight at a time:
// what runs meanwhile only makes the next entry ready.
func (w *Writer) publishDuring(ctx context.Context, e *encoded, id string, meanwhile during) (seq uint64, err error) {
	last, lastID := w.folded.state.Seq, w.folded.lastID
	w.sending.Store(true)
	if meanwhile == nil {
		defer w.sending.Store(false)
		return w.l.publish(ctx, e.kind, e.msg(), last, lastID, id)
	}
	var g errgroup.Group
	acked := make(chan struct{})
	g.Go(func() (err error) {
		defer close(acked)
		defer w.sending.Store(false)
		seq, err = w.l.publish(ctx, e.kind, e.msg(), last, lastID, id)
		return err
	})
	meanwhile(e, acked)
	err = g.Wait()
	return seq, err
}

// AppendFrame is Append of a frame that was packed. While the server stores it, AppendFrame calls next
// once in the caller's goroutine. next returns the frame that will follow; nil: none is known. That
// frame is encoded and hashed before the acknowledgement comes, so its body and data must not change
// any more. If another entry is appended first, the frame is encoded again. After an unknown outcome
// it is dropped. acked is closed when the server has answered. next may be nil.
func (w *Writer) AppendFrame(
	ctx context.Context, f *frame.Packed, next func(acked <-chan struct{}) *frame.Packed,
) (seq uint64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if next == nil {
		return w.appendWithSnapshot(ctx, f.Body, f.Data, nil, nil)
	}
	var following *frame.Packed
	meanwhile := func(e *encoded, acked <-chan struct{}) {
		following = next(acked)
		// A snapshot comes between them, and its hash is known only later.
		if following != nil && !w.folded.state.SnapshotDueAfter(len(e.msg()), w.folded.snapshot) {
			w.encodeAhead(following, e.read.Hash())
		}
	}
	snapshotting := func(e *encoded, _ <-chan struct{}) {
		if following != nil {
			w.encodeAhead(following, e.read.Hash())
		}
	}
	return w.appendWithSnapshot(ctx, f.Body, f.Data, meanwhile, snapshotting)
}
