package pipeline

import (
	"errors"
	"fmt"
	"sync"

	"github.com/tailrace-cdc/replicator/pipeline/outcome"
)

// RefusedError says that a table's stored state is not this pipeline's, and what to do.
type RefusedError = outcome.RefusedError

// refusals are the tables whose stored state is refused. Such a table halts, and is tried again; the others run. Only
// when no table can run is the environment to blame, and the process ends.
type refusals struct {
	tables []Table

	mu       sync.Mutex
	matched  bool // the stored state of a table was found to belong to it: from then on a refusal never ends the process
	bySource map[string]error
}

func newRefusals(tables []Table) *refusals {
	return &refusals{tables: tables, bySource: map[string]error{}}
}

// noteMatch notes that the stored state of a table was found to belong to it.
func (r *refusals) noteMatch(source string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.matched = true
	delete(r.bySource, source)
}

// add notes how a table's life ended. It returns the joined errors of all tables once all of them are refused.
func (r *refusals) add(source string, out outcome.Outcome, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !out.Refused {
		delete(r.bySource, source)
		return nil
	}
	r.bySource[source] = fmt.Errorf("table %s: %w", source, err)
	if r.matched || len(r.bySource) < len(r.tables) {
		return nil
	}
	var all []error
	for _, t := range r.tables {
		all = append(all, r.bySource[t.Source])
	}
	return errors.Join(all...)
}
