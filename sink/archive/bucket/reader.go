package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/tailrace-cdc/replicator/failure"
)

// The sizes of requests. A Parquet footer takes one request, because the end of an object is read
// as a whole. An object of 128 MB that is read in order takes some 70 requests. Columns that are
// read in parallel have a window each.
const (
	firstWindow   = 256 << 10
	largestWindow = 2 << 20
	maxWindows    = 8
)

// reader reads an object by ranges, and reads ahead.
type reader struct {
	ctx   context.Context // io.ReaderAt has none
	cloud *cloud
	name  string
	of    stored

	mu      sync.Mutex
	windows []window // the least recently used first
}

// window is a part of the object in memory.
type window struct {
	at   int64
	data []byte
}

func (w window) end() int64 { return w.at + int64(len(w.data)) }

func (r *reader) Size() int64 { return r.of.size }

func (r *reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.windows = nil
	return nil
}

func (r *reader) ReadAt(p []byte, at int64) (int, error) {
	if at < 0 {
		return 0, fmt.Errorf("read %s: negative offset", r.name)
	}
	wanted := p[:max(0, min(int64(len(p)), r.of.size-at))]
	n := 0
	for n < len(wanted) {
		m, err := r.read(wanted[n:], at+int64(n))
		if n += m; err != nil {
			return n, wrap(r.ctx, fmt.Sprintf("read %s at byte %d", r.name, at+int64(n)), err)
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// read reads at least one byte.
func (r *reader) read(p []byte, at int64) (int, error) {
	if len(p) >= largestWindow {
		return len(p), r.fetch(p, at) // reading ahead would gain nothing
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	width, replaced := int64(firstWindow), -1
	for i, w := range r.windows {
		if w.at <= at && at < w.end() {
			r.windows = append(append(r.windows[:i:i], r.windows[i+1:]...), w)
			return copy(p, w.data[at-w.at:]), nil
		}
		if w.end() <= at && at < w.end()+firstWindow { // in order, perhaps with a leap over what is not wanted
			width, replaced = min(2*int64(len(w.data)), largestWindow), i
		}
	}
	from := max(0, min(at, r.of.size-width))
	for _, w := range r.windows {
		if from < w.end() && w.end() <= at {
			from = w.end() // that much is there already
		}
	}
	next := window{from, make([]byte, min(width, r.of.size-from))}
	if err := r.fetch(next.data, from); err != nil {
		return 0, err
	}
	if replaced < 0 && len(r.windows) == maxWindows {
		replaced = 0
	}
	if replaced >= 0 {
		r.windows = append(r.windows[:replaced:replaced], r.windows[replaced+1:]...)
	}
	r.windows = append(r.windows, next)
	return copy(p, next.data[at-from:]), nil
}

// fetch reads len(p) bytes by one request, or by a few where requests fail.
func (r *reader) fetch(p []byte, at int64) error {
	return r.cloud.retryRead(r.ctx, func() error {
		ctx, cancel := r.cloud.limited(r.ctx, int64(len(p)))
		defer cancel()
		body, err := r.cloud.read(ctx, r.cloud.prefix+r.name, r.of, at, int64(len(p)))
		if err != nil {
			return r.cloud.explainObject(r.ctx, r.name, err)
		}
		_, err = io.ReadFull(body, p)
		if err = errors.Join(err, body.Close()); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return refused(failure.Transient, "", "the reply was cut off: %w", err)
		}
		return r.cloud.explain(r.ctx, err)
	})
}
