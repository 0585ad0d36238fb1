package outcome

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Refusals are the tables with refused stored state. Such a table halts, and is tried again; the
// others run. Only when no table can run is the environment to blame, and the process ends. It is
// safe for concurrent use.
type Refusals struct {
	mu       sync.Mutex // covers the rest
	tables   []string
	matched  bool // the stored state of a table was found to belong to it: from then on a refusal never ends the process
	bySource map[string]error
}

// NewRefusals returns that no table is refused; there are none yet.
func NewRefusals() *Refusals { return &Refusals{bySource: map[string]error{}} }

// Expect adds a table to the tables of which one must run.
func (r *Refusals) Expect(source string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tables = append(r.tables, source)
}

// Forget takes a table out again.
func (r *Refusals) Forget(source string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tables = slices.DeleteFunc(r.tables, func(t string) bool { return t == source })
	delete(r.bySource, source)
}

// NoteMatch notes that the stored state of a table was found to belong to it: its log alone, where
// Bigtable is away. Its row may be refused later; then the table halts and the process stays, as
// with a table that has run for long.
func (r *Refusals) NoteMatch(source string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.matched = true
	delete(r.bySource, source)
}

// Add notes how a table's life ended. It returns the joined errors of all tables once all of them
// are refused.
func (r *Refusals) Add(source string, out Outcome, err error) error {
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
		all = append(all, r.bySource[t])
	}
	return errors.Join(all...)
}
