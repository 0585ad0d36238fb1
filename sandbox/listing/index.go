package listing

import (
	"bytes"
	"sort"

	"github.com/tailrace-cdc/replicator/sandbox/attr"
	"github.com/tailrace-cdc/replicator/sandbox/expr"
	"github.com/tailrace-cdc/replicator/sandbox/table"
)

// Secondary indexes are not kept: a read of an index goes through the table and sorts.
// That is right and slow, and enough for a laptop.

// entry is an item in an index: its place, which is unique, and its record.
type entry struct {
	at     []byte
	record *table.Record
}

// indexed are the entries of the listing's index in order, of those records between
// first and end; with a plan only those that the plan asks for.
func (l *listing) indexed(q *queryPlan, first, end table.Key) []entry {
	schema := &l.schema
	var all []entry
	l.table.Items.Ascend(first, func(r *table.Record) bool {
		if end != "" && r.Key >= end {
			return false
		}
		item := r.Item()
		if !holds(item, schema) {
			return true
		}
		if q != nil && (!item.Get(schema.Hash.Name).Equal(q.hash) || q.test != nil && !q.test.Match(item.Get(q.sort))) {
			return true
		}
		all = append(all, entry{placeIn(schema, item, r.Key), r})
		return true
	})
	sort.Slice(all, func(i, j int) bool { return bytes.Compare(all[i].at, all[j].at) < 0 })
	return all
}

// holds says whether an item has the index's key and so is in it.
func holds(item attr.Map, schema *table.Schema) bool {
	v := item.Get(schema.Hash.Name)
	if v == nil || v.Kind != schema.Hash.Kind {
		return false
	}
	if schema.Range == nil {
		return true
	}
	v = item.Get(schema.Range.Name)
	return v != nil && v.Kind == schema.Range.Kind
}

// placeIn orders entries by the index's key, and within it by the table's.
func placeIn(schema *table.Schema, item attr.Map, key table.Key) []byte {
	at := []byte(schema.KeyOf(item))
	return append(append(at, 0), key...)
}

// addIndexed fills the page from entries in order; it says whether there is no more.
func (l *listing) addIndexed(all []entry, backward bool) (ended bool) {
	if backward {
		for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
			all[i], all[j] = all[j], all[i]
		}
	}
	var after []byte
	if l.start != nil {
		after = placeIn(&l.schema, l.start, l.table.Schema.KeyOf(l.start))
	}
	for i := range all {
		if after != nil {
			order := bytes.Compare(all[i].at, after)
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

// projected cuts an item down to what the index projects.
func (l *listing) projected(item attr.Map) attr.Map {
	if l.index.Projection == "ALL" {
		return item
	}
	return expr.TopLevel(l.projectedNames()).Of(item)
}

// projectedNames are the attributes that an index has which does not have all.
func (l *listing) projectedNames() []string {
	names := l.table.Schema.Names()
	for _, k := range l.index.Keys {
		names = append(names, k.AttributeName)
	}
	return append(names, l.index.NonKey...)
}
