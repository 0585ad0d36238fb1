package resync

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/queue/request"
)

const (
	// maxInWork is how many chunks are done at once. They share listings and proofs, so that all of
	// them take little longer than one. A chunk waiting for an answer of Bigtable about its rows
	// does not hold up the others.
	maxInWork = 16
	// slowRequest is how long a chunk may take before status shows what it waits for.
	slowRequest = 30 * time.Second
)

// RequestsStatus is how far the requests are that the owner works on.
type RequestsStatus struct {
	Chunks int       `json:"chunks"`
	Items  int       `json:"items"`
	Since  time.Time `json:"since"` // when the oldest was begun
	// Why is what the oldest waits for, if it takes longer than usual; empty otherwise.
	Why string `json:"why,omitempty"`
}

// inWork are the chunks that are being done, oldest first. It may be used by several goroutines.
type inWork struct {
	mu     sync.Mutex // covers chunks
	chunks []*chunkWork
	all    sync.WaitGroup
}

// chunkWork is a chunk that is being done.
type chunkWork struct {
	*request.Chunk
	rows  [][][]byte // by item, see named
	items *Items
	began time.Time
	slow  bool // the log says that it is slow; the goroutine of Run owns it
}

func (w *inWork) full() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.chunks) >= maxInWork
}

func (w *inWork) remove(done *chunkWork) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.chunks = slices.DeleteFunc(w.chunks, func(c *chunkWork) bool { return c == done })
}

func (w *inWork) add(c *chunkWork) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.chunks = append(w.chunks, c)
}

// Status returns how far the requests are; nil when there is none.
func (r *Requests) Status() *RequestsStatus {
	if r == nil {
		return nil
	}
	r.work.mu.Lock()
	defer r.work.mu.Unlock()
	if len(r.work.chunks) == 0 {
		return nil
	}
	oldest := r.work.chunks[0]
	st := &RequestsStatus{Chunks: len(r.work.chunks), Since: oldest.began.UTC(), Why: oldest.waits()}
	for _, c := range r.work.chunks {
		st.Items += len(c.Items)
	}
	if st.Why != "" && len(r.work.chunks) < maxInWork {
		st.Why += "; later requests are done meanwhile"
	} else if st.Why != "" {
		st.Why += fmt.Sprintf("; later requests wait for one of %d to end", maxInWork)
	}
	return st
}

// waits returns what a chunk waits for that takes longer than usual; "" for others.
func (c *chunkWork) waits() string {
	age := time.Since(c.began)
	if age < slowRequest {
		return ""
	}
	return fmt.Sprintf("request %s is not done after %s: %s", c.ID, age.Round(time.Second), c.items.waitsFor())
}

// logSlow writes a line about each chunk that has become slow.
func (r *Requests) logSlow() {
	r.work.mu.Lock()
	defer r.work.mu.Unlock()
	for _, c := range r.work.chunks {
		if why := c.waits(); why != "" && !c.slow {
			c.slow = true
			r.Logger.Warn("a request takes long", zap.String("request", c.ID), zap.String("reason", why))
		}
	}
}
