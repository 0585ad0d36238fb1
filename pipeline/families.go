package pipeline

import (
	"slices"
	"sync"

	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

// families collects the column families of the targets, as far as the mappings are compiled.
type families struct {
	tables []Table
	sink   *bigtable.Client

	mu       sync.Mutex                     // covers compiled
	compiled map[string]map[string][]string // target → source → its families
}

func newFamilies(tables []Table, sink *bigtable.Client) *families {
	return &families{tables: tables, sink: sink, compiled: map[string]map[string][]string{}}
}

// add notes the families of one mapping, and declares the families of a target to the sink once the mappings of all
// tables that write to it are compiled: with fewer, the sink would take those of the others for foreign ones.
func (f *families) add(target, source string, all []transform.Family) {
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
	for _, t := range f.tables {
		if t.Target != target {
			continue
		}
		names, ok := f.compiled[target][t.Source]
		if !ok {
			return
		}
		union = append(union, names...)
	}
	slices.Sort(union)
	f.sink.Declare(target, slices.Compact(union))
}
