package settings

import (
	"context"
	"sync"
)

// Gate holds back the writes of a table to Bigtable until the settings that they rely on were
// looked at, and while one makes them unsafe. A nil Gate is open. It is safe for concurrent use.
type Gate struct {
	mu      sync.Mutex
	looked  bool
	halt    error
	changed chan struct{} // closed at a change; nil while nothing waits
}

// Begin closes the gate until the settings are read: a life begins so.
func (g *Gate) Begin() {
	_, _, halt := g.now()
	g.set(false, halt)
}

// Set opens the gate, or shuts it with the reason.
func (g *Gate) Set(halt error) { g.set(true, halt) }

// Looked notes that a reading of the settings got no answer: a gate that was never set opens, and a
// gate that is shut stays shut.
func (g *Gate) Looked() {
	_, _, halt := g.now()
	g.set(true, halt)
}

func (g *Gate) set(looked bool, halt error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.looked, g.halt = looked, halt
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// now returns how the gate is, and a channel that is closed when that changes.
func (g *Gate) now() (looked bool, changed <-chan struct{}, halt error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return g.looked, g.changed, g.halt
}

// Enter blocks until the settings were looked at, and returns why nothing may be written; nil: it
// may.
func (g *Gate) Enter(ctx context.Context) error {
	for g != nil {
		looked, changed, halt := g.now()
		if looked {
			return halt
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
	return nil
}

// Shut blocks until nothing may be written any more, and returns why; nil once ctx has ended.
func (g *Gate) Shut(ctx context.Context) error {
	for {
		var changed <-chan struct{}
		if g != nil {
			var halt error
			if _, changed, halt = g.now(); halt != nil {
				return halt
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}
