package apply

import (
	"context"
	"slices"
	"sync"
)

// ChangeMemory bounds the bytes of changes that are between the log and the sinks, over all tables.
//
// Rule 9: back-pressure is bounded in bytes: by the limit, plus one entry for each sink of each
// table. A sink that holds no entry gets its first one at once, so that a stalled sink that holds
// the whole budget stops no other sink, and an entry larger than the whole budget goes through
// alone.
type ChangeMemory struct {
	limit int64

	mu      sync.Mutex // covers what follows, and all shares
	used    int64
	waiting []*memoryShare // first come, first served
}

// NewChangeMemory returns a budget of so many bytes.
func NewChangeMemory(limit int64) *ChangeMemory { return &ChangeMemory{limit: limit} }

// memoryShare is the part of a budget that one sink of one table holds.
type memoryShare struct {
	budget  *ChangeMemory
	entries int           // that the sink holds
	want    int64         // bytes that Acquire waits for
	granted chan struct{} // closed when want was given; nil while nothing waits
}

// NewShare returns the share of one more sink.
func (b *ChangeMemory) NewShare() *memoryShare { return &memoryShare{budget: b} }

// InUse returns how many bytes the sinks hold.
func (b *ChangeMemory) InUse() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Acquire blocks until n bytes are free or the sink holds no entry, and returns the function that
// gives the bytes back. One goroutine calls Acquire; any goroutine calls the returned function,
// once.
func (s *memoryShare) Acquire(ctx context.Context, n int) (release func(), err error) {
	b := s.budget
	b.mu.Lock()
	s.want, s.granted = int64(n), make(chan struct{})
	b.waiting = append(b.waiting, s)
	b.grant()
	granted := s.granted
	b.mu.Unlock()
	select {
	case <-granted:
	case <-ctx.Done():
		b.mu.Lock()
		b.waiting = slices.DeleteFunc(b.waiting, func(x *memoryShare) bool { return x == s })
		b.mu.Unlock()
		select {
		case <-granted:
			s.release(int64(n))
		default:
		}
		return nil, context.Cause(ctx)
	}
	return func() { s.release(int64(n)) }, nil
}

func (s *memoryShare) release(n int64) {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	s.entries--
	s.budget.used -= n
	s.budget.grant()
}

// grant gives the waiting shares what is free. The mutex is held.
func (b *ChangeMemory) grant() {
	full := false
	b.waiting = slices.DeleteFunc(b.waiting, func(s *memoryShare) bool {
		fits := !full && b.used+s.want <= b.limit
		if !fits && s.entries > 0 {
			full = true // whoever came later waits too, or a large entry would wait for ever
			return false
		}
		s.entries++
		b.used += s.want
		close(s.granted)
		return true
	})
}
