package pipeline

import (
	"sync"
	"sync/atomic"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// prefix turns entries that finish in any order into a mark: the last entry of the contiguous prefix of
// entries all of whose changes are durable.
//
// Rule 1: the mark never passes an entry with a change that is not durable.
type prefix struct {
	mu      sync.Mutex
	waiting []*pending
	mark    checkpoint.Mark
	changed uint64 // the newest entry with changes that the mark passed

	progress chan struct{} // capacity 1: the mark moved
}

// pending is one entry on its way into a sink.
type pending struct {
	of      *prefix
	at      checkpoint.Mark
	changes bool
	open    atomic.Int64 // changes not yet durable, plus one while the entry is being handed out
	release func()       // gives the entry's memory back; may be nil
}

func newPrefix(at checkpoint.Mark) *prefix {
	return &prefix{mark: at, progress: make(chan struct{}, 1)}
}

// add takes an entry in, in the order of the log. It stays open until done has been called once for each of
// its changes and once for the entry itself.
func (p *prefix) add(at checkpoint.Mark, changes int, release func()) *pending {
	e := &pending{of: p, at: at, changes: changes > 0, release: release}
	e.open.Store(int64(changes) + 1)
	p.mu.Lock()
	p.waiting = append(p.waiting, e)
	p.mu.Unlock()
	return e
}

// done says that n changes of the entry are durable.
func (e *pending) done(n int) {
	if e.open.Add(-int64(n)) > 0 {
		return
	}
	if e.release != nil {
		e.release()
	}
	e.of.advance()
}

func (p *prefix) advance() {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.waiting) && p.waiting[n].open.Load() <= 0 {
		p.mark = p.waiting[n].at
		if p.waiting[n].changes {
			p.changed = p.mark.Seq
		}
		n++
	}
	if n == 0 {
		return
	}
	clear(p.waiting[:n])
	p.waiting = p.waiting[n:]
	signal(p.progress)
}

// passed returns the mark, and the newest entry with changes that it passed; 0 while it passed none.
func (p *prefix) passed() (m checkpoint.Mark, changed uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mark, p.changed
}

func (p *prefix) at() checkpoint.Mark {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mark
}

// again returns a prefix that starts where this one got to.
func (p *prefix) again() *prefix {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := newPrefix(p.mark)
	next.changed = p.changed
	return next
}

// abandon gives the memory of unfinished entries back. Nobody works on them any more: they are read again.
func (p *prefix) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.waiting {
		if e.open.Load() > 0 && e.release != nil {
			e.release()
		}
	}
	p.waiting = nil
}
