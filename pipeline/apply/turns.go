package apply

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// turns keeps the order of changes in a table with removals that delete whole rows (`on_remove:
// row`). Such a removal deletes cells of other items without regard to their versions, so it must
// be neither late nor early among the changes of its row: each change waits for the earlier ones of
// the same item and of the rows that it shares. Only changes of one partition share such a row (the
// compiler makes sure of that), and the log holds these in the order in which they happened.
//
// A lane applies its changes in the order in which they were enqueued here, because lanes.put does
// both under the lane's mutex, and a change waits for earlier ones only. So the first change that
// is not applied yet never waits, and no two changes wait for each other. Resyncs take turns like
// changes.
type turns struct {
	seed maphash.Seed

	wipesMu sync.Mutex // covers wipes
	wipes   *transform.Wipes

	mu   sync.Mutex       // covers last
	last map[uint64]*turn // by item and by row: the newest change that is not applied yet
}

// turn is the place of one change, or of one resync.
type turn struct {
	keys  []uint64 // item, then rows
	after []*turn
	done  chan struct{} // closed when the change is durable, or a dead letter
}

// newTurns returns nil for a program that removes no whole rows.
func newTurns(p *transform.Program) *turns {
	if wipes := p.Wipes(); wipes != nil {
		return &turns{wipes: wipes, seed: maphash.MakeSeed(), last: map[uint64]*turn{}}
	}
	return nil
}

// prepare returns a turn for changes of one item and for further rows, and the hash that chooses
// its lane: the hash of a row where it has one, else of its item.
func (o *turns) prepare(hash uint64, rows [][]byte, changes ...*change.Change) (t *turn, lane uint64) {
	if o == nil {
		return nil, hash
	}
	t = &turn{keys: []uint64{hash}, done: make(chan struct{})}
	add := func(row []byte) {
		if h := maphash.Bytes(o.seed, row); !slices.Contains(t.keys, h) {
			t.keys = append(t.keys, h)
		}
	}
	o.wipesMu.Lock()
	for _, c := range changes {
		o.wipes.Rows(c, add)
	}
	o.wipesMu.Unlock()
	for _, row := range rows {
		add(row)
	}
	return t, t.keys[len(t.keys)-1]
}

// enqueue puts a turn behind those before it.
func (o *turns) enqueue(t *turn) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, k := range t.keys {
		if before := o.last[k]; before != nil {
			t.after = append(t.after, before)
		}
		o.last[k] = t
	}
}

// wait blocks until the changes before this one are finished, or ctx ends.
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

// finish lets the changes behind this one go on.
func (o *turns) finish(t *turn) {
	o.mu.Lock()
	for _, k := range t.keys {
		if o.last[k] == t {
			delete(o.last, k)
		}
	}
	o.mu.Unlock()
	close(t.done)
}
