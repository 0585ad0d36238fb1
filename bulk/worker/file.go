package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/export"
	"github.com/tailrace-cdc/replicator/transform"
)

// inFile bounds the calls in flight for one file. Where Bigtable answers slowly, four files at once
// reach the bound of the process; an engine runs a file in each of its slots.
const inFile = 256

// Done is the result of a file.
type Done struct {
	Before bool // it had a mark already, or needs no copying
	Mark   delegation.FileMark
}

// File copies one file. It returns once every item is durable and the mark is stored, or with the
// reason why not. ErrClosed means that the order permits nothing any more: that is no failure, and
// another attempt does nothing either.
func (w *Worker) File(ctx context.Context, n int) (Done, error) {
	if !w.order.Needs(n) {
		return Done{Before: true}, nil
	}
	if err := w.lease.mayBegin(ctx); err != nil {
		return Done{}, err
	}
	var m *delegation.FileMark
	err := ask(ctx, func() (err error) {
		m, err = w.client.FileMark(ctx, w.order, n)
		return err
	})
	if err != nil {
		return Done{}, err
	}
	if m != nil {
		return Done{Before: true, Mark: *m}, nil
	}
	f := &file{w: w}
	if err := f.copy(ctx, n); err != nil {
		return Done{}, orClosed(fmt.Errorf("copy file %d: %w", n, err))
	}
	slices.Sort(f.mark.HandedBack)
	// Rule 1: every item is durable or handed back.
	err = w.client.StoreFileMark(ctx, w.order, n, f.mark, func() error { return w.lease.fresh(ctx) })
	if err != nil {
		return Done{}, orClosed(bigtable.Explain(err))
	}
	return Done{Mark: f.mark}, nil
}

// orClosed returns ErrClosed alone where an error has it inside.
func orClosed(err error) error {
	if errors.Is(err, ErrClosed) {
		return ErrClosed
	}
	return err
}

// file is one file that is being copied.
type file struct {
	w *Worker

	mu   sync.Mutex
	mark delegation.FileMark
}

// line is one line in flight.
type line struct {
	number int64
	item   []byte
}

func (f *file) copy(ctx context.Context, n int) error {
	g, ctx := errgroup.WithContext(ctx)
	fresh := func() error { return f.w.lease.fresh(ctx) }
	lines := make(chan line)
	unused := sync.Pool{New: func() any { return new([]byte) }}
	g.Go(func() error {
		defer close(lines)
		return explained(f.w.export.ReadFile(ctx, n, 0, func(l export.Line) error {
			if err := f.w.lease.mayBegin(ctx); err != nil {
				return err
			}
			if err := f.w.room.Acquire(ctx, 1); err != nil {
				return err
			}
			buf := *unused.Get().(*[]byte)
			select {
			case lines <- line{l.N, append(buf[:0], l.Item...)}:
				return nil
			case <-ctx.Done():
				f.w.room.Release(1)
				return context.Cause(ctx)
			}
		}))
	})
	for range inFile {
		g.Go(func() error {
			x := newItem(f.w)
			for l := range lines {
				r, err := x.copy(ctx, l.item, fresh)
				unused.Put(&l.item)
				f.w.room.Release(1)
				if err := f.note(&l, r, err); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// explained returns an error of reading an export with what to do.
func explained(err error) error {
	if of := (*source.Error)(nil); errors.As(err, &of) {
		return source.Explain(err)
	}
	return err
}

// note counts an item. One that the mapping or Bigtable refuses is handed back.
func (f *file) note(l *line, r written, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mark.Items++
	f.mark.Bytes += int64(len(l.item))
	f.mark.Rows += int64(r.rows)
	f.mark.Skipped += int64(r.skipped)
	if err == nil {
		return nil
	}
	if !handsBack(err) {
		return fmt.Errorf("line %d: %w", l.number, err)
	}
	if f.mark.HandedBack = append(f.mark.HandedBack, l.number); len(f.mark.HandedBack) > delegation.MostHandedBack {
		return fmt.Errorf("more than %d items are refused, the last one because: %w", delegation.MostHandedBack, err)
	}
	return nil
}

// handsBack reports whether an error is about one item alone. One that is too old is not: all the
// others are, too.
func handsBack(err error) bool {
	var refused *transform.Refusal
	var rejected *bigtable.RejectedError
	return errors.As(err, &refused) || errors.As(err, &rejected) && rejected.Code != bigtable.CodeTooOld
}
