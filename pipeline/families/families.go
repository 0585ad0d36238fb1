// Package families declares to the sink which column families the mappings write, as far as they are compiled.
package families

import (
	"slices"
	"sync"

	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

// Targets collects the column families of the targets. It is safe for concurrent use.
type Targets struct {
	sink *bigtable.Client

	mu       sync.Mutex                     // covers the rest
	sources  map[string][]string            // of each target
	compiled map[string]map[string][]string // target → source → its families
}

// New returns a collection without tables.
func New(sink *bigtable.Client) *Targets {
	return &Targets{sink: sink, sources: map[string][]string{}, compiled: map[string]map[string][]string{}}
}

// Expect announces that a source writes to a target.
func (f *Targets) Expect(target, source string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.sources[target], source) {
		f.sources[target] = append(f.sources[target], source)
	}
}

// Add notes the families of one mapping, and declares the families of a target to the sink once the mappings of all
// tables that write to it are compiled: with fewer, the sink would take those of the others for foreign ones.
func (f *Targets) Add(target, source string, all []transform.Family) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.compiled[target] == nil {
		f.compiled[target] = map[string][]string{}
	}
	var names []string
	for _, x := range all {
		names = append(names, x.Name)
	}
	f.compiled[target][source] = names
	var union []string
	for _, source := range f.sources[target] {
		names, ok := f.compiled[target][source]
		if !ok {
			return
		}
		union = append(union, names...)
	}
	slices.Sort(union)
	f.sink.Declare(target, slices.Compact(union))
}
