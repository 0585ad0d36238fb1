package queue

import (
	"context"
	"fmt"

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
