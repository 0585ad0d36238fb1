package pipeline

import (
	"slices"
	"sync"

	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

// targetFamilies collects the column families of the targets. It is safe for concurrent use.
type targetFamilies struct {
	sink *bigtable.Client

	mu       sync.Mutex                     // covers the rest
	sources  map[string][]string            // of each target
	compiled map[string]map[string][]string // target → source → its families
}

// newTargetFamilies returns a collection without tables.
func newTargetFamilies(sink *bigtable.Client) *targetFamilies {
	return &targetFamilies{sink: sink, sources: map[string][]string{}, compiled: map[string]map[string][]string{}}
}

// Expect announces that a source writes to a target.
func (f *targetFamilies) Expect(target, source string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.sources[target], source) {
		f.sources[target] = append(f.sources[target], source)
	}
}

// Add notes the families of one mapping. It declares the families of a target to the sink once the
// mappings of all tables that write to it are compiled: with fewer mappings, the sink would take
// families of the other tables for foreign ones.
func (f *targetFamilies) Add(target, source string, all []transform.Family) {
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
