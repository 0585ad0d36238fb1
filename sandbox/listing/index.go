package listing

import (
	"bytes"
	"sort"

	"github.com/tailrace-cdc/replicator/sandbox/table"
)

// Secondary indexes are not stored: a read of an index reads the whole table and sorts. That is
// slow, and always correct.

// entry is one record in an index.
type entry struct {
	position []byte // its place in the index; unique
	record   *table.Record
}

// indexed returns the entries of the listing's index in order. They are of the records from first
// on, below end, and with a plan only of those that the plan selects.
func (l *listing) indexed(q *queryPlan, first, end table.Key) []entry {
	schema := &l.schema
	var all []entry
	l.from.Ascend(first, func(r *table.Record) bool {
		if end != "" && r.Key >= end {
			return false
		}
		item := r.Item()
		if !schema.Holds(item) || q != nil && !q.selects(item) {
			return true
		}
		all = append(all, entry{schema.Position(item, r.Key), r})
		return true
	})
	sort.Slice(all, func(i, j int) bool { return bytes.Compare(all[i].position, all[j].position) < 0 })
	return all
}

// addIndexed fills the page from entries in order. It reports whether it reached the last one.
func (l *listing) addIndexed(all []entry, backward bool) (ended bool) {
	if backward {
		for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
			all[i], all[j] = all[j], all[i]
		}
	}
	var after []byte
	if l.start != nil {
		after = l.schema.Position(l.start, l.table.Schema.KeyOf(l.start))
	}
	for i := range all {
		if after != nil {
			order := bytes.Compare(all[i].position, after)
			if order == 0 || (order < 0) != backward {
				continue
			}
		}
		if !l.add(all[i].record) {
			return false
		}
	}
	return true
}
