package pipeline

import (
	"errors"
	"fmt"
	"sync"

	"github.com/tailrace-cdc/replicator/pipeline/outcome"
)

// RefusedError says that a table's stored state is not this pipeline's, and what to do.
type RefusedError = outcome.RefusedError

// refusals are the tables whose state is refused. Such a table halts, and is tried again; the others run. Only when
// none of them can is it the environment that is wrong, and the process ends.
type refusals struct {
	mu    sync.Mutex
	owned bool // a table was allowed to claim its log: from then on nothing ends the process
	by    map[*table]error
}

// allow notes that the table's stored state was found to be its own.
func (r *refusals) allow(t *table) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owned = true
	delete(r.by, t)
}

// after notes how a life ended. Its error joins the refusals of all tables when no table can run.
func (r *refusals) after(t *table, out outcome.Outcome, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !out.Refused {
		delete(r.by, t)
		return nil
	}
	if r.by == nil {
		r.by = map[*table]error{}
	}
	t.started.Store(true) // its state is known: a rollout need not wait for it
	r.by[t] = fmt.Errorf("table %s: %w", t.Source, err)
	if r.owned || len(r.by) < len(t.p.tables) {
		return nil
	}
	var all []error
	for _, t := range t.p.tables {
		all = append(all, r.by[t])
	}
	return errors.Join(all...)
}
