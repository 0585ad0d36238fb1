package pipeline

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// turns keeps the order of changes in a table of which removals take whole rows along (`on_remove: row`). Such a
// removal deletes cells of other items without regard to their versions, so that it must be neither late nor early
// among the changes of its row: each change waits for the ones before it of the same item and of the rows that it
// shares. Only changes of one partition share such a row (the compiler sees to that), and the log has these in the
// order in which they happened.
//
// A lane works its changes off in the order of the log, and a change waits for earlier ones only. So of the changes
// not yet applied the first never waits, and no two wait for each other.
type turns struct {
	wipes *transform.Wipes
	seed  maphash.Seed

	mu   sync.Mutex       // covers last
	last map[uint64]*turn // by item and by row: the newest change that is not applied yet
}

// turn is the place of one change.
type turn struct {
	keys  []uint64 // item, then rows
	after []*turn
	done  chan struct{} // closed when the change is durable, or a dead letter
}

func newTurns(p *transform.Program) *turns {
	if wipes := p.Wipes(); wipes != nil {
		return &turns{wipes: wipes, seed: maphash.MakeSeed(), last: map[uint64]*turn{}}
	}
	return nil
}

// take puts a change behind those before it, and returns a hash that chooses its lane: that of its row where it has
// one. Without turns it is the item's. Changes are taken in the order of the log, by one goroutine.
func (o *turns) take(c *change.Change) (t *turn, by uint64) {
	if o == nil {
		return nil, c.KeyHash
	}
	t = &turn{keys: []uint64{c.KeyHash}, done: make(chan struct{})}
	o.wipes.Rows(c, func(row []byte) {
		if h := maphash.Bytes(o.seed, row); !slices.Contains(t.keys, h) {
			t.keys = append(t.keys, h)
		}
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, k := range t.keys {
		if before := o.last[k]; before != nil {
			t.after = append(t.after, before)
		}
		o.last[k] = t
	}
	return t, t.keys[len(t.keys)-1]
}

// wait blocks until it is the change's turn, or ctx ends.
func (t *turn) wait(ctx context.Context) error {
	for _, before := range t.after {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-before.done:
		}
	}
	t.after = nil
	return nil
}

// end lets those behind the change go on.
func (o *turns) end(t *turn) {
	o.mu.Lock()
	for _, k := range t.keys {
		if o.last[k] == t {
			delete(o.last, k)
		}
	}
	o.mu.Unlock()
	close(t.done)
}

// inTurn works the batch off in the order of the log, each change in its turn. Nothing is coalesced: a removal that
// takes a row along has to come between the changes before and after it.
func (w *worker) inTurn(ctx context.Context) error {
	for i := range w.batch {
		j := &w.batch[i]
		if err := j.turn.wait(ctx); err != nil {
			return err
		}
		w.mine = append(w.mine[:0], j)
		if err := w.changes(ctx, w.mine); err != nil {
			return err
		}
		w.turns.end(j.turn)
	}
	return nil
}
