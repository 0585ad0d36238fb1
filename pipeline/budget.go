package pipeline

import (
	"context"
	"slices"
	"sync"
)

// budget bounds the bytes of changes that are between the log and the sinks, of all tables together.
//
// Rule 9: back-pressure is bounded in bytes: by the limit, and one entry for each sink of each table. A sink that
// has nothing in hand needs no leave, so that one which stands still with all of the budget stops no other one,
// and an entry larger than the whole budget goes through alone instead of never.
type budget struct {
	limit int64

	mu      sync.Mutex
	used    int64
	waiting []*share // first come, first served
}

func newBudget(limit int64) *budget { return &budget{limit: limit} }

// share is what one sink of one table takes of a budget. The budget's mutex covers it.
type share struct {
	of      *budget
	entries int // in hand
	want    int64
	granted chan struct{} // closed when want was given; nil while nobody waits
}

func (b *budget) share() *share { return &share{of: b} }

// take blocks until n bytes are free, or nothing else is in the sink's hands, and returns what gives them back. It
// is for one goroutine; what it returns is for any, once.
func (s *share) take(ctx context.Context, n int) (release func(), err error) {
	b := s.of
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
		b.waiting = slices.DeleteFunc(b.waiting, func(x *share) bool { return x == s })
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

func (s *share) release(n int64) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.entries--
	s.of.used -= n
	s.of.grant()
}

// grant gives those who wait what there is. The mutex is held.
func (b *budget) grant() {
	full := false
	b.waiting = slices.DeleteFunc(b.waiting, func(s *share) bool {
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
