package queue

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue/frame"
)

// Append stores an entry: body is one of checkpoint's bodies, data belongs to a frame. When it returns nil the
// entry is on disk and folded into the state. Errors, for errors.Is:
//
//	ErrFull                   nothing stored: frames from 80 % of the limit on and while the disk has little room left,
//	                          beats and graphs from 90 % on. Trim, wait, append again
//	ErrTooLarge               nothing stored, and never will be
//	ErrOutcomeUnknown         no acknowledgement, or refused because another message came first. Recover before
//	                          anything else
//	ErrLost                   the log has another owner
//	*checkpoint.FormatError   nothing stored: the log has an older format, Upgrade raises it
//	*checkpoint.CorruptError  nothing stored: the entry contradicts the log, so the memory of this process differs from
//	                          what is stored. A bug: the table halts
func (w *Writer) Append(ctx context.Context, body any, data []byte) (seq uint64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.appendWithSnapshot(ctx, body, data, nil, nil)
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
