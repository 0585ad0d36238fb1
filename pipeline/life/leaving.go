package life

import (
	"context"
	"sync"
)

// Leaving is the planned end of something that owns a log. The first call of Leave counts.
type Leaving struct {
	within *Leaving // an end that includes this one; nil: there is none
	ctx    context.Context
	end    context.CancelFunc

	mu sync.Mutex // covers to
	to string
}

// WithLeaving returns a context that ends when the returned Leaving is called, or when ctx ends.
// within is the planned end that ends ctx; nil where there is none.
func WithLeaving(ctx context.Context, within *Leaving) (context.Context, *Leaving) {
	ctx, end := context.WithCancel(ctx)
	return ctx, &Leaving{within: within, ctx: ctx, end: end}
}

// Leave begins the planned end. The log goes to the process named to; "" for any.
func (l *Leaving) Leave(to string) {
	l.mu.Lock()
	if l.ctx.Err() == nil {
		l.to = to
	}
	l.mu.Unlock()
	l.end()
}

// Left is closed once the planned end has begun.
func (l *Leaving) Left() <-chan struct{} { return l.ctx.Done() }

// Successor returns the process that goes on with the log; "" for none in particular.
func (l *Leaving) Successor() string {
	l.mu.Lock()
	to := l.to
	l.mu.Unlock()
	if to == "" && l.within != nil {
		return l.within.Successor()
	}
	return to
}
