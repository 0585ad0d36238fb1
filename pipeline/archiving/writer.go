package archiving

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tailrace-cdc/replicator/queue/journal"
	"github.com/tailrace-cdc/replicator/sink/archive"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
)

// writer appends to the archive's stream, and folds what it has appended. It is safe for concurrent
// use. After an error of an append nothing more is appended: what is stored is unknown (Rule 4),
// and the next life folds it again.
type writer struct {
	journal *journal.Journal

	mu      sync.Mutex // covers what follows
	state   *ledger.State
	end     journal.End
	err     error         // of the append that failed
	info    journal.Info  // when it was last asked for
	added   uint64        // bytes since then
	changed chan struct{} // closed with the next entry
	failed  chan struct{} // closed with err
}

func newWriter(j *journal.Journal, s *ledger.State, end journal.End, info journal.Info) *writer {
	return &writer{journal: j, state: s, end: end, info: info, changed: make(chan struct{}), failed: make(chan struct{})}
}

// append stores an entry. It returns journal.ErrFull when nothing was stored.
func (w *writer) append(ctx context.Context, body any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.appendLocked(ctx, body, nil)
}

func (w *writer) appendLocked(ctx context.Context, body any, data []byte) error {
	if w.err != nil {
		return w.err
	}
	msg, err := ledger.Encode(body, w.state.Hash, data)
	if err != nil {
		return err
	}
	_, snapshot := body.(*ledger.Snapshot)
	end, err := w.journal.Append(ctx, w.end, snapshot, msg)
	if errors.Is(err, journal.ErrFull) && !hasEvents(body) {
		// Without this entry nothing would ever be trimmed, so that the stream would stay full.
		// Events have to wait.
		if err = w.journal.SetLimit(ctx); err == nil {
			end, err = w.journal.Append(ctx, w.end, snapshot, msg)
		}
	}
	if errors.Is(err, journal.ErrFull) {
		return err // nothing was stored
	}
	if err != nil {
		return w.fail(fmt.Errorf("%w: %w", errDoubt, err))
	}
	w.added += uint64(len(msg))
	w.end = end
	if _, err := w.state.Apply(end.Last, msg); err != nil {
		return w.fail(err)
	}
	close(w.changed)
	w.changed = make(chan struct{})
	return nil
}

// hasEvents reports whether an entry holds events.
func hasEvents(body any) bool {
	b, ok := body.(*ledger.Events)
	return ok && len(b.Groups) > 0
}

// fail ends the use of the writer. The caller holds mu.
func (w *writer) fail(err error) error {
	w.err = err
	close(w.failed)
	return err
}

// wait blocks until an append fails or ctx ends.
func (w *writer) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-w.failed:
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.err
	}
}

// errDoubt means that it is unknown what the stream holds.
var errDoubt = fmt.Errorf("%w: the end of its stream is unknown", archive.ErrAway)

// view calls f with the state, which f must not keep. It returns a channel that is closed by the
// next entry.
func (w *writer) view(f func(*ledger.State)) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(w.state)
	return w.changed
}

const (
	// holdAt is how full the stream may be with events: the rest is for intents, progress and
	// snapshots, without which it could not be trimmed.
	holdAt = 0.8
	// lookEvery is after how many bytes the stream's size is asked for.
	lookEvery = 8 << 20
	// snapshotEvery is after how many bytes of entries a snapshot is appended.
	snapshotEvery = 16 << 20
)

// fraction returns how full the stream is; with look set it reads that from the server in any case.
func (w *writer) fraction(ctx context.Context, look bool) (float64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if look || w.added >= uint64(share(w.info, lookEvery, 16)) {
		w.mu.Unlock()
		info, err := w.journal.Info(ctx)
		w.mu.Lock()
		if err != nil {
			return 0, err
		}
		w.info, w.added = info, 0
	}
	return w.fractionLocked(), nil
}

// fractionLocked is fraction without a look. The caller holds mu.
func (w *writer) fractionLocked() float64 {
	info := w.info
	info.Bytes += w.added
	return info.Fraction()
}

// share returns a number of bytes, or less where the stream has a low limit: it is full before that
// much has come.
func share(info journal.Info, bytes int64, parts uint64) int64 {
	if info.MaxBytes == 0 {
		return bytes
	}
	return min(bytes, int64(info.MaxBytes/parts))
}

// maintain appends a snapshot where one is due, and trims what is no longer needed.
func (w *writer) maintain(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.state
	// Entries of finished objects lie behind one that is needed: they go only when a snapshot
	// replaces that one.
	behind := s.Needed() == s.SnapshotFirst
	every := share(w.info, snapshotEvery, 8)
	if s.BytesSince >= every || behind && s.BytesSince >= every/4 || s.SnapshotFirst == 0 && s.Seq > 0 {
		if err := w.snapshot(ctx); err != nil {
			return err
		}
	}
	needed := s.Needed()
	if needed <= w.info.First {
		return nil
	}
	if err := w.journal.Trim(ctx, needed); err != nil {
		return err
	}
	info, err := w.journal.Info(ctx)
	if err == nil {
		w.info, w.added = info, 0
	}
	return err
}

// snapshot appends the state. The caller holds mu, so its parts follow each other.
func (w *writer) snapshot(ctx context.Context) error {
	parts, err := w.state.SnapshotParts(min(w.journal.MaxMessage()/2, 1<<20))
	if err != nil {
		return err
	}
	first := w.end.Last + 1
	for n, part := range parts {
		if err := w.appendLocked(ctx, &ledger.Snapshot{Part: n, Parts: len(parts), First: first}, part); err != nil {
			return fmt.Errorf("append snapshot: %w", err)
		}
	}
	return nil
}
